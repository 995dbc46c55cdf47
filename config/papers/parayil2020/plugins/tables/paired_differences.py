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
from concord_studies.scores import paired
from concord_studies.tables import Layout, Table, marks_divergence


class Params(Options):
    """Options of a table of paired differences."""

    metric: Annotated[str, "metric, recorded per replicate"]
    networks: Annotated[str, NamesLabel("label whose values are compared")] = "agents"
    by: Annotated[str | None, NamesLabel("label of which the table shows every value")] = None
    agent: Annotated[int | str, "agent: an index, average or network"] = 0


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the table must have."""
    return [Read(f"{params.metric}_set_0", agents=(params.agent,))]


@marks_divergence
def tabulate(params: Params, runs: Sequence[Measured]) -> Table:
    """Return the table of paired differences, a row per pair of networks and ``by``.

    A ConcordError if a run has fewer than two replicates, or others than the run it is compared
    with.
    """
    groups = selection.split(runs, params.by) if params.by else [(None, list(runs))]
    lines = []
    for value, group in groups:
        for (a, first), (b, second) in itertools.combinations(
            selection.split(group, params.networks), 2
        ):
            differences = paired(
                selection.only(first, f"{params.networks} = {a}"),
                selection.only(second, f"{params.networks} = {b}"),
                params.metric,
                params.agent,
            )
            head = [params.metric, *([value] if params.by else []), a, b]
            lines.append([*head, *_tests(differences)])
    by = [params.by] if params.by else []
    heads = ["metric", *by, f"{params.networks} (first)", f"{params.networks} (second)"]
    tests = ["sets in which it is negative", "data sets", "p (t test)", "p (sign test)"]
    n = len(heads)
    texts = [
        [*map(str, line[:n]), words.rounded(*line[n : n + 3]), *map(str, line[n + 3 : n + 5])]
        + [words.rounded(p) for p in line[n + 5 :]]
        for line in lines
    ]
    layout = Layout([*heads, "difference", *tests], texts, n)
    return Table([*heads, "difference", "lo", "hi", *tests], lines, layout)


def _tests(differences: np.ndarray) -> list[float | int]:
    """Return mean, t interval, counts and p-values of paired differences."""
    from scipy import stats  # a second, which planning does without

    if not np.isfinite(differences).all():  # a run that diverged
        return [float("nan")] * 3 + [0, len(differences)] + [float("nan")] * 2
    test = stats.ttest_1samp(differences, 0.0)
    lo, hi = test.confidence_interval(0.95)
    negative = int((differences < 0).sum())
    sign = stats.binomtest(negative, len(differences)).pvalue
    return [
        float(differences.mean()),
        float(lo),
        float(hi),
        negative,
        len(differences),
        float(test.pvalue),
        float(sign),
    ]
