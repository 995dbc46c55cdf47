"""A ring on which agent i sends to agent i + 1; some agents send across it too (chords).

Where not all agents have a chord some hear more than they send to: rows and columns of the
adjacency have different sums, and averaging what is heard does not keep the average.
"""

from typing import Annotated, Any

import networkx as nx

from concord.errors import ConcordError
from concord.options import Count, Options


class Params(Options):
    """The chords."""

    every: Annotated[Count | None, "agents 0, every, 2 every, ... have a chord; none: no agent"] = (
        None
    )
    reach: Annotated[Count | None, "agents to the end of a chord; none: half of the ring"] = None


def graph(params: Params, agents: int) -> Any:
    """Return a directed ring with chords, or refuse a chord that leads nowhere new."""
    graph = nx.empty_graph(agents, create_using=nx.DiGraph)
    graph.add_edges_from((i, (i + 1) % agents) for i in range(agents) if agents > 1)
    if params.every is None:
        return graph
    reach = agents // 2 if params.reach is None else params.reach
    if not 1 < reach < agents:
        raise ConcordError(
            f"reach: a chord over {reach} agents leads nowhere new on a ring of {agents}; use 2 to "
            f"{agents - 1}, or leave out every"
        )
    graph.add_edges_from((i, (i + reach) % agents) for i in range(0, agents, params.every))
    return graph
