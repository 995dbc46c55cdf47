"""What each hospital learns of its own effect: intervals beside those of the posterior.

A panel for each experiment, a row for each hospital: from above its own rows alone, the law of its
effect for each value of the label ``effects``, all as mean and standard deviation, over a band of
the whole model's posterior. Below them the bytes of a vector for each of these values.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord.options import Options
from concord_studies import results, selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures.panels import Names, Panels, arrange_panels
from concord_studies.results import Measured

ROW = 0.21  # inches
MOST = 8  # hospitals shown


class Params(Options):
    """Options of the figure."""

    names: Names = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    names = [f"{law}_{moment}" for law in LAWS for moment in ("mean", "sd")]
    each = [Read(name, agents=tuple(range(MOST))) for name in names]
    return [*each, Read("vector_bytes", agents=("network",))]


LAWS = ("alone", "effect", "exact")


@style.drawing
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the hospitals of each experiment in a panel."""
    shown = selection.split(runs, "experiment")
    titles = [style.name("experiment", value, params.names) for value, _ in shown]
    cells = arrange_panels(zip(titles, [of for _, of in shown], strict=True))
    panels = Panels(cells, 0.8 + ROW * 3 * MOST / 2, "none", "full")
    values = selection.distinct(runs, "effects")
    colors = {"home": style.BLUE, "shared": style.VERMILION}
    for cell, axes in panels:
        places = np.arange(MOST)
        center, spread = _moments(cell.runs[0], "exact")
        axes.barh(places, 2 * spread, 0.8, center - spread, color=style.lighten(style.GRAY))
        axes.plot([center, center], [places - 0.4, places + 0.4], color="black", lw=1)
        bars = [(style.MUTED, *_moments(cell.runs[0], "alone"))]
        for row, run in enumerate(cell.runs):
            color = colors[run.run["labels"]["effects"]]
            bars.append((color, *_moments(run, "effect")))
            size = results.series(run, "vector_bytes", "network").value[-1]
            text = f"{size:g} bytes a vector"
            below = MOST - 0.15 + 0.4 * row
            axes.text(
                center.mean(), below, text, color=color, ha="center", va="center", size="small"
            )
        for row, (color, mean, sd) in enumerate(bars):
            at = places + 0.26 * (row - (len(bars) - 1) / 2)
            axes.errorbar(mean, at, xerr=sd, fmt="o", ms=2.5, lw=1.1, color=color)
        axes.set_yticks(places, [str(agent + 1) for agent in places])
        axes.set_ylim(MOST + 0.55, -0.6)
        axes.margins(x=0.04)
        axes.use_sticky_edges = False  # bands end within the panel
        axes.grid(visible=False, axis="y")
    panels.label("own effect", "hospital")
    handles: list[Any] = [
        Patch(color=style.lighten(style.GRAY), label="the whole model's posterior"),
        style.entry("its own rows alone", color=style.MUTED, marker="o"),
    ]
    for value in values:
        text = style.name("effects", value, params.names)
        handles.append(style.entry(text, color=colors[value], marker="o"))
    return panels.with_legend(handles)


def _moments(run: Measured, law: str) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of the hospitals' effects under a law."""
    mean, sd = (
        np.array([results.series(run, f"{law}_{of}", agent).value[-1] for agent in range(MOST)])
        for of in ("mean", "sd")
    )
    return mean, sd
