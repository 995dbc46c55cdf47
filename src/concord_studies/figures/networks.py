"""The graphs of the runs' topologies, side by side.

Agents are numbered from 1. Complete graphs, rings and graphs without edges are drawn on a circle,
agent 1 on top and clockwise; any other graph as springs between its agents would place it, so that
distances are those along edges, if it is connected.

What a researcher writes in a paper's YAML (Gürbüzbalaban et al., Fig 1): nothing beyond the kind
and the experiment, or the order of the panels::

    select: {topology: [complete, ring, no_edges]}

Edges with a direction are arrows to who hears.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from matplotlib.figure import Figure

from concord.networks.graph import Graph
from concord.networks.topology import build_graph
from concord.options import Options
from concord.pictures.graphs import draw_graph
from concord_studies import selection
from concord_studies.figures import style
from concord_studies.figures.panels import Names, Panels, Select, arrange_panels
from concord_studies.results import Measured


class Params(Options):
    """Options of a figure of networks."""

    select: Select = None
    names: Names = None


def reads(params: Params) -> list[str]:
    """Return no metrics: the figure shows graphs alone."""
    return []


@style.drawing
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw each different graph of the runs once, in the order in which the runs show them.

    Only ``topology`` and ``agents`` of their documents are used; their tables may be empty.
    """
    drawn: dict[str, tuple[Graph, Measured]] = {}
    for measured in selection.select(runs, params.select):
        options, agents = dict(measured.run["topology"]), measured.run["agents"]
        graph = build_graph(options.pop("kind"), agents, **options)
        drawn.setdefault(repr((measured.run["topology"], agents)), (graph, measured))
    several_sizes = len({graph.agents for graph, _ in drawn.values()}) > 1
    shown = []
    for graph, measured in drawn.values():
        title = style.name("topology", graph.name, params.names)
        title = textwrap.fill(title, 15, break_on_hyphens=False, break_long_words=False)
        shown.append((title + f"\n$N$ = {graph.agents}" * several_sizes, [measured]))
    cells = arrange_panels(shown)
    side = style.COLUMN / max(1 + max(cell.column for cell in cells), 2)
    panels = Panels(cells, side + 0.15, "none", "column")
    for (graph, _), axes in zip(drawn.values(), panels.axes, strict=True):
        names = [str(number) for number in range(1, graph.agents + 1)]
        draw_graph(axes, graph, 72 * side, names)
    return panels.figure
