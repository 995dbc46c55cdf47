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

Boxes stand at their iterations; those that a run did not reach (at smoke scale) are left out.
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
from concord_studies.figures._options import Columns, Rows, Scale
from concord_studies.figures._panels import Panels, cross
from concord_studies.option_notes import NamesIterations
from concord_studies.results import Measured, Series

# What matplotlib calls the parts of a box.
_BOX = {
    **{"med": "median", "q1": "q25", "q3": "q75"},
    **{"whislo": "whisker_lo", "whishi": "whisker_hi"},
}
_PARTS = ("min", "max", *_BOX.values())


class Params(Options):
    """Options of a figure of box plots; see the module's text for an example."""

    iterations: Annotated[Some[Index], NamesIterations("iterations with a box")]
    points: Annotated[Count, "number of points classified, for the axis"]
    rows: Rows = None
    columns: Columns = "topology"
    agent: Annotated[Index, "agent whose predictions are counted"] = 0
    yscale: Annotated[Scale, "scale of the count; log puts a count of 0 below the axis"] = "linear"
    names: Annotated[dict | None, "other texts for values, {no_edges: Isolated}"] = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    return [Read("misclassified_median", agents=(params.agent,))]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw box plots over chains along iterations, a panel for each run."""
    panels = Panels(cross(runs, params.names, params.columns, params.rows), 1.75, "all")
    shown = [(cell, ax) for cell, ax in panels if cell.runs]
    outside, lowest = False, np.inf
    for cell, ax in shown:
        run = selection.only(cell.runs, f"panel {cell.title!r}")
        outside |= _boxes(ax, run, params)
        median = results.series(run, "misclassified_median", params.agent)
        lowest = min(lowest, median.value[median.iteration <= max(params.iterations)][-1])
    for _, ax in shown:
        ax.set_yscale(params.yscale)
        if params.yscale == "log":
            label_log_axis(ax.yaxis, lowest)
        else:
            ax.set_ylim(min(0, ax.get_ylim()[0]), None)
    log = ", log scale" if params.yscale == "log" else ""
    panels.label("iteration $k$", f"misclassified\n(of {params.points} points{log})")
    return panels.with_legend(_handles(params, outside))


def _boxes(axes: Axes, run: Measured, params: Params) -> bool:
    """Draw one run's boxes; return whether any extreme lies outside its whiskers."""
    parts = {p: results.series(run, f"misclassified_{p}", params.agent) for p in _PARTS}
    rows = _rows(run, parts["median"], params.iterations)
    boxes: list[dict[str, Any]] = []
    at_k = parts["median"].iteration[rows]
    apart = float(np.diff(at_k).min()) if len(rows) > 1 else 1.0
    for row in rows:
        # An infinite box is not drawn; a whisker or an extreme beyond the axis neither.
        at = {name: float(part.value[row]) for name, part in parts.items()}
        at = {name: value if np.isfinite(value) else np.nan for name, value in at.items()}
        beyond = [at["min"]] if at["min"] < at["whisker_lo"] else []
        beyond += [at["max"]] if at["max"] > at["whisker_hi"] else []
        boxes.append({**{key: at[part] for key, part in _BOX.items()}, "fliers": beyond})
    lost = at_k[~np.isfinite(parts["max"].value[rows])]
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
    if len(lost):
        top, height = axes.get_xaxis_transform(), np.full(len(lost), 0.97)
        axes.plot(lost, height, transform=top, color=line["color"], **_CROSS)
    axes.set_xlim(at_k[0] - 0.7 * apart, at_k[-1] + 0.7 * apart)
    axes.grid(False, axis="x")
    return any(box["fliers"] for box in boxes)


def _rows(run: Measured, counts: Series, iterations: tuple[int, ...]) -> list[int]:
    """Return the rows of a series that get a box."""
    rows = {k: row for row, k in enumerate(counts.iteration.astype(int).tolist())}
    wanted = [k for k in iterations if k <= run.run["iterations"]]
    if absent := [k for k in wanted if k not in rows]:
        raise ConcordError(
            f"run {run.name} has no counts at iteration {absent[0]}; record it, or choose among "
            f"{', '.join(map(str, rows))}"
        )
    return [rows[k] for k in wanted]


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
