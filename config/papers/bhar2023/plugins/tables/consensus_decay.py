r"""Theorem 1 of bhar2023, measured: what triggering adds to the consensus error, and the floor.

The bound (27) is :math:`Y_1 \lambda^{(k+1)/2} + Y_2 / (k+1)^\delta + Y_3` with :math:`Y_2` due to
triggering and :math:`Y_3 = O(\alpha)` due to noise and gradients. Runs come in pairs that differ in
triggering only, so the difference of their errors is what triggering adds, and the error without it
is the floor. The rates are slopes in log-log coordinates:

- of the added error over k, for each step size: at least delta in size if the bound holds;
- of the floor over alpha: one if it is O(alpha).

Intervals come from redrawing every window's mean within its own interval.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from concord.errors import ConcordError
from concord.laws.intervals import quantile
from concord.options import Options
from concord_studies import results, selection, words
from concord_studies.contracts import Read
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured
from concord_studies.tables import Layout, Table, marks_divergence

REPLICATES = 1000
PLAIN, TRIGGERED = "gossip", "triggered"


class Params(Options):
    """Options of the table of consensus decay."""

    pair: Annotated[str, NamesLabel("label that tells runs with and without triggering apart")]


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the table must have."""
    return [Read(name) for name in ("consensus_floor", "consensus_window")]


@marks_divergence
def tabulate(params: Params, runs: Sequence[Measured]) -> Table:
    """Return the table of plateaus, added errors and decay exponents per step size.

    A ConcordError if a step size lacks one of its two runs, or a run the metrics of
    consensus_floor.
    """
    rng = np.random.default_rng(0)  # redrawn means only: the table is the same every time
    rows: list[list[Any]] = []
    steps, plateaus = [], []
    for step in selection.distinct(runs, "step_size"):
        plain, triggered = (
            selection.take_single(selection.select(runs, labels), f"the run with {labels}")
            for value in (PLAIN, TRIGGERED)
            for labels in [{"step_size": step, params.pair: value}]
        )
        steps.append(float(step))
        for text, run in (
            ("plateau without triggering", plain),
            ("the same with triggering", triggered),
        ):
            floor = results.series(run, "consensus_floor", "network")
            rows.append([text, step, *(float(x[-1]) for x in (floor.value, floor.lo, floor.hi))])
        rows.append(["p of what triggering adds, k^-p", step, *_decay(plain, triggered, rng)])
        decay = selection.lookup(triggered.run, "sampler.decay")
        rows.append(["delta_e of the bound, k^-delta_e", step, decay, None, None])
        plateaus.append(plain)
    if len(steps) > 1:
        redrawn = [_redraw(run, "consensus_floor", rng)[1] for run in plateaus]
        rate = _slope(np.log(steps), np.concatenate(redrawn, axis=1), 1.0)
        rows.append(["p of the plateau, alpha^p", None, *rate])
    columns = ["quantity", "alpha", "value", "lo", "hi"]
    return Table(columns, rows, _lay_out(rows))


def _lay_out(rows: Sequence[Sequence[Any]]) -> Layout:
    """Return the layout with a row for each step size, and a last one for what is over them."""
    quantities = list(dict.fromkeys(row[0] for row in rows))
    texts: dict[str, dict[str, str]] = {}
    for quantity, alpha, *number in rows:
        step = "all" if alpha is None else f"{alpha:g}"
        texts.setdefault(step, {})[quantity] = words.format_number(*number)
    lines = [[step, *(row.get(name, "") for name in quantities)] for step, row in texts.items()]
    return Layout(["alpha", *quantities], lines, 1)


def _redraw(run: Measured, metric: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return iterations, and a metric's means with REPLICATES rows drawn within its intervals."""
    series, chains = results.series(run, metric, "network"), run.run["chains"]
    with np.errstate(invalid="ignore"):  # of a run that diverged
        error = (series.hi - series.lo) / (2 * quantile(chains))
    noise = rng.standard_t(max(chains - 1, 1), (REPLICATES, len(error))) * error
    return series.iteration, np.concatenate([series.value[None], series.value + noise])


def _decay(plain: Measured, triggered: Measured, rng: np.random.Generator) -> list[float]:
    """Return the decay exponent of the consensus error that triggering adds, with interval."""
    (k, added), (other, without) = (
        _redraw(run, "consensus_window", rng) for run in (triggered, plain)
    )
    if not np.array_equal(k, other):
        raise ConcordError(
            f"{triggered.name} and {plain.name} were recorded at other iterations; "
            "give them the same record"
        )
    with np.errstate(invalid="ignore"):
        return _slope(np.log(k + 1), added - without, -1.0)


def _slope(x: np.ndarray, values: np.ndarray, sign: float) -> list[float]:
    """Return the log-log slope of the first row, with the central 95 % of the other rows' slopes.

    Windows whose redrawn means are not all positive are left out; nan if fewer than two are left,
    or one is of a run that diverged.
    """
    if not np.isfinite(values).all():
        return [float("nan")] * 3
    positive = (values > 0).all(axis=0)
    if positive.sum() < 2:
        return [float("nan")] * 3
    slopes = sign * np.polyfit(x[positive], np.log(values[:, positive]).T, 1)[0]
    lo, hi = np.percentile(slopes[1:], [2.5, 97.5])
    return [float(slopes[0]), float(lo), float(hi)]
