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
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from concord.networks.graph import Graph
from concord.networks.topology import build_graph
from concord.options import Options
from concord_studies import selection
from concord_studies.figures import style
from concord_studies.figures.panels import Names, Panels, Select, arrange_panels
from concord_studies.results import Measured

NODE = 12.0  # largest diameter in points
NUMBERED = 8.5  # smallest diameter in points that a number fits into


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
        _draw_graph(axes, graph, 72 * side)
    return panels.figure


def _draw_graph(axes: Axes, graph: Graph, side: float) -> None:
    """Draw a graph on ``side`` points of width; its agents carry numbers where there is room."""
    at, color = place_agents(graph), style.AGENTS[1]
    reach = np.abs(at).max(initial=0.5) * 1.22
    apart = np.linalg.norm(at[:, None] - at, axis=2) + 4 * np.eye(graph.agents)
    part = 0.45 if graph.directed else 0.6  # arrows need more room between agents
    diameter = min(NODE, 0.13 * side, part * apart.min() * side / (2 * reach))
    # Many edges get thin and pale, or a large complete graph would be a gray disk.
    many = max(len(graph.edges), 1)
    width, alpha = max(0.2, min(1.0, 60 / many)), min(1.0, 500 / many)
    look: dict[str, Any] = {"linewidth": width, "alpha": alpha, "zorder": 1}
    if graph.directed:
        ways = set(map(tuple, graph.edges.tolist()))
        look |= {"arrowstyle": "-|>", "mutation_scale": 6.5, "color": style.GRAY}
        look |= dict.fromkeys(("shrinkA", "shrinkB"), diameter / 2 + 1)
        for sender, receiver in sorted(ways):
            look["connectionstyle"] = f"arc3,rad={0.15 * ((receiver, sender) in ways)}"
            axes.add_patch(FancyArrowPatch(tuple(at[sender]), tuple(at[receiver]), **look))
    else:
        axes.add_collection(LineCollection(list(at[graph.edges]), colors=style.GRAY, **look))
    fill, edge = style.mix(color, "white", 0.3), style.darken(color)
    dots: dict[str, Any] = {"s": diameter**2, "c": [fill], "edgecolors": edge, "linewidths": 0.7}
    axes.scatter(at[:, 0], at[:, 1], **dots, zorder=2)
    if diameter >= NUMBERED:
        for number, (x, y) in enumerate(at, start=1):
            size = 0.6 * diameter
            axes.text(x, y, str(number), ha="center", va="center_baseline", fontsize=size, zorder=3)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)


# Drawn on a circle.
ROUND = ("directed_ring", "directed_exponential", "complete", "ring", "no_edges", "exponential")


def place_agents(graph: Graph) -> np.ndarray:
    """Return the places of agents in a drawing, (agents, 2), centered, within [-1, 1]."""
    if graph.name in ROUND or graph.agents < 3:
        angle = np.pi / 2 - 2 * np.pi * np.arange(graph.agents) / graph.agents
        return np.column_stack([np.cos(angle), np.sin(angle)])
    import networkx  # of no other graph

    network = networkx.empty_graph(graph.agents)
    network.add_edges_from(graph.edges.tolist())
    if networkx.is_connected(network):
        places = networkx.kamada_kawai_layout(network)
    else:
        places = networkx.spring_layout(network, seed=1)
    at = np.array([places[agent] for agent in range(graph.agents)])
    at -= (at.max(axis=0) + at.min(axis=0)) / 2
    return at / np.abs(at).max()
