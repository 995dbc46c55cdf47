"""The edges, one by one."""

from typing import Annotated

import networkx as nx

from concord.errors import ConcordError
from concord.options import Index, Options


class Params(Options):
    """The edges."""

    edges: Annotated[tuple[tuple[Index, Index], ...], "pairs [i, j] of agents, from 0"]
    directed: Annotated[bool, "over an edge [i, j] only j hears i; otherwise both do"] = False


def graph(params: Params, agents: int) -> nx.Graph:
    """Return the graph of the listed edges; refuse loops and edges that are listed twice."""
    graph = nx.empty_graph(agents, create_using=nx.DiGraph if params.directed else None)
    for index, edge in enumerate(params.edges):
        if max(edge) >= agents:
            problem = f"names an agent that does not exist; agents are 0 to {agents - 1}"
        elif edge[0] == edge[1]:
            problem = "joins an agent to itself; remove it"
        elif graph.has_edge(*edge):
            problem = "is given twice; remove one"
        else:
            graph.add_edge(*edge)
            continue
        raise ConcordError(f"edges[{index}]: {list(edge)} {problem}")
    return graph
