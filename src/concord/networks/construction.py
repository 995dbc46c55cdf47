"""Networks that a caller gives in Python: a name, a graph of networkx, or a matrix."""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concord import kinds, streams
from concord.errors import (
    ConcordError,
    find_meant,
    refuse_argument,
    short,
    suggest_argument,
    suggest_names,
)
from concord.mistakes import suggest_value
from concord.networks.conditions import Conditions
from concord.networks.graph import OWN, Graph, graph_of_pairs
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.options import build
from concord.values import check_masks

# Rows and columns of weights may miss 1 by this much, and W and its transpose differ.
ROUNDING = 1e-10


@suggest_names
def network(
    graph: object,
    agents: int | None = None,
    *,
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
    **options: object,
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
        ``on_loss``, ``compression``, ``error_feedback``, ``awake``, ``noise``, ``privacy``,
        ``byzantine``, ``robust``, and the clock's ``compute``, ``link`` and ``barrier``. Without
        these every vector arrives at once, as it is.

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
    if rng is not None or seed is None:
        options["seed"] = streams.seed_of(seed, rng)
    elif seed is not streams.SEED:
        options["seed"] = seed
    return Network(_read_graph(graph, agents, options), conditions)


def _read_graph(graph: object, agents: int | None, options: Mapping[str, object]) -> Graph:
    """Return the graph of a kind's name, a mapping, a networkx graph or a matrix.

    options: options of the kind; a ConcordError if they come with a graph or a matrix.
    """
    if isinstance(graph, str):
        graph = {"kind": graph}
    if isinstance(graph, Mapping):
        if "kind" not in graph:
            raise ConcordError(
                f"network: {short(dict(graph))} has no kind; give one, such as {{'kind': 'ring'}}, "
                "or of a mapping of neighbors networkx.Graph({...})"
            )
        topology = {**graph, **options}
        if kinds.exists("topologies", topology["kind"]):
            _check_keys(topology)
        if agents is None:
            raise ConcordError(f"network {short(dict(graph))} has no size; give agents")
        return build_graph(**topology, agents=agents, where="network")
    if options:
        raise ConcordError(f"network: {next(iter(options))} is an option of a kind; remove it")
    graph = graph if isinstance(graph, Graph) else _convert_graph(graph)
    if agents not in (None, graph.agents):
        like = f"{graph.name!r}, or concord.network({graph.name!r}, {agents})"
        remedy = f"give a graph of {agents}" if graph.name == OWN else f"take {like}"
        raise ConcordError(
            f"network: it has {graph.agents} agents, and the problem {agents}; {remedy}"
        )
    return graph


def _check_keys(topology: Mapping[str, object]) -> None:
    """Raise a ConcordError for an option that neither the kind nor ``Conditions`` has."""
    options = kinds.find("topologies", topology["kind"], "network").Params.__struct_fields__
    for key in topology.keys() - {"kind", *options}:
        keys = [*options, *Conditions.__struct_fields__, "agents", "seed"]
        remedy, meant = suggest_argument(key, topology[key], keys), find_meant(key, keys)
        if meant in Conditions.__struct_fields__:
            remedy = f"did you mean {meant}={suggest_value(Conditions, meant, topology[key])}?"
        refuse_argument("network", key, remedy)


def _convert_graph(graph: Any) -> Graph:
    """Return the graph of a networkx graph, a matrix over agents, or a table of pandas of one."""
    if hasattr(graph, "nodes"):  # of networkx
        names = _agent_names(graph)
        place = {node: agent for agent, node in enumerate(names)}
        pairs = [(place[one], place[other]) for one, other in graph.edges()]
        if not names:
            raise ConcordError("network: it has no agents; give a graph with nodes")
        return graph_of_pairs(OWN, len(names), pairs, graph.is_directed(), nodes=names)
    if hasattr(graph, "columns"):  # of pandas
        names = _agent_names(graph.index)
        if set(names) == set(graph.columns):
            return _graph_of_matrix(graph.loc[[*names], [*names]].to_numpy(), names)
        graph = graph.to_numpy()
    return _graph_of_matrix(graph.toarray() if hasattr(graph, "toarray") else graph)


def _agent_names(nodes: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return a graph's nodes in the order of the agents that they become.

    Nodes that are the numbers 0 to N - 1 are ordered by number, others stay in the order given.
    """
    names = tuple(nodes)
    numbers = range(len(names))
    return tuple(numbers) if set(names) == set(numbers) else names


def _graph_of_matrix(matrix: ArrayLike, names: tuple[Hashable, ...] | None = None) -> Graph:
    """Return the graph of an adjacency matrix or of a doubly stochastic weight matrix."""
    check_masks(matrix, "network")
    try:
        values = np.asarray(matrix).astype(float, casting="same_kind")
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        remedy = "the name of a kind, such as 'ring', a graph of networkx, or a square matrix"
        if values.ndim == 2 and values.shape[1] == 2:
            remedy = "networkx.Graph(pairs) of pairs of agents, or of arcs networkx.DiGraph(pairs)"
        raise ConcordError(f"network: {short(matrix)} is no network; give {remedy}")
    symmetric = np.isfinite(values).all() and np.abs(values - values.T).max() <= ROUNDING
    names = names or tuple(range(len(values)))
    if np.isin(values, (0, 1)).all() and not values.diagonal().any():
        return graph_of_pairs(OWN, len(values), np.argwhere(values), not symmetric, nodes=names)
    if not symmetric:
        raise ConcordError(
            "network: the matrix is no adjacency, and as weights not symmetric; make it so"
        )
    if values.min() < 0 or np.abs(values.sum(axis=1) - 1).max() > ROUNDING:
        raise ConcordError(
            "network: the matrix is neither an adjacency (zeros and ones, zeros on the diagonal) "
            "nor doubly stochastic; give one of these"
        )
    edges = np.argwhere(np.triu(values, 1))
    return graph_of_pairs(OWN, len(values), edges, nodes=names, weights=values)
