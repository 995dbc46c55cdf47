"""The graphs of the runs' topologies, side by side.

Agents carry their index as everywhere in Concord, counted from 0. Complete graphs, rings and
graphs without edges are drawn on a circle, agent 0 on top and clockwise; stars, paths and grids in
their own form; any other graph as springs between neighbors would place it.

What a researcher writes in a paper's YAML (Gürbüzbalaban et al., Fig 1): nothing beyond the kind
and the experiment, or the order of the panels::

    select: {topology: [complete, ring, no_edges]}
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from concord import results
from concord.figures import _common, style
from concord.figures._common import Cell
from concord.options import Options
from concord.results import Measured

if TYPE_CHECKING:
    from concord.networks.topology import Topology

KIND = "networks"
NODE = 12.0  # largest diameter in points
NUMBERED = 8.5  # smallest diameter in points that a number fits into


class Params(Options):
    """Options of a figure of networks."""

    select: Annotated[
        dict | None,
        "runs whose graphs are drawn: {label: value or [values]}; a list sets the order",
    ] = None
    width: Annotated[Literal["column", "full"], "column (3.4 in) or full (7 in)"] = "column"
    names: Annotated[dict | None, "other texts for topologies, {ring: Circular}"] = None


def reads(params: Params) -> list[str]:
    """Return the metrics that some of the runs must have."""
    return []


@style.styled
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw each different graph of the runs once, in the order in which the runs show them.

    Only ``topology`` and ``agents`` of their ``run.yaml`` are used; their tables may be empty.

    Raises
    ------
    ConcordError
        If there are no runs or none is selected.
    """
    from concord.networks.topology import build

    graphs: dict[Topology, Measured] = {}
    for measured in results.select(runs, params.select, KIND):
        options = dict(measured.run["topology"])
        graph = build(options.pop("kind"), measured.run["agents"], **options)
        graphs.setdefault(graph, measured)
    sizes = {graph.agents for graph in graphs}
    cells = []
    places = _common.wrap(len(graphs))
    for (graph, measured), place in zip(graphs.items(), places, strict=True):
        title = style.name("topology", graph.name, params.names)
        title = textwrap.fill(title, 15, break_on_hyphens=False, break_long_words=False)
        if len(sizes) > 1:
            title += f"\n$N$ = {graph.agents}"
        cells.append(Cell(title, [measured], *place))
    columns = 1 + max(cell.column for cell in cells)
    side = (style.COLUMN if params.width == "column" else style.FULL) / max(columns, 2)
    figure, axes = _common.axes_of(cells, "none", params.width, side + 0.15)
    numbered = [_graph(ax, g, 72 * side) for g, ax in zip(graphs, axes, strict=True)]
    if any(numbered):
        figure.supxlabel("agents are numbered from 0", fontsize=6, color=style.GRAY)
    return figure


def _graph(axes: Axes, graph: Topology, side: float) -> bool:
    """Draw one graph on ``side`` points of width; return whether its agents carry numbers."""
    at = positions(graph)
    reach = np.abs(at).max(initial=0.5) * 1.22
    color = style.looks("topology", [graph.name])[0].color
    apart = np.linalg.norm(at[:, None] - at, axis=2) + 4 * np.eye(graph.agents)
    diameter = min(NODE, 0.13 * side, 0.6 * apart.min() * side / (2 * reach))
    ends = np.array(graph.edges, dtype=int).reshape(-1, 2)
    # Many edges get thin and pale, or a large complete graph would be a gray disk.
    many = max(len(ends), 1)
    width, alpha = max(0.2, min(1.0, 60 / many)), min(1.0, 500 / many)
    axes.add_collection(
        LineCollection(list(at[ends]), colors=style.GRAY, linewidths=width, alpha=alpha, zorder=1)
    )
    axes.scatter(
        at[:, 0],
        at[:, 1],
        s=diameter**2,
        c=[style.mix(color, "white", 0.3)],
        edgecolors=style.dark(color),
        linewidths=0.7,
        zorder=2,
    )
    numbered = diameter >= NUMBERED
    if numbered:
        for agent, (x, y) in enumerate(at):
            size = 0.6 * diameter
            axes.text(x, y, str(agent), ha="center", va="center_baseline", fontsize=size, zorder=3)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    return numbered


ROUND = ("complete", "ring", "no_edges", "exponential", "watts_strogatz")


def positions(graph: Topology) -> np.ndarray:
    """Return the position of each agent, shape (agents, 2), centered, within [-1, 1]."""
    if graph.name in ROUND or graph.agents < 3:
        return _circle(graph.agents)
    if graph.name == "star":
        center = int(np.argmax(graph.degrees))
        around = iter(_circle(graph.agents - 1))
        return np.array([(0.0, 0.0) if i == center else next(around) for i in range(graph.agents)])
    ends = np.array(graph.edges, dtype=int).reshape(-1, 2)
    if graph.name in ("path", "grid"):
        # Agents of a grid are numbered row by row, so its longest edges reach the row below.
        columns = int((ends[:, 1] - ends[:, 0]).max()) if graph.name == "grid" else graph.agents
        agents = np.arange(graph.agents)
        return _fit(np.column_stack([agents % columns, -(agents // columns)]))
    import networkx

    network = networkx.Graph()
    network.add_nodes_from(range(graph.agents))
    network.add_edges_from(graph.edges)
    placed = networkx.spring_layout(network, seed=1)
    return _fit(np.array([placed[agent] for agent in range(graph.agents)]))


def _fit(at: np.ndarray) -> np.ndarray:
    centered = at - (at.max(axis=0) + at.min(axis=0)) / 2
    return centered / np.abs(centered).max()


def _circle(count: int) -> np.ndarray:
    angle = np.pi / 2 - 2 * np.pi * np.arange(count) / count
    return np.column_stack([np.cos(angle), np.sin(angle)])
