"""How many times worse each of several does under a condition than under the plain one.

Each cell has the ratio of the score to that of the plain condition, data set by data set, colored
on a log scale; in italics where it is estimated from chains, in gray where its 95 % interval over
data sets holds one. ≤: some of the scores are the floor of their chains, so that the ratio is at
most this; ≥: those of the plain condition are. ∞: diverged; n/a: does not apply; n/r: not run; –:
nothing to compare with.
What a researcher writes in a study's YAML::

    rows: entry
    columns: fault
    plain: none
    metric: b2_by_gradients
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from concord import results
from concord.contracts import Read
from concord.errors import ConcordError, nearest
from concord.figures import _common, style
from concord.figures._common import Cell
from concord.figures._options import Names, Select
from concord.laws.intervals import mean_interval
from concord.options import NamesLabel, Options, Positive, Some
from concord.results import Measured

KIND = "ratio_maps"
DIVERGED, LACKING = "∞", {"not applicable": "n/a", "not run": "n/r"}


class Params(Options):
    """Options of maps of ratios."""

    rows: Annotated[str, NamesLabel("label along the y axis")]
    columns: Annotated[str, NamesLabel("label along the x axis: conditions")]
    plain: Annotated[str, "condition that the others are divided by"]
    metric: Annotated[str | Some[str], "scores, a panel for each"]
    level: Annotated[int | str, "agent whose score it is"] = "worst"
    factor: Annotated[Positive, "ratio at which the color is full"] = 100.0
    titles: Annotated[dict[str, str] | None, "titles of panels: {metric: text}"] = None
    select: Select = None
    names: Names = None


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs must have."""
    return [*_metrics(params)]


def _metrics(params: Params) -> list[str]:
    return [params.metric] if isinstance(params.metric, str) else [*params.metric]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the figure.

    Raises
    ------
    ConcordError
        If no run has the plain condition.
    """
    shown = results.select(runs, params.select, KIND)
    rows, columns = (results.distinct(shown, key) for key in (params.rows, params.columns))
    plain = [v for v in columns if results.same(v, params.plain)]
    if not plain:
        raise ConcordError(
            f"figure {KIND}: no run has {params.columns} {params.plain}; "
            f"{nearest(params.plain, map(str, columns))}"
        )
    others = [v for v in columns if not results.same(v, params.plain)]
    by = {
        tuple(str(results.lookup(run.run, key)) for key in (params.rows, params.columns)): run
        for run in shown
    }
    titles = params.titles or {}
    cells = [
        Cell(titles.get(metric, metric) if len(_metrics(params)) > 1 else "", shown, *place)
        for metric, place in zip(_metrics(params), _common.wrap(len(_metrics(params))), strict=True)
    ]
    wide = len(others) * len(_metrics(params)) > 5
    rows, empty = _with_numbers(rows, others, by)
    size = 1.2 + 0.2 * len(rows)
    figure, axes = _common.axes_of(cells, "all", "full" if wide else "column", size)
    norm = LogNorm(1 / params.factor, params.factor, clip=True)
    for metric, ax in zip(_metrics(params), axes, strict=True):
        image = np.full((len(rows), len(others)), np.nan)
        ax.grid(False)
        for (r, row), (c, column) in ((a, b) for a in enumerate(rows) for b in enumerate(others)):
            run, base = by.get((str(row), str(column))), by.get((str(row), str(plain[0])))
            text, image[r, c], sure = _ratio(run, base, metric, params)
            value = np.clip(image[r, c], 1 / params.factor, params.factor)
            deep = np.isfinite(value) and abs(norm(value) - 0.5) > 0.32
            ax.text(
                c, r, text, ha="center", va="center", fontsize=5.5,
                color="white" if deep else "k" if sure else style.GRAY,
                style="italic" if run is not None and results.estimated(run) else "normal",
            )  # fmt: skip
        colors = np.where(np.isposinf(image), params.factor, image)
        ax.imshow(np.ma.masked_invalid(colors), cmap="RdBu_r", norm=norm, aspect="auto")
        ax.set_xticks(
            range(len(others)), [style.name(params.columns, v, params.names) for v in others]
        )
        ax.set_yticks(range(len(rows)), [style.name(params.rows, v, params.names) for v in rows])
        ax.tick_params(length=0)
        ax.tick_params(axis="x", rotation=45)
        for label in ax.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    for text, of in empty.items():
        names = ", ".join(style.name(params.rows, row, params.names) for row in of)
        style.note_below(axes[0], f"{text}: {names}")
    return figure


def _with_numbers(
    rows: Sequence[Any], columns: Sequence[Any], by: Mapping[tuple[str, ...], Measured]
) -> tuple[list[Any], dict[str, list[Any]]]:
    """Return the rows that have a number anywhere, and the others by what all of theirs lacks."""
    shown: list[Any] = []
    empty: dict[str, list[Any]] = {}
    for row in rows:
        runs = [by.get((str(row), str(column))) for column in columns]
        lacking = {"not run" if run is None else results.missing(run) for run in runs}
        text = lacking.pop()
        if lacking or text is None:
            shown.append(row)
        else:
            empty.setdefault(f"{text.capitalize()} anywhere", []).append(row)
    return shown, empty


def _ratio(
    run: Measured | None, base: Measured | None, metric: str, params: Params
) -> tuple[str, float, bool]:
    """Return what a place says, its ratio, and whether that is surely not one.

    The ratio is the geometric mean over data sets, its interval over them; of one that is a bound
    and does not tell on which side of one it is there is none.
    """
    found, floors = [], []
    for one in (run, base):
        lacking = "not run" if one is None else results.missing(one)
        values = np.empty(0) if one is None else results.of_sets(one, metric, params.level)
        if one is None or lacking or not len(values):
            return LACKING[lacking or "not run"], np.nan, False
        found.append(values)
        lowest = results.of_sets(one, f"floor.{metric}", params.level)
        floors.append(len(lowest) == len(values) and bool((values <= lowest).any()))
    if not np.isfinite(found[0]).all():
        return DIVERGED, np.inf, True
    if len(found[0]) != len(found[1]) or not np.isfinite(found[1]).all() or all(floors):
        return "–", np.nan, False
    logs = np.log(np.maximum(found[0], 1e-300)) - np.log(np.maximum(found[1], 1e-300))
    mean, lo, hi = mean_interval(logs) if len(logs) > 1 else (logs[0], logs[0], logs[0])
    ratio = float(np.exp(mean))
    text = f"{ratio:.2g}" if ratio < 9.95 else f"{ratio:.0f}" if ratio < 1000 else ">999"
    if not any(floors):
        return text, ratio, bool(lo > 0 or hi < 0)
    sure = bool(hi < 0 if floors[0] else lo > 0)
    return f"{'≤' if floors[0] else '≥'}{text}", ratio if sure else np.nan, sure
