"""Box plots over chains of the number of points that agent 1 misclassifies, at some iterations.

Drawn from the metrics ``misclassified_{q25,median,q75,whisker_lo,whisker_hi,min,max}``: box from
the first to the third quartile, thick line at the median, whiskers as the metric has them, small
marks at the extremes where they lie outside the whiskers. Where a chain diverged, so that its
counts are infinite, a cross is at the top; the box is left out if its part of the chains did.

What a researcher writes in a paper's YAML (Gürbüzbalaban et al., Figs 5 to 8)::

    columns: reading
    beside: topology
    iterations: [0, 20, 40, 60, 80, 100]

Boxes stand at their iterations; those that a run did not reach (at smoke scale) are left out. Those
of the values of ``beside`` stand side by side, in colors of their own.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord.errors import ConcordError
from concord.options import Index, Options, Some
from concord_studies import results, selection, words
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures.panels import (
    Columns,
    Names,
    Panels,
    cross_panels,
    split_lines,
)
from concord_studies.option_notes import NamesIterations, NamesLabel
from concord_studies.results import Measured

AGENT = 0
# What matplotlib calls the parts of a box.
BOX = {"med": "median", "q1": "q25", "q3": "q75", "whislo": "whisker_lo", "whishi": "whisker_hi"}
_EXTREME: dict[str, Any] = {"marker": "_", "markersize": 3, "markeredgewidth": 0.8}
_CROSS: dict[str, Any] = {"marker": "x", "markersize": 4, "linestyle": "", "clip_on": False}


class Params(Options):
    """Options of a figure of box plots; see the module's text for an example."""

    iterations: Annotated[Some[Index], NamesIterations("iterations with a box")]
    beside: Annotated[str, NamesLabel("label whose values have their boxes side by side")]
    columns: Columns = None
    names: Names = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    return [Read("misclassified_median", agents=(AGENT,))]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw box plots over chains along iterations, side by side for the values of ``beside``."""
    panels = Panels(cross_panels(runs, params.names, params.columns), 2.0)
    shown = [(cell, axes) for cell, axes in panels if cell.runs]
    extremes, faces = False, dict[str, str]()
    for cell, axes in shown:
        lines = list(split_lines(cell.runs, runs, params.beside, params.names))
        for place, (_, look, text, group) in enumerate(lines):
            run = selection.take_single(group, f"panel {cell.title!r}")
            boxes = _draw_boxes(axes, run, params.iterations, look.color, place, len(lines))
            extremes |= any(box["fliers"] for box in boxes)
            faces[text] = look.color
    top = max((axes.get_ylim()[1] for _, axes in shown), default=1.0)
    for _, axes in shown:
        axes.set_ylim(0, top)
    panels.label("iteration $k$", "misclassified points")
    named = [Patch(**_look(color), label=text) for text, color in faces.items()]
    return panels.with_legend([*named, *_legend_entries(extremes)])


def _look(color: str) -> dict[str, Any]:
    """Return face and edge of a box of a color."""
    edge = style.darken(color)
    return {"facecolor": style.mix(color, "white", 0.3), "edgecolor": edge, "linewidth": 0.7}


def _draw_boxes(
    axes: Axes, run: Measured, iterations: Sequence[int], color: str, place: int, count: int
) -> list[dict[str, Any]]:
    """Draw the boxes of a run at those iterations that it reached; return what ``bxp`` draws.

    place, count: which one of how many boxes side by side these are.
    """
    parts = {
        part: results.series(run, f"misclassified_{part}", AGENT)
        for part in ("min", "max", *BOX.values())
    }
    recorded = parts["median"].iteration.astype(int)
    reached = [k for k in iterations if k <= run.run["iterations"]]
    if absent := [k for k in reached if k not in recorded]:
        raise ConcordError(
            f"run {run.name} has no counts at iteration {absent[0]}; record it, or choose among "
            f"{', '.join(map(str, recorded))}"
        )
    boxes = []
    for row in np.searchsorted(recorded, reached):
        # An infinite box is not drawn; a whisker or an extreme beyond the axis neither.
        at = {part: float(counts.value[row]) for part, counts in parts.items()}
        at = {part: count if np.isfinite(count) else np.nan for part, count in at.items()}
        fliers = [at["min"]] if at["min"] < at["whisker_lo"] else []
        fliers += [at["max"]] if at["max"] > at["whisker_hi"] else []
        boxes.append({**{key: at[part] for key, part in BOX.items()}, "fliers": fliers})
    apart = float(np.diff(reached).min()) if len(reached) > 1 else 1.0
    width = 0.8 * apart / count
    at_place = np.array(reached) + (place - (count - 1) / 2) * width
    look, edge = _look(color), style.darken(color)
    line: dict[str, Any] = {"color": edge, "linewidth": 0.7}
    axes.bxp(
        boxes,
        positions=at_place,
        widths=0.85 * width,
        capwidths=0.6 * width,
        patch_artist=True,
        manage_ticks=False,
        boxprops=look,
        medianprops={"color": style.BLACK, "linewidth": 1.2, "solid_capstyle": "butt"},
        whiskerprops=line,
        capprops=line,
        flierprops={**_EXTREME, "markeredgecolor": edge},
    )
    lost = [k for k in reached if not np.isfinite(parts["max"].value[recorded == k]).all()]
    if lost:
        heights, top = np.full(len(lost), 0.97), axes.get_xaxis_transform()
        axes.plot(lost, heights, transform=top, color=edge, **_CROSS)
    axes.set_xticks(reached)
    axes.set_xlim(reached[0] - 0.7 * apart, reached[-1] + 0.7 * apart)
    axes.grid(False, axis="x")
    return boxes


def _legend_entries(extremes: bool) -> list[Artist]:
    """Return the legend's entries of medians and boxes and, where any is drawn, of extremes."""
    box: dict[str, Any] = {"facecolor": "#e6e6e6", "edgecolor": style.GRAY, "linewidth": 0.7}
    mark = {**_EXTREME, "linestyle": "", "color": style.GRAY}
    entries: list[Artist] = [
        style.entry(f"median, {words.agent(AGENT)}", color=style.BLACK, linewidth=1.2),
        Patch(**box, label="quartiles, Tukey's whiskers"),
    ]
    return [*entries, style.entry("lowest and highest chain", **mark)] if extremes else entries
