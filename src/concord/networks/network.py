"""Networks: graphs with what happens on them."""

from dataclasses import replace

import numpy as np

from concord.errors import ConcordError
from concord.networks.conditions import Conditions, InTurn, Matchings, OnePeer, Pair
from concord.networks.edges import Edges
from concord.networks.topology import Topology


def under(topology: Topology, conditions: Conditions | None, where: str) -> Topology:
    """Return the network on which this happens; the topology as it is where nothing does.

    A ConcordError if nothing can happen since there are no edges, the schedule does not suit the
    graph, or conditions do not go together.
    """
    if conditions is None:
        return topology
    if topology.messages is not None and conditions != Conditions():
        raise ConcordError(
            f"{where}: {topology.name} averages over all agents at once, and what happens on "
            "the way there and back is not modelled; remove it, or use topology complete"
        )
    conditions.check(topology.agents, where)
    if not conditions.eventful:
        return topology
    if not conditions.perfect:
        _check_graph(topology, conditions, where)
    return replace(topology, conditions=conditions)


def _check_graph(topology: Topology, conditions: Conditions, where: str) -> None:
    """Refuse what cannot happen on this graph."""
    if not topology.edges:
        raise ConcordError(
            f"{where}: {topology.name} of {topology.agents} has no edges, so nothing is sent "
            "that could be lost; remove it"
        )
    if conditions.on_loss == "sender_keeps" and conditions.delay is not None:
        raise ConcordError(
            f"{where}.on_loss: sender_keeps would count what is still on its way twice; use "
            "another one, or remove delay"
        )
    schedule = conditions.schedule
    if isinstance(schedule, (Matchings, Pair)) and topology.directed:
        raise ConcordError(
            f"{where}.schedule: in pairs agents hear each other, and the edges of {topology.name} "
            "have a direction; use another schedule, or an undirected topology"
        )
    if isinstance(schedule, OnePeer) and len(set(topology.degrees)) > 1:
        raise ConcordError(
            f"{where}.schedule: one_peer needs agents that have equally many neighbors to send to, "
            f"and those of {topology.name} have {topology.degrees.min()} to "
            f"{topology.degrees.max()}; use another schedule or topology"
        )
    in_turn = schedule.graphs if isinstance(schedule, InTurn) else ()
    known = set(topology.edges if in_turn else ())
    for turn, graph in enumerate(in_turn):
        for number, edge in enumerate(graph):
            if (edge if topology.directed else (min(edge), max(edge))) not in known:
                raise ConcordError(
                    f"{where}.schedule.graphs[{turn}][{number}]: {list(edge)} is no edge of the "
                    f"topology, {topology.name}; add it there, or remove it here"
                )


def drawing(
    topology: Topology, masks: np.random.Generator, times: np.random.Generator | None = None
) -> Topology:
    """Return a network that draws what happens from generators, if anything does.

    ``times`` are those of gradients, for networks with a clock.
    """
    if not topology.conditions.eventful:
        return topology
    return replace(topology, masks=masks, times=times)


def turns(network: Topology, edges: Edges) -> np.ndarray | None:
    """Return which ways are up in turn, (turns, edges, 1); None without such a schedule."""
    schedule, agents = network.conditions.schedule, network.agents
    if isinstance(schedule, OnePeer):
        ahead = np.lexsort(((edges.receivers - edges.senders) % agents, edges.senders))
        peers = ahead.reshape(agents, -1)
        table = np.zeros((peers.shape[1], len(ahead), 1), dtype=bool)
        table[np.arange(len(table)), peers] = True
        return table
    if not isinstance(schedule, InTurn):
        return None
    table = np.zeros((len(schedule.graphs), len(edges.links), 1), dtype=bool)
    for turn, graph in zip(table, schedule.graphs, strict=True):
        senders, receivers = np.array(graph, dtype=np.intp).reshape(-1, 2).T
        turn[edges.ways(receivers, senders)] = True
        if not network.directed:
            turn[edges.ways(senders, receivers)] = True
    return table


def one_by_one(network: Topology) -> bool:
    """Tell whether its schedule lets an agent hear at most one neighbor in an iteration."""
    edges = Edges(network)
    if (table := turns(network, edges)) is None:
        return isinstance(network.conditions.schedule, (Matchings, Pair))
    heard = edges.of_receiver(np.add, table[..., 0].T.astype(int))
    return bool((heard <= 1).all())
