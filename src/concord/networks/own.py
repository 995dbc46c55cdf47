"""Networks that a caller gives in Python: a name, a graph of networkx, or a matrix."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from concord import kinds, streams
from concord.errors import ConcordError, nearest, short
from concord.networks.conditions import Conditions, network_under
from concord.networks.graph import Graph, graph_of_pairs
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.options import build, check_masks

# Rows and columns of weights may miss 1 by this much, and W and its transpose differ.
ROUNDING = 1e-10


def network(
    graph: Any,
    agents: int | None = None,
    *,
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
    **options: Any,
) -> Network:
    """Return the network of a kind, a graph or a matrix, over which agents exchange vectors.

    Parameters
    ----------
    graph
        One of

        - the name of a kind (``"ring"``, ``"complete"``, ``"erdos_renyi"``, ...), or a mapping with
          its ``kind`` and options, as in a study's files;
        - a graph of networkx, directed or not; attributes of edges are not looked at. Nodes that
          are exactly the numbers 0 to N-1 are the agents of these numbers. Other nodes become
          agents 0, 1, ... in the order in which they were added, and ``names`` of the network says
          which is which;
        - an adjacency matrix, (agents, agents), of zeros and ones, zeros on its diagonal: row i has
          ones where agent i sends to, so that one that is not symmetric is a directed graph;
        - a weight matrix W, (agents, agents): symmetric, doubly stochastic. Samplers that mix by
          weights (those with an option ``weights``) take it for their Metropolis weights.

        A matrix may be an array, sparse (scipy), or a table of pandas with the same names for rows
        and columns, which are taken as nodes are.
    agents
        Number of agents; a graph or a matrix has its own.
    seed
        Of a kind that is drawn at random, such as ``"erdos_renyi"``; by default the kind's own, so
        that the graph is the same each time; None draws a fresh one.
    rng
        In place of ``seed``: an integer, which is the seed, or a ``numpy.random.Generator``, from
        which one is drawn, so that the next call gets another; none: ``seed`` counts.
    **options
        Of the kind, such as ``probability`` of an Erdős-Rényi graph; and what happens on any
        network, as ``network`` says in a study's files: ``schedule``, ``loss``, ``delay``,
        ``on_loss``, ``compression``, ``error_feedback``, ``awake``, ``noise``, ``privacy``, and the
        clock's ``compute``, ``link`` and ``barrier``. Without these every vector arrives at once,
        as it is.

    Raises
    ------
    ConcordError
        If it is none of these, or has another number of agents.

    Examples
    --------
    >>> import concord, networkx as nx
    >>> concord.network("ring", 20).degrees.max()
    np.int64(2)
    >>> concord.network("erdos_renyi", 20, probability=0.3, rng=7).agents
    20
    >>> concord.network(nx.Graph([(3, 0), (0, 2), (2, 1)])).edges
    ((0, 2), (0, 3), (1, 2))
    >>> concord.network(nx.path_graph(["a", "b", "c"])).names
    ('a', 'b', 'c')
    >>> concord.network([[0.5, 0.5, 0], [0.5, 0.25, 0.25], [0, 0.25, 0.75]]).edges
    ((0, 1), (1, 2))
    >>> loss = {"kind": "bernoulli", "rate": 0.2, "direction": "one_way"}
    >>> concord.network("ring", 6, loss=loss).conditions.loss.rate
    0.2
    """
    happens = {key: options.pop(key) for key in Conditions.__struct_fields__ if key in options}
    conditions = build(Conditions, happens, "network") if happens else None
    if isinstance(graph, Network):  # a network is its own, unless something else happens on it
        conditions, graph = conditions or graph.conditions, graph.graph
    if seed is not streams.SEED:
        options["seed"] = seed
    return network_under(_read_graph(graph, agents, options, rng), conditions)


def _read_graph(
    graph: Any, agents: int | None, options: Mapping[str, Any], rng: streams.Rng
) -> Graph:
    """Return the graph of a kind's name, a mapping, a networkx graph or a matrix.

    options: options of the kind; a ConcordError if they come with a graph or a matrix. rng: an
    integer or a generator in place of the kind's option ``seed``; None: not given.
    """
    if isinstance(graph, str):
        graph = {"kind": graph}
    if isinstance(graph, Mapping):
        if agents is None:
            raise ConcordError(f"network {short(dict(graph))} has no size; give agents")
        given = {"kind": None, **graph, **options}
        _check_keys({"rng": rng, **given} if rng is not None else given)
        if rng is not None or ("seed" in given and given["seed"] is None):
            given["seed"] = streams.seed_of(given.get("seed", streams.SEED), rng)
        return build_graph(**given, agents=agents, where="network")
    if rng is not None:
        options = {"rng": rng, **options}
    if options:
        raise ConcordError(f"network: {next(iter(options))} is an option of a kind; remove it")
    if not isinstance(graph, Graph):
        graph = (
            _graph_of_networkx(graph)
            if _is_instance_of(graph, "networkx", "Graph")
            else _graph_of_matrix(graph)
        )
    if agents not in (None, graph.agents):
        raise ConcordError(
            f"network: it has {graph.agents} agents, and the problem {agents}; make them equal"
        )
    return graph


def _check_keys(given: Mapping[str, Any]) -> None:
    """Raise a ConcordError for an option that neither the kind nor ``Conditions`` has."""
    if given["kind"] not in kinds.names("topologies"):
        return  # which is refused for itself
    own = kinds.find("topologies", given["kind"], "network").Params.__struct_fields__
    random = ("seed", "rng")
    for key in given:
        if key in random and "seed" not in own:
            raise ConcordError(
                f"network.{key}: {given['kind']} is not drawn at random; leave {key} out"
            )
        if key not in ("kind", *own, *random):
            known = [*own, *Conditions.__struct_fields__]
            raise ConcordError(f"network.{key}: unknown key; {nearest(key, known)}")


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
