"""Differences of a metric between networks, paired by replicate, with a test of a claimed order.

What a researcher writes in a paper's YAML (Parayil et al., section 5.1)::

    metric: sinkhorn
    networks: agents
    by: reading

A run has the metric of replicate d as ``<metric>_set_<d>``. For every pair of networks the table
has the mean difference, second minus first, with a 95 % t interval, the number of replicates in
which it is negative, and the two-sided p values of the paired t test and of the sign test.
"""

import itertools
from collections.abc import Sequence
from typing import Annotated

import numpy as np

from concord.options import Options
from concord_studies import selection, words
from concord_studies.contracts import Read
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured
from concord_studies.scores import pair_sets
from concord_studies.tables import Layout, Table, marks_divergence


class Params(Options):
    """Options of a table of paired differences."""

    metric: Annotated[str, "metric, recorded per replicate"]
    by: Annotated[str, NamesLabel("label of which the table shows every value")]
    networks: Annotated[str, NamesLabel("label whose values are compared")] = "agents"


AGENT = 0


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the table must have."""
    return [Read(f"{params.metric}_set_0", agents=(AGENT,))]


@marks_divergence
def tabulate(params: Params, runs: Sequence[Measured]) -> Table:
    """Return the table of paired differences, a row per pair of networks and ``by``.

    A ConcordError if a run has fewer than two replicates, or others than the run it is compared
    with.
    """
    lines = []
    for value, group in selection.split(runs, params.by):
        networks = [
            (name, selection.take_single(of_network, f"{params.networks} = {name}"))
            for name, of_network in selection.split(group, params.networks)
        ]
        for (a, first), (b, second) in itertools.combinations(networks, 2):
            one, other = pair_sets(*((run, params.metric, AGENT) for run in (first, second)))
            lines.append([params.metric, value, a, b, *_test_differences(other - one)])
    heads = ["metric", params.by, f"{params.networks} (first)", f"{params.networks} (second)"]
    tests = ["sets in which it is negative", "data sets", "p (t test)", "p (sign test)"]
    texts = [
        [
            *(words.name(params.by, value), str(a), str(b), words.format_number(*numbers[:3])),
            *(*map(str, numbers[3:5]), *map(words.format_number, numbers[5:])),
        ]
        for _, value, a, b, *numbers in lines
    ]
    layout = Layout([*heads[1:], "difference", *tests], texts, len(heads) - 1)
    return Table([*heads, "difference", "lo", "hi", *tests], lines, layout)


def _test_differences(differences: np.ndarray) -> list[float]:
    """Return mean, t interval, counts and p-values of paired differences."""
    from scipy import stats  # a second, which planning does without

    count = len(differences)
    if not np.isfinite(differences).all():  # a run that diverged
        return [np.nan] * 3 + [0, count] + [np.nan] * 2
    test = stats.ttest_1samp(differences, 0.0)
    negative = int((differences < 0).sum())
    sign = stats.binomtest(negative, count).pvalue
    ends = map(float, test.confidence_interval(0.95))
    return [float(differences.mean()), *ends, negative, count, float(test.pvalue), float(sign)]
