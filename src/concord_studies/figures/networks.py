"""The graphs of the runs' topologies, side by side.

Agents carry their index as everywhere in Concord, counted from 0. Complete graphs, rings and
graphs without edges are drawn on a circle, agent 0 on top and clockwise; stars, paths and grids in
their own form; any other graph as springs between neighbors would place it.

What a researcher writes in a paper's YAML (Gürbüzbalaban et al., Fig 1): nothing beyond the kind
and the experiment, or the order of the panels::

    select: {topology: [complete, ring, no_edges]}

Edges with a direction are arrows to who hears. With ``weights`` an arrow is as wide as the weight
that its receiver gives what comes over it, and a line has gaps as long as the share that is lost;
where each direction loses by itself, each has an arrow.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from concord.networks.conditions import Conditions
from concord.networks.graph import Graph, as_dense
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.options import Options
from concord.options import build as options_of
from concord_studies import selection
from concord_studies.figures import style
from concord_studies.figures._options import Names, Select
from concord_studies.figures._panels import Panels, listed
from concord_studies.results import Measured

NODE = 12.0  # largest diameter in points
NUMBERED = 8.5  # smallest diameter in points that a number fits into


class Params(Options):
    """Options of a figure of networks."""

    select: Select = None
    width: Annotated[Literal["column", "full"], "column (3.4 in) or full (7 in)"] = "column"
    names: Names = None
    weights: Annotated[
        bool, "draw what edges weigh in the runs' mixing, and which share of vectors is lost"
    ] = False


def reads(params: Params) -> list[str]:
    """Return the metrics that some of the figure's runs must have."""
    return []


@style.drawing
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw each different graph of the runs once, in the order in which the runs show them.

    Only ``topology`` and ``agents`` of their documents are used; their tables may be empty.
    """
    drawn: dict[str, tuple[Network, Measured]] = {}
    for measured in selection.select(runs, params.select):
        parts = measured.run["topology"], measured.run["agents"]
        parts += (measured.run.get("network"),) if params.weights else ()
        drawn.setdefault(repr(parts), (_network_of(measured, params.weights), measured))
    sizes = {network.agents for network, _ in drawn.values()}
    shown = []
    for network, measured in drawn.values():
        title = style.name("topology", network.name, params.names)
        if network.conditions.loss:
            title += f", {100 * network.conditions.loss.share:g} % lost"
        title = textwrap.fill(title, 15, break_on_hyphens=False, break_long_words=False)
        if len(sizes) > 1:
            title += f"\n$N$ = {network.agents}"
        shown.append((title, [measured]))
    cells = listed(shown)
    columns = 1 + max(cell.column for cell in cells)
    side = (style.COLUMN if params.width == "column" else style.FULL) / max(columns, 2)
    panels = Panels(cells, side + 0.15, "none", params.width)
    for (network, measured), axes in zip(drawn.values(), panels.axes, strict=True):
        weights = measured.run["sampler"].get("weights") if params.weights else None
        _draw_network(axes, network, 72 * side, params.weights, weights)
    if params.weights:
        panels.figure.supxlabel(
            "width: weight; gaps: share lost", fontsize=style.SMALL, color=style.NOTE
        )
    return panels.figure


def _network_of(measured: Measured, conditioned: bool) -> Network:
    """Return a run's network, with what happens on it if that is drawn."""
    options = dict(measured.run["topology"])
    graph = build_graph(options.pop("kind"), measured.run["agents"], **options)
    stated = measured.run.get("network") if conditioned and len(graph.edges) else None
    return Network(graph, options_of(Conditions, stated or {}, "network"))


def _draw_network(
    axes: Axes, network: Network, side: float, weighted: bool, weights: str | float | None
) -> None:
    """Draw a network on ``side`` points of width; its agents carry numbers where there is room."""
    graph = network.graph
    at = positions(graph)
    reach = np.abs(at).max(initial=0.5) * 1.22
    color = style.AGENTS[1]
    apart = np.linalg.norm(at[:, None] - at, axis=2) + 4 * np.eye(graph.agents)
    diameter = min(NODE, 0.13 * side, 0.6 * apart.min() * side / (2 * reach))
    ends = graph.edges
    # Many edges get thin and pale, or a large complete graph would be a gray disk.
    many = max(len(ends), 1)
    width, alpha = max(0.2, min(1.0, 60 / many)), min(1.0, 500 / many)
    if graph.directed or weighted:
        usual = "column_stochastic" if graph.directed else "metropolis"
        matrix = as_dense(network.matrix(weights or usual)) if weighted else None
        _draw_ways(axes, network, at, side / (2 * reach), diameter, matrix, width)
    else:
        lines = list(at[ends])
        axes.add_collection(
            LineCollection(lines, colors=style.GRAY, linewidths=width, alpha=alpha, zorder=1)
        )
    axes.scatter(
        at[:, 0],
        at[:, 1],
        s=diameter**2,
        c=[style.mix(color, "white", 0.3)],
        edgecolors=style.darken(color),
        linewidths=0.7,
        zorder=2,
    )
    if diameter >= NUMBERED:
        for number, (x, y) in enumerate(at, start=1):
            size = 0.6 * diameter
            axes.text(x, y, str(number), ha="center", va="center_baseline", fontsize=size, zorder=3)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)


def _draw_ways(
    axes: Axes,
    network: Network,
    at: np.ndarray,
    unit: float,
    diameter: float,
    weights: np.ndarray | None,
    width: float,
) -> None:
    """Draw edges as lines or, where the directions differ, as arrows; of one width or by weight.

    ``unit`` is in points, as ``diameter`` and ``width``.
    """
    loss = network.conditions.loss
    graph, edges = network.graph, network.edges
    both = not graph.directed and (loss is None or loss.direction == "link")
    known = set(edges)
    pairs = edges if graph.directed or both else [*known, *((j, i) for i, j in known)]
    lost = 0.0 if loss is None else loss.share
    for sender, receiver in pairs:
        answered = (receiver, sender) in known or not (graph.directed or both)
        apart = float(np.linalg.norm(at[sender] - at[receiver]))
        dash = min(8.0, 0.35 * (unit * apart - diameter))
        size = width if weights is None else 0.3 + 4 * float(weights[receiver, sender])
        axes.add_patch(
            FancyArrowPatch(
                tuple(at[sender]),
                tuple(at[receiver]),
                arrowstyle="-" if both else "-|>",
                mutation_scale=5 + 1.5 * size,
                connectionstyle=f"arc3,rad={0.15 if answered and not both else 0}",
                shrinkA=diameter / 2 + 1,
                shrinkB=diameter / 2 + 1,
                linewidth=size,
                linestyle=(0, (dash / size * (1 - lost), dash / size * lost))
                if 0 < lost < 1
                else "-",
                capstyle="butt",
                color=style.GRAY,
                zorder=1,
            )
        )


ROUND = (
    "directed_ring",
    "directed_exponential",
    "complete",
    "ring",
    "no_edges",
    "exponential",
)


def positions(graph: Graph) -> np.ndarray:
    """Return the position of each agent, shape (agents, 2), centered, within [-1, 1]."""
    if graph.name in ROUND or graph.agents < 3:
        return _circle(graph.agents)
    if graph.name == "star":
        center = int(np.argmax(graph.degrees))
        around = iter(_circle(graph.agents - 1))
        return np.array([(0.0, 0.0) if i == center else next(around) for i in range(graph.agents)])
    ends = graph.edges
    if graph.name in ("path", "grid"):
        # Agents of a grid are numbered row by row, so its longest edges reach the row below.
        columns = int((ends[:, 1] - ends[:, 0]).max()) if graph.name == "grid" else graph.agents
        agents = np.arange(graph.agents)
        return _fit(np.column_stack([agents % columns, -(agents // columns)]))
    import networkx  # of no other graph

    network = networkx.Graph()
    network.add_nodes_from(range(graph.agents))
    network.add_edges_from(graph.edges.tolist())
    placed = networkx.spring_layout(network, seed=1)
    return _fit(np.array([placed[agent] for agent in range(graph.agents)]))


def _fit(at: np.ndarray) -> np.ndarray:
    """Return positions centered and scaled to within [-1, 1]."""
    centered = at - (at.max(axis=0) + at.min(axis=0)) / 2
    return centered / np.abs(centered).max()


def _circle(count: int) -> np.ndarray:
    """Return ``count`` positions on the unit circle, clockwise from the top, (count, 2)."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(count) / count
    return np.column_stack([np.cos(angle), np.sin(angle)])
