"""Graphs of matrices, tables and networkx graphs that a caller gives in Python."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from concord.errors import ConcordError, short
from concord.networks.graph import Graph, graph_of_pairs
from concord.values import check_masks

# Rows and columns of weights may miss 1 by this much, and W and its transpose differ.
ROUNDING = 1e-10


def graph_of(given: Any) -> Graph:
    """Return the graph of a networkx graph, a matrix, or a table of pandas."""
    if isinstance(given, Graph):
        return given
    if hasattr(given, "nodes"):  # of networkx
        names = _agent_names(given)
        place = {node: agent for agent, node in enumerate(names)}
        pairs = [(place[one], place[other]) for one, other in given.edges()]
        return _connect_pairs(names, pairs, directed=given.is_directed())
    if hasattr(given, "columns"):  # of pandas
        names = _agent_names(given.index)
        if set(names) == set(given.columns):
            return _graph_of_matrix(given.loc[[*names], [*names]].to_numpy(), names)
        given = given.to_numpy()
    return _graph_of_matrix(given.toarray() if hasattr(given, "toarray") else given)


def _agent_names(nodes: Iterable[Any]) -> tuple[Any, ...]:
    """Return a graph's nodes in the order of the agents that they become.

    Nodes that are the numbers 0 to N - 1 are ordered by number, others stay in the order given.
    """
    names = tuple(nodes)
    numbers = range(len(names))
    return tuple(numbers) if set(names) == set(numbers) else names


def _graph_of_matrix(matrix: Any, names: tuple[Any, ...] | None = None) -> Graph:
    """Return the graph of an adjacency matrix or of a doubly stochastic weight matrix."""
    check_masks(matrix, "network")
    try:
        values = np.asarray(matrix).astype(float, casting="same_kind")
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise ConcordError(
            f"network: {short(matrix)} is no network; give the name of a kind, a graph of "
            "networkx, or a square matrix"
        )
    symmetric = np.isfinite(values).all() and np.abs(values - values.T).max() <= ROUNDING
    names = names or tuple(range(len(values)))
    if np.isin(values, (0, 1)).all() and not values.diagonal().any():
        return _connect_pairs(names, np.argwhere(values).tolist(), directed=not symmetric)
    if not symmetric:
        raise ConcordError(
            "network: the matrix is no adjacency, and as weights it is not symmetric; give a "
            "symmetric one, or a directed graph, of which samplers take the weights they need"
        )
    if values.min() < 0 or np.abs(values.sum(axis=1) - 1).max() > ROUNDING:
        raise ConcordError(
            "network: the matrix is neither an adjacency (zeros and ones, zeros on the diagonal) "
            "nor doubly stochastic (not negative, rows that add up to 1); give one of these"
        )
    edges = np.argwhere(np.triu(values, 1)).tolist()
    return replace(_connect_pairs(names, edges), weights=values)


def _connect_pairs(names: tuple[Any, ...], pairs: list[Any], directed: bool = False) -> Graph:
    """Return the graph of given pairs. A ConcordError for a loop or a graph without agents."""
    loops = [i for i, j in pairs if i == j]
    if loops:
        raise ConcordError(f"network: an edge joins agent {loops[0]} to itself; remove it")
    if not names:
        raise ConcordError("network: it has no agents; give a graph with nodes")
    return graph_of_pairs("own", len(names), pairs, directed, nodes=names)
