"""Graphs of matrices, tables and networkx graphs that a caller gives in Python."""

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from concord.errors import ConcordError, short
from concord.networks.graph import Graph, graph_of_pairs
from concord.values import check_masks

# Rows and columns of weights may miss 1 by this much, and W and its transpose differ.
ROUNDING = 1e-10


def _is_instance_of(graph: Any, library: str, *kinds: str) -> bool:
    """Return whether an object is of one of a library's classes, without importing the library."""
    module = sys.modules.get(library)  # whoever has such an object has imported it
    return any(isinstance(graph, getattr(module, kind)) for kind in kinds) if module else False


def _agent_names(nodes: Iterable[Any]) -> tuple[Any, ...]:
    """Return a graph's nodes in the order of the agents that they become.

    Nodes that are the numbers 0 to N - 1 are ordered by number, others stay in the order given.
    """
    names = tuple(nodes)
    numbers = range(len(names))
    return tuple(numbers) if set(names) == set(numbers) else names


def graph_of(given: Any) -> Graph:
    """Return the graph of a networkx graph, a matrix, or a table of pandas."""
    if isinstance(given, Graph):
        return given
    if _is_instance_of(given, "networkx", "Graph"):
        return _graph_of_networkx(given)
    return _graph_of_matrix(given)


def _graph_of_networkx(graph: Any) -> Graph:
    """Return the graph of a networkx graph, with its nodes as names of the agents."""
    names = _agent_names(graph)
    place = {node: agent for agent, node in enumerate(names)}
    pairs = [(place[one], place[other]) for one, other in graph.edges()]
    return replace(_connect_pairs(len(names), pairs, directed=graph.is_directed()), nodes=names)


def _graph_of_matrix(matrix: Any) -> Graph:
    """Return the graph of an adjacency matrix or of a doubly stochastic weight matrix."""
    if _is_instance_of(matrix, "pandas", "DataFrame"):
        return _graph_of_table(matrix)
    if _is_instance_of(matrix, "scipy.sparse", "sparray", "spmatrix"):
        matrix = matrix.toarray()
    check_masks(matrix, "network")
    try:
        values = np.asarray(matrix)
        values = np.empty(0) if values.dtype.kind == "c" else values.astype(float)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise ConcordError(
            f"network: {short(matrix)} is no network; give the name of a kind, a graph of "
            "networkx, or a square matrix"
        )
    symmetric = np.isfinite(values).all() and np.abs(values - values.T).max() <= ROUNDING
    if np.isin(values, (0, 1)).all() and not values.diagonal().any():
        pairs = [(int(i), int(j)) for i, j in np.argwhere(values)]
        return _connect_pairs(len(values), pairs, directed=not symmetric)
    if not symmetric:
        raise ConcordError(
            "network: the matrix is no adjacency, and as weights it is not symmetric; give a "
            "symmetric one, or a directed graph, of which samplers take the weights they need"
        )
    edges = [(int(i), int(j)) for i, j in np.argwhere(np.triu(values, 1))]
    if values.min() < 0 or np.abs(values.sum(axis=1) - 1).max() > ROUNDING:
        raise ConcordError(
            "network: the matrix is neither an adjacency (zeros and ones, zeros on the diagonal) "
            "nor doubly stochastic (not negative, rows that add up to 1); give one of these"
        )
    return replace(_connect_pairs(len(values), edges), weights=values)


def _graph_of_table(table: Any) -> Graph:
    """Return the graph of a pandas matrix, whose row and column names become agents' names."""
    rows, columns = list(table.index), list(table.columns)
    if [str(name) for name in rows] == [str(name) for name in columns]:
        columns = rows  # a header that was read from a file is text
    names = _agent_names(rows)
    if not len(rows) == len(columns) == len(set(rows)) or set(rows) != set(columns):
        return _graph_of_matrix(table.to_numpy())
    places = [[axis.index(name) for name in names] for axis in (rows, columns)]
    return replace(_graph_of_matrix(table.to_numpy()[np.ix_(*places)]), nodes=names)


def _connect_pairs(agents: int, pairs: list[tuple[int, int]], directed: bool = False) -> Graph:
    """Return the graph of given pairs; a ConcordError for a loop or a graph without agents."""
    loops = [i for i, j in pairs if i == j]
    if loops:
        raise ConcordError(f"network: an edge joins agent {loops[0]} to itself; remove it")
    if not agents:
        raise ConcordError("network: it has no agents; give a graph with nodes")
    return graph_of_pairs("own", agents, pairs, directed)
