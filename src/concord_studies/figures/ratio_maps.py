"""How many times worse each of several does under a condition than under the plain one.

Each cell has the ratio of the score to that of the plain condition, data set by data set, colored
on a log scale; in italics where it is estimated from chains, in gray where its 95 % interval over
data sets holds one. ≤: some of the scores are the floor of their chains, so that the ratio is at
most this; ≥: those of the plain condition are. ∞: diverged; n/r: not run; –: nothing to compare
with. A cell is empty where the condition does not apply.
What a researcher writes in a study's YAML::

    rows: entry
    columns: fault
    plain: none
    metric: b2_by_gradients
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from concord.errors import ConcordError, nearest
from concord.options import Options, Positive, Some
from concord_studies import scores, selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._options import Names, Select
from concord_studies.figures._panels import Panels, listed, name_cells
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured

DIVERGED, LACKING = "∞", {"not applicable": "", "not run": "n/r"}


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
    """Return the metrics that the runs of the figure must have."""
    return [*_metrics(params)]


def _metrics(params: Params) -> list[str]:
    """Return the metrics of the options as a list."""
    return [params.metric] if isinstance(params.metric, str) else [*params.metric]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw maps of scores over those under the plain condition, which some run must have."""
    shown = selection.select(runs, params.select)
    rows, columns = (selection.distinct(shown, key) for key in (params.rows, params.columns))
    plain = [v for v in columns if selection.same(v, params.plain)]
    if not plain:
        raise ConcordError(
            f"no run has {params.columns} {params.plain}; "
            f"{nearest(params.plain, map(str, columns))}"
        )
    others = [v for v in columns if not selection.same(v, params.plain)]
    by = {
        tuple(str(selection.lookup(run.run, key)) for key in (params.rows, params.columns)): run
        for run in shown
    }
    titles, metrics = params.titles or {}, _metrics(params)
    cells = listed((titles.get(m, m) if len(metrics) > 1 else "", shown) for m in metrics)
    width = "full" if len(others) * len(metrics) > 5 else "column"
    rows, empty = _with_numbers(rows, others, by)
    panels = Panels(cells, 1.2 + 0.2 * len(rows), width=width)
    norm = LogNorm(1 / params.factor, params.factor, clip=True)
    for metric, ax in zip(metrics, panels.axes, strict=True):
        image = np.full((len(rows), len(others)), np.nan)
        for (r, row), (c, column) in ((a, b) for a in enumerate(rows) for b in enumerate(others)):
            run, base = by.get((str(row), str(column))), by.get((str(row), str(plain[0])))
            found = scores.ratio(run, base, metric, params.level)
            text, image[r, c], sure = _said(found)
            value = np.clip(image[r, c], 1 / params.factor, params.factor)
            deep = np.isfinite(value) and abs(norm(value) - 0.5) > 0.32
            ax.text(
                c, r, text, ha="center", va="center", fontsize=5.5,
                color="white" if deep else "k" if sure else style.GRAY,
                style="italic" if run is not None and scores.estimated(run) else "normal",
            )  # fmt: skip
        colors = np.where(np.isposinf(image), params.factor, image)
        ax.imshow(np.ma.masked_invalid(colors), cmap="RdBu_r", norm=norm, aspect="auto")
        name_cells(
            ax,
            [style.name(params.columns, value, params.names) for value in others],
            [style.name(params.rows, value, params.names) for value in rows],
        )
    notes = ["Empty cells: not applicable"] * any(not text.get_text() for text in ax.texts)
    for lacking, of in empty.items():
        names = "; ".join(style.name(params.rows, row, params.names) for row in of)
        notes.append(f"{lacking}: {names}")
    if notes:
        style.note_below(panels.axes[0], f"{'. '.join(notes)}.")
    return panels.figure


def _with_numbers(
    rows: Sequence[Any], columns: Sequence[Any], by: Mapping[tuple[str, ...], Measured]
) -> tuple[list[Any], dict[str, list[Any]]]:
    """Return rows with a number in any column, and the other rows by what they lack."""
    shown: list[Any] = []
    empty: dict[str, list[Any]] = {}
    for row in rows:
        runs = [by.get((str(row), str(column))) for column in columns]
        lacking = {"not run" if run is None else scores.missing(run) for run in runs}
        text = lacking.pop()
        if lacking or text is None:
            shown.append(row)
        else:
            empty.setdefault(f"{text.capitalize()} anywhere", []).append(row)
    return shown, empty


def _said(found: scores.Ratio | str | None) -> tuple[str, float, bool]:
    """Return a cell's text, the ratio that colors it, and whether that surely differs from one.

    A bound that does not tell on which side of one the ratio is has no color.
    """
    if isinstance(found, str):
        return LACKING[found], np.nan, False
    if found is None:
        return "–", np.nan, False
    value = found.value
    if np.isinf(value):
        return DIVERGED, value, True
    text = f"{value:.2g}" if value < 9.95 else f"{value:.0f}" if value < 1000 else ">999"
    text = {"": "", "<": "≤", ">": "≥"}[found.bound] + text
    return text, value if found.sure or not found.bound else np.nan, found.sure
