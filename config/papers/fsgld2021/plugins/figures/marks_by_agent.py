"""Marks of several metrics above one another, a place for each agent of one run.

What a researcher writes in a paper's YAML (el Mekkaoui et al., Fig 4)::

    metrics: { epsilon2: FSGLD, gamma2: DSGLD }
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
from concord_studies.figures.panels import Colors, Panels, arrange_panels
from concord_studies.results import Measured


class Params(Options):
    """Options of a figure of marks."""

    metrics: Annotated[dict[str, str], "metrics, and what the legend calls them"]
    label: Annotated[str, "text beside the y axis"]
    agent: Annotated[str, "what an agent is called below the x axis"] = "agent"
    colors: Colors = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the run must have."""
    return [Read(metric) for metric in params.metrics]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw a mark for each metric and agent, on a log axis, where bars would have no foot."""
    run = selection.take_single(runs, "the figure")
    panels = Panels(arrange_panels([("", runs)]), height=2.2)
    (axes,) = panels.axes
    agents = np.arange(run.run["agents"])
    entries = []
    looks = style.looks("metric", list(params.metrics), params.colors)
    for look, (metric, text) in zip(looks, params.metrics.items(), strict=True):
        mark: dict[str, Any] = {"linestyle": "", "marker": look.marker, "color": look.color}
        axes.plot(agents, run.values(metric), **mark)
        entries.append(style.entry(text, **mark))
    axes.set_yscale("log")
    label_log_axis(axes.yaxis)
    axes.set_xticks(agents, [str(agent + 1) for agent in agents])
    axes.grid(visible=False, axis="x")
    panels.label(params.agent, params.label)
    return panels.with_legend(entries)
