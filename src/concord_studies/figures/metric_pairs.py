"""One metric of runs against another, a curve along what varies, such as a sampler's step size.

With a cost on the x axis and an error on the y axis, curves nearer to the lower left are better:
what no other curve lies to the lower left of is the Pareto front, drawn as a gray band's edge. What
a researcher writes in a study's YAML::

    x: bytes_to_0.1
    y: stationary_b2
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from concord.options import Options
from concord_studies import selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._axes import label_log_axis
from concord_studies.figures._panels import Names, Panels, arrange_panels, lines
from concord_studies.results import Measured


class Params(Options):
    """Options of curves of one metric against another."""

    x: Annotated[str, "metric on the x axis"]
    y: Annotated[str, "metric on the y axis"]
    xlabel: Annotated[str | None, "text of the x axis; none: the metric's name"] = None
    ylabel: Annotated[str | None, "text of the y axis; none: the metric's name"] = None
    names: Names = None


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs of the figure must have."""
    return [params.x, params.y]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw curves of one metric against another; a point that is not finite interrupts a curve."""
    shown = selection.select(runs, None)
    panels = Panels(arrange_panels([("", shown)]), 2.6)
    ax = panels.axes[0]
    everything, handles = [], []
    for _, look, text, own in lines(shown, shown, "entry", params.names):
        points = np.array([_point(run, params) for run in own])
        points = np.where(np.isfinite(points).all(axis=1, keepdims=True), points, np.nan)
        ax.plot(*points.T, ms=2.8, lw=0.9, **look.line)
        everything.append(points)
        named = text if np.isfinite(points).any() else f"{text} (no point)"
        handles.append(style.entry(named, ms=3, **look.line))
    if np.isfinite(np.concatenate(everything)).any():  # a log scale needs a point
        ax.set_xscale("log")
        ax.set_yscale("log")
        label_log_axis(ax.xaxis)
        label_log_axis(ax.yaxis)
        x, y = front(np.concatenate(everything))
        ax.plot(x, y, color=style.GRAY, lw=4, alpha=0.3, zorder=0, solid_capstyle="butt")
    panels.label(params.xlabel or params.x, params.ylabel or params.y)
    handles.append(style.entry("Pareto front", color=style.GRAY, lw=4, alpha=0.3))
    return panels.with_legend(handles)


def _point(run: Measured, params: Params) -> list[float]:
    """Return the last values of both metrics, nan where the run has none."""
    found = (run.values(metric, "worst") for metric in (params.x, params.y))
    return [float(values[-1]) if len(values) else float("nan") for values in found]


def front(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners (x, y) of the staircase below and left of which no point lies."""
    points = points[np.isfinite(points).all(axis=1)]
    points = points[np.lexsort((points[:, 1], points[:, 0]))]
    best = np.minimum.accumulate(points[:, 1])
    kept = points[points[:, 1] <= best]
    kept = kept[np.append(True, np.diff(kept[:, 1]) < 0)] if len(kept) else kept
    x = np.repeat(kept[:, 0], 2)[1:]
    y = np.repeat(kept[:, 1], 2)[:-1]
    return x, y
