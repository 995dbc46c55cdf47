"""One metric of runs against another, a curve along what varies, such as a sampler's step size.

With a cost on the x axis and an error on the y axis, curves nearer to the lower left are better:
what no other curve lies to the lower left of is the Pareto front, drawn as a gray band's edge. What
a researcher writes in a study's YAML::

    x: bytes_to_0.1
    y: stationary_b2
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.figure import Figure

from concord.options import Options
from concord_studies import selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._axes import label_log_axis
from concord_studies.figures.panels import Names, Panels, arrange_panels, split_lines
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
    (ax,) = panels.axes
    curves, handles = [], []
    for _, look, text, entry_runs in split_lines(shown, shown, "entry", params.names):
        points = np.array([_read_point(run, params) for run in entry_runs])
        points = np.where(np.isfinite(points).all(axis=1, keepdims=True), points, np.nan)
        ax.plot(*points.T, ms=2.8, lw=0.9, **look.line)
        curves.append(points)
        label = text if np.isfinite(points).any() else f"{text} (no point)"
        handles.append(style.entry(label, ms=3, **look.line))
    gray: dict[str, Any] = {"color": style.GRAY, "lw": 4, "alpha": 0.3}
    if np.isfinite(np.concatenate(curves)).any():  # a log scale needs a point
        ax.set(xscale="log", yscale="log")
        label_log_axis(ax.xaxis)
        label_log_axis(ax.yaxis)
        ax.plot(*_find_front(np.concatenate(curves)), **gray, zorder=0, solid_capstyle="butt")
    panels.label(params.xlabel or params.x, params.ylabel or params.y)
    return panels.with_legend([*handles, style.entry("Pareto front", **gray)])


def _read_point(run: Measured, params: Params) -> list[float]:
    """Return the last values of both metrics, nan where the run has none."""
    series = (run.values(metric, "worst") for metric in (params.x, params.y))
    return [float(values[-1]) if len(values) else float("nan") for values in series]


def _find_front(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y of the corners of the staircase below and left of which no point lies."""
    points = points[np.isfinite(points).all(axis=1)]
    x, y = points[np.lexsort((points[:, 1], points[:, 0]))].T
    least = np.minimum.accumulate(y)
    steps = np.diff(least, prepend=np.inf) < 0
    return np.repeat(x[steps], 2)[1:], np.repeat(least[steps], 2)[:-1]
