"""Drawings of graphs between agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from concord.networks.conditions import Conditions
from concord.networks.effects import BurstLoss, RandomLinks, Static
from concord.networks.graph import Graph
from concord.pictures import look

NODE = 12.0  # largest diameter in points
LEAST = 2.5  # smallest diameter in points
NUMBERED = 8.5  # smallest diameter in points that a number fits into
FITTING = 3  # letters of a name that fit into an agent's circle
SWEEPS = 300  # in which agents move off edges
CLEAR = 0.1  # distance that an agent should have to edges of others, in a drawing of width 2
SIDE = 2.4  # inches of a drawing
ASIDE = 0.4  # part of a direction from which on a name begins, or ends, at its agent
DASHES: Any = (0, (3, 2))

# Drawn on a circle.
ROUND = ("directed_ring", "directed_exponential", "complete", "ring", "no_edges", "exponential")


@look.styled
def plot_graph(graph: Graph, names: Sequence[str], conditions: Conditions) -> look.Picture:
    """Draw a graph between agents; edges with a direction are arrows to who receives.

    names: of the agents. conditions: links that do not carry all messages are dashed, agents that
    sleep are pale, and a legend says how often.
    """
    entries = _describe_conditions(conditions)
    height = SIDE + 0.16 * len(entries) + 0.1 * bool(entries)
    picture = look.Picture(figsize=(SIDE, height), layout="constrained")
    draw_graph(picture.subplots(), graph, 72 * SIDE, names, conditions)
    if entries:
        handles = [Line2D([], [], label=text, **line) for text, line in entries]
        picture.legend(handles=handles, loc="outside lower center", fontsize=look.SMALL)
    return picture


def _describe_conditions(conditions: Conditions) -> list[tuple[str, dict[str, Any]]]:
    """Return what a legend says of links that are not always up, and of agents that sleep.

    With each text come the matplotlib options of what it explains.
    """
    loss, schedule = conditions.loss, conditions.schedule
    dashed: dict[str, Any] = {"color": look.GRAY, "linestyle": DASHES}
    texts = []
    if isinstance(loss, BurstLoss):
        texts.append(f"{loss.share:.2g} of all messages lost, in bursts")
    elif loss is not None:
        texts.append(f"each message lost with probability {loss.rate:g}")
    if isinstance(schedule, RandomLinks):
        texts.append(f"each link up with probability {schedule.probability:g}")
    elif not isinstance(schedule, Static):
        texts.append(schedule.says)
    entries = [(text, dashed) for text in texts]
    if conditions.awake < 1:
        fill = {"markerfacecolor": "white", "markeredgecolor": look.GRAY, "markersize": 6}
        asleep = f"each agent asleep with probability {1 - conditions.awake:.3g}"
        entries.append((asleep, {"marker": "o", "linestyle": "", **fill}))
    return entries


def draw_graph(
    axes: Axes,
    graph: Graph,
    side: float,
    names: Sequence[str],
    conditions: Conditions | None = None,
) -> None:
    """Draw a graph on ``side`` points of width; agents have names, in or by them.

    conditions: as of ``plot_graph``; None: none.
    """
    conditions = conditions or Conditions()
    at, color = place_agents(graph), look.AGENTS[1]
    reach = np.abs(at).max(initial=0.5) * 1.22
    apart = np.linalg.norm(at[:, None] - at, axis=2) + 4 * np.eye(graph.agents)
    part = 0.45 if graph.directed else 0.6  # arrows need more room between agents
    room = min(part * apart.min(), 1.8 * _clearances(at, graph.edges).min(initial=4))
    diameter = max(min(NODE, 0.13 * side, room * side / (2 * reach)), LEAST)
    # Many edges get thin and pale, or a large complete graph would be a gray disk.
    many = max(len(graph.edges), 1)
    width, alpha = max(0.2, min(1.0, 60 / many)), min(1.0, 500 / many)
    line: dict[str, Any] = {"linewidth": width, "alpha": alpha, "zorder": 1}
    if conditions.loss is not None or not isinstance(conditions.schedule, Static):
        line["linestyle"] = DASHES
    if graph.directed:
        ways = set(map(tuple, graph.edges.tolist()))
        line |= {"arrowstyle": "-|>", "mutation_scale": 6.5, "color": look.GRAY}
        line |= dict.fromkeys(("shrinkA", "shrinkB"), diameter / 2 + 1)
        for sender, receiver in sorted(ways):
            line["connectionstyle"] = f"arc3,rad={0.15 * ((receiver, sender) in ways)}"
            axes.add_patch(FancyArrowPatch(tuple(at[sender]), tuple(at[receiver]), **line))
    else:
        axes.add_collection(LineCollection(list(at[graph.edges]), colors=look.GRAY, **line))
    fill, edge = look.mix(color, "white", 0.3), look.darken(color)
    if conditions.awake < 1:
        fill, edge = "white", look.GRAY
    dots: dict[str, Any] = {"s": diameter**2, "c": [fill], "edgecolors": edge, "linewidths": 0.7}
    axes.scatter(at[:, 0], at[:, 1], **dots, zorder=2)
    if diameter >= NUMBERED:
        inside: dict[str, Any] = {"ha": "center", "va": "center_baseline", "zorder": 3}
        beside: dict[str, Any] = {"fontsize": look.SMALL, "zorder": 3}
        beside["bbox"] = {"facecolor": "white", "alpha": 0.7, "pad": 0, "linewidth": 0}
        for agent, (name, (x, y)) in enumerate(zip(names, at, strict=True)):
            if len(name) <= FITTING:
                axes.text(x, y, name, fontsize=0.6 * diameter, **inside)
                continue
            way = _free_direction(at, graph.edges, agent)
            shift: dict[str, Any] = {
                "xytext": tuple((diameter / 2 + 2) * way),
                "textcoords": "offset points",
                "ha": ("right", "center", "left")[1 + int(np.trunc(way[0] / ASIDE).clip(-1, 1))],
                "va": ("top", "center", "bottom")[1 + int(np.trunc(way[1] / ASIDE).clip(-1, 1))],
            }
            axes.annotate(name, (x, y), **shift, **beside)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)


def _free_direction(at: np.ndarray, edges: np.ndarray, agent: int) -> np.ndarray:
    """Return the direction of length 1 in which an agent's name is farthest from its edges."""
    others = np.concatenate([edges[edges[:, 0] == agent, 1], edges[edges[:, 1] == agent, 0]])
    away = at[others] - at[agent] if len(others) else -at[[agent]]
    angles = np.sort(np.arctan2(away[:, 1], away[:, 0]))
    gaps = np.diff(angles, append=angles[0] + 2 * np.pi)
    widest = int(np.argmax(gaps))
    middle = angles[widest] + gaps[widest] / 2
    return np.array([np.cos(middle), np.sin(middle)])


def place_agents(graph: Graph) -> np.ndarray:
    """Return the places of agents in a drawing, (agents, 2), centered, within [-1, 1]."""
    if graph.name in ROUND or graph.agents < 3:
        angle = np.pi / 2 - 2 * np.pi * np.arange(graph.agents) / graph.agents
        at = np.column_stack([np.cos(angle), np.sin(angle)])
        return at - (at.max(axis=0) + at.min(axis=0)) / 2
    import networkx  # of no other graph

    network = networkx.empty_graph(graph.agents)
    network.add_edges_from(graph.edges.tolist())
    if networkx.is_connected(network):
        places = networkx.kamada_kawai_layout(network)
    else:
        places = networkx.spring_layout(network, seed=1)
    at = _move_off_edges(np.array([places[agent] for agent in range(graph.agents)]), graph.edges)
    at -= (at.max(axis=0) + at.min(axis=0)) / 2
    return at / np.abs(at).max()


def _offsets(at: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the vectors from the nearest point of each edge to each agent, (edges, agents, 2)."""
    start, along = at[edges[:, 0]], at[edges[:, 1]] - at[edges[:, 0]]
    squares = np.maximum((along**2).sum(axis=1), 1e-12)
    part = np.einsum("eak,ek->ea", at[None] - start[:, None], along) / squares[:, None]
    return at[None] - (start[:, None] + part.clip(0, 1)[..., None] * along[:, None])


def _clearances(at: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the distance of each agent to each edge that does not end there, else infinity."""
    away = np.linalg.norm(_offsets(at, edges), axis=2)
    rows = np.arange(len(edges))
    away[rows, edges[:, 0]] = away[rows, edges[:, 1]] = np.inf
    return away


def _move_off_edges(at: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return places near ``at`` where agents are farther from edges between others.

    An edge that runs through an agent would seem to end there.
    """
    best, most = at, 0.0
    for _ in range(SWEEPS):
        clear = _clearances(at, edges)
        gaps = np.linalg.norm(at[:, None] - at, axis=2) + 4 * np.eye(len(at))
        wanted, least = min(CLEAR, 0.6 * gaps.min()), clear.min(initial=4)
        if min(least, gaps.min() / 2) > most:
            best, most = at, min(least, gaps.min() / 2)
        if least >= wanted:
            break
        away = _offsets(at, edges)
        length = np.maximum(np.linalg.norm(away, axis=2, keepdims=True), 1e-9)
        push = 0.2 * away / length * np.maximum(wanted - clear, 0)[..., None]
        move = push.sum(axis=0)
        for end in edges.T:  # edges give way, too
            np.subtract.at(move, end, push.sum(axis=1) / 2)
        at = at + move
        at = at / np.abs(at).max()
    return best
