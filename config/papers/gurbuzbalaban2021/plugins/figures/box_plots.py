"""Box plots over chains of the number of misclassified points, at some iterations.

Drawn from the metrics ``misclassified_{q25,median,q75,whisker_lo,whisker_hi,min,max}`` of one
agent: box from the first to the third quartile, thick line at the median, whiskers as the metric
has them, small marks at the extremes where they lie outside the whiskers. Where a chain diverged,
so that its counts are infinite, a cross is at the top; the box is left out if its part of the
chains did.

What a researcher writes in a paper's YAML (Gürbüzbalaban et al., Figs 5 to 8)::

    columns: topology
    agent: 0
    points: 569
    iterations: [0, 5, 10, 20, 30, 40, 60, 80, 100]

Without ``iterations`` about ten of the recorded ones are taken, evenly. Boxes stand at their
iterations.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord.errors import ConcordError
from concord.options import Count, Index, Options, Some
from concord_studies import results, selection, words
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._axes import label_log_axis
from concord_studies.figures._options import Columns, Limits, Rows, Scale, Select, Sharing, Width
from concord_studies.figures._panels import Panels, cross, limits
from concord_studies.option_notes import NamesIterations
from concord_studies.results import Measured, Series

BOXES = 11
# What matplotlib calls the parts of a box.
_BOX = {
    **{"med": "median", "q1": "q25", "q3": "q75"},
    **{"whislo": "whisker_lo", "whishi": "whisker_hi"},
}
_PARTS = ("min", "max", *_BOX.values())


class Params(Options):
    """Options of a figure of box plots; see the module's text for an example."""

    rows: Rows = None
    columns: Columns = "topology"
    select: Select = None
    agent: Annotated[Index, "agent whose predictions are counted"] = 0
    iterations: Annotated[Some[Index] | None, NamesIterations("iterations with a box")] = None
    points: Annotated[Count | None, "number of points classified, for the axis"] = None
    yscale: Annotated[Scale, "scale of the count; log puts a count of 0 below the axis"] = "linear"
    ylim: Annotated[Limits, "[low, high] of the count; null leaves a side to the data"] = None
    share_y: Sharing = "all"
    width: Width = "auto"
    names: Annotated[dict | None, "other texts for values, {no_edges: Isolated}"] = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    return [Read("misclassified_median", params.select, (params.agent,))]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw box plots over chains along iterations, a panel for each run."""
    chosen = selection.select(runs, params.select)
    cells = cross(chosen, params.names, params.columns, params.rows)
    panels = Panels(cells, 1.75, params.share_y, params.width)
    shown = [(cell, ax) for cell, ax in panels if cell.runs]
    outside, lowest = False, np.inf
    for cell, ax in shown:
        run = selection.only(cell.runs, f"panel {cell.title!r}")
        outside |= _boxes(ax, run, params)
        median = results.series(run, "misclassified_median", params.agent)
        end = max(params.iterations or (np.inf,))
        lowest = min(lowest, median.value[median.iteration <= end][-1])
    low, high = limits(params.ylim, "ylim")
    for _, ax in shown:
        ax.set_yscale(params.yscale)
        ax.set_ylim(low, high)
        if params.yscale == "log":
            label_log_axis(ax.yaxis, lowest)
        elif low is None:
            ax.set_ylim(min(0, ax.get_ylim()[0]), None)
    notes = [f"of {params.points} points"] if params.points else []
    notes += ["log scale"] if params.yscale == "log" else []
    of = f"\n({', '.join(notes)})" if notes else ""
    panels.label("iteration $k$", f"misclassified{of}")
    return panels.with_legend(_handles(params, outside))


def _boxes(axes: Axes, run: Measured, params: Params) -> bool:
    """Draw one run's boxes; return whether any extreme lies outside its whiskers."""
    parts = {p: results.series(run, f"misclassified_{p}", params.agent) for p in _PARTS}
    rows = _rows(run, parts["median"], params.iterations)
    boxes: list[dict[str, Any]] = []
    lost: list[float] = []
    at_k = parts["median"].iteration[rows]
    apart = float(np.diff(at_k).min()) if len(rows) > 1 else 1.0
    for row in rows:
        at = {name: float(part.value[row]) for name, part in parts.items()}
        if not np.isfinite(at["max"]):
            lost.append(float(at_k[len(boxes)]))
            # An infinite box is not drawn; a whisker or an extreme beyond the axis neither.
            at = {name: value if np.isfinite(value) else np.nan for name, value in at.items()}
        beyond = [at["min"]] if at["min"] < at["whisker_lo"] else []
        beyond += [at["max"]] if at["max"] > at["whisker_hi"] else []
        boxes.append({**{key: at[part] for key, part in _BOX.items()}, "fliers": beyond})
    color = style.AGENTS[1]
    line = {"color": style.darken(color), "linewidth": 0.7}
    axes.bxp(
        boxes,
        positions=at_k,
        widths=0.65 * apart,
        capwidths=0.4 * apart,
        patch_artist=True,
        manage_ticks=False,
        boxprops={
            "facecolor": style.mix(color, "white", 0.3),
            "edgecolor": line["color"],
            "linewidth": 0.7,
        },
        medianprops={"color": style.BLACK, "linewidth": 1.2, "solid_capstyle": "butt"},
        whiskerprops=line,
        capprops=line,
        flierprops={**_EXTREME, "markeredgecolor": line["color"]},
    )
    if lost:
        top, height = axes.get_xaxis_transform(), np.full(len(lost), 0.97)
        axes.plot(lost, height, transform=top, color=line["color"], **_CROSS)
    axes.set_xlim(at_k[0] - 0.7 * apart, at_k[-1] + 0.7 * apart)
    axes.grid(False, axis="x")
    return any(box["fliers"] for box in boxes)


def _rows(run: Measured, counts: Series, iterations: tuple[int, ...] | None) -> list[int]:
    """Return the rows of a series that get a box: as requested, or about ten.

    Iterations that the run did not reach (at smoke scale) are left out.
    """
    if iterations is None:
        last = len(counts.iteration) - 1
        if last < BOXES:
            return list(range(last + 1))
        return [round(i * last / (BOXES - 1)) for i in range(BOXES)]
    rows = []
    for k in (k for k in iterations if k <= run.run["iterations"]):
        found = np.flatnonzero(counts.iteration == k)
        if not found.size:
            raise ConcordError(
                f"run {run.name} has no counts at iteration {k}; record it, or "
                f"choose among {', '.join(f'{i:g}' for i in counts.iteration)}"
            )
        rows.append(int(found[0]))
    return rows


_CROSS: dict[str, Any] = {"marker": "x", "markersize": 4, "linestyle": "", "clip_on": False}
_EXTREME: dict[str, Any] = {"marker": "_", "markersize": 3, "markeredgewidth": 0.8}


def _handles(params: Params, outside: bool) -> list[Artist]:
    """Return the legend's entries of medians, boxes and, if drawn, extremes."""
    text = f"median, {words.agent(params.agent)}"
    handles: list[Artist] = [style.entry(text, color=style.BLACK, linewidth=1.2)]
    box: dict[str, Any] = {"facecolor": "#e6e6e6", "edgecolor": style.GRAY, "linewidth": 0.7}
    handles.append(Patch(**box, label="quartiles; whiskers: 1.5 times their distance"))
    if outside:
        mark = {**_EXTREME, "linestyle": "", "color": style.GRAY}
        handles.append(style.entry("lowest and highest chain", **mark))
    return handles
