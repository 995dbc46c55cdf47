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
from concord_studies.results import Measured, Series
from concord_studies.tables import Layout, Table, marks_divergence

REPLICATES = 1000


class Params(Options):
    """Options of the table of consensus decay."""

    pair: Annotated[str, NamesLabel("label that tells runs with and without triggering apart")]
    triggered: Annotated[str, "its value with triggering"] = "triggered"
    plain: Annotated[str, "its value without"] = "gossip"
    over: Annotated[str, NamesLabel("label or parameter of the step size")] = "step_size"


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
    rows: list[list[object]] = []
    steps, without = [], []
    for step in selection.distinct(runs, params.over):
        plain, triggered = (
            selection.only(selection.select(runs, wanted), f"the run with {wanted}")
            for value in (params.plain, params.triggered)
            for wanted in [{params.over: step, params.pair: value}]
        )
        steps.append(float(step))
        without.append(plain)
        rows.append(["plateau without triggering", step, *_ends(_series(plain, "consensus_floor"))])
        with_trigger = _series(triggered, "consensus_floor")
        rows.append(["the same with triggering", step, *_ends(with_trigger)])
        rows.append(["rate of what triggering adds, over k", step, *_decay(plain, triggered, rng)])
    if len(steps) > 1:
        plateaus = [_redrawn(run, "consensus_floor", rng) for run in without]
        rate = _slope(np.log(steps), np.concatenate(plateaus, axis=1), 1.0)
        rows.append(["rate of the plateau, over alpha", None, *rate])
    columns = ["quantity", "alpha", "value", "lo", "hi"]
    return Table(columns, rows, laid_out=_laid_out(columns, rows))


def _laid_out(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Layout:
    """Return the layout with a row for each step size, and a last one for what is over them."""
    cells = [dict(zip(columns, row, strict=True)) for row in rows]
    quantities = list(dict.fromkeys(cell["quantity"] for cell in cells))
    texts: dict[str, dict[str, str]] = {}
    for cell in cells:
        step = "all" if cell["alpha"] is None else f"{cell['alpha']:g}"
        number = words.rounded(cell["value"], cell["lo"], cell["hi"])
        texts.setdefault(step, {})[cell["quantity"]] = number
    lines = [[step, *(own.get(name, "") for name in quantities)] for step, own in texts.items()]
    return Layout(["alpha", *quantities], lines, 1)


def _series(run: Measured, metric: str) -> Series:
    """Return a metric of the network over iterations."""
    return results.series(run, metric, "network")


def _ends(series: Series) -> list[float]:
    """Return the last value of a series and the ends of its interval."""
    return [float(values[-1]) for values in (series.value, series.lo, series.hi)]


def _redrawn(run: Measured, metric: str, rng: np.random.Generator) -> np.ndarray:
    """Return a metric's means, then REPLICATES rows drawn anew within its intervals."""
    series, chains = _series(run, metric), run.run["chains"]
    with np.errstate(invalid="ignore"):  # of a run that diverged
        error = (series.hi - series.lo) / (2 * quantile(chains))
    noise = rng.standard_t(max(chains - 1, 1), (REPLICATES, len(error))) * error
    return np.concatenate([series.value[None], series.value + noise])


def _decay(plain: Measured, triggered: Measured, rng: np.random.Generator) -> list[float]:
    """Return the decay exponent of the consensus error that triggering adds, with interval."""
    with_, without = (_series(run, "consensus_window") for run in (triggered, plain))
    if not np.array_equal(with_.iteration, without.iteration):
        raise ConcordError(
            f"{triggered.name} and {plain.name} were recorded at other iterations; "
            "give them the same record"
        )
    added = _redrawn(triggered, "consensus_window", rng)
    with np.errstate(invalid="ignore"):
        added -= _redrawn(plain, "consensus_window", rng)
    return _slope(np.log(with_.iteration + 1), added, -1.0)


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
