"""A ring on which agent i sends to agent i + 1; some agents send across it too (chords).

Where not all agents have a chord some hear more than they send to: rows and columns of the
adjacency have different sums, and averaging what is heard does not keep the average.
"""

from typing import Annotated

import networkx as nx

from concord.errors import ConcordError
from concord.options import Count, Options


class Params(Options):
    """The chords."""

    every: Annotated[
        Count | None, "agents 0, every, 2 every, ... send to that opposite, too; none: no agent"
    ] = None


def graph(params: Params, agents: int) -> nx.DiGraph:
    """Return a directed ring of networkx with chords, or refuse chords that lead nowhere new."""
    graph = nx.empty_graph(agents, create_using=nx.DiGraph)
    graph.add_edges_from((i, (i + 1) % agents) for i in range(agents) if agents > 1)
    if params.every is None:
        return graph
    if agents < 4:
        raise ConcordError(f"every: a ring of {agents} has no chords; leave it out")
    chords = range(0, agents, params.every)
    graph.add_edges_from((i, (i + agents // 2) % agents) for i in chords)
    return graph
