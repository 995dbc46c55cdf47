"""Graphs, their matrices, and weights, against closed forms and dense algebra."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.errors import ConcordError
from concord.networks.graph import DENSE_AGENTS, Graph, as_dense
from concord.networks.topology import build_graph as build
from concord.networks.weights import mixing_matrix

EXACT = 1e-12  # rounding only


@st.composite
def graphs(draw, most=12) -> Graph:
    agents = draw(st.integers(1, most))
    every = [[i, j] for j in range(agents) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(every), unique_by=tuple)) if every else []
    return build("edge_list", agents, edges=edges)


def pairs(graph: Graph) -> list[tuple[int, ...]]:
    return [tuple(edge) for edge in graph.edges.tolist()]


# Graphs


@pytest.mark.parametrize(
    ("kind", "agents", "options", "edges"),
    [
        ("complete", 1, {}, []),
        ("ring", 2, {}, [(0, 1)]),
        ("ring", 1, {}, []),
        ("no_edges", 3, {}, []),
        ("star", 4, {}, [(0, 1), (0, 2), (0, 3)]),
        ("path", 4, {}, [(0, 1), (1, 2), (2, 3)]),
        ("grid", 6, {"rows": 3}, [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5)]),
        ("grid", 5, {}, [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ("torus", 4, {"rows": 1}, [(0, 1), (0, 3), (1, 2), (2, 3)]),
        ("hypercube", 1, {}, []),
        ("exponential", 6, {}, [(i, j) for i in range(6) for j in range(i + 1, 6) if j - i != 3]),
        ("erdos_renyi", 4, {"probability": 0}, []),
        ("erdos_renyi", 3, {"probability": 1}, [(0, 1), (0, 2), (1, 2)]),
        ("edge_list", 4, {"edges": [[2, 0], [3, 1]]}, [(0, 2), (1, 3)]),
    ],
)
def test_edges(kind, agents, options, edges):
    built = build(kind, agents, **options)
    assert (built.name, built.agents, pairs(built), built.directed) == (kind, agents, edges, False)


@pytest.mark.parametrize(
    ("kind", "agents", "options", "edges"),
    [
        ("directed_ring", 1, {}, []),
        ("directed_ring", 3, {}, [(0, 1), (1, 2), (2, 0)]),
        ("directed_ring", 4, {"every": 2}, [(0, 1), (0, 2), (1, 2), (2, 0), (2, 3), (3, 0)]),
        ("directed_exponential", 3, {}, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]),
        ("edge_list", 3, {"edges": [[2, 1], [1, 2]], "directed": True}, [(1, 2), (2, 1)]),
    ],
)
def test_edges_with_a_direction(kind, agents, options, edges):
    built = build(kind, agents, **options)
    assert (built.name, built.agents, pairs(built), built.directed) == (kind, agents, edges, True)
    graph = nx.empty_graph(agents, create_using=nx.DiGraph)
    graph.add_edges_from(edges)
    assert built.degrees.tolist() == [graph.out_degree(i) for i in range(agents)]
    assert [n.tolist() for n in built.neighbors] == [sorted(graph.pred[i]) for i in range(agents)]
    assert built.is_connected == nx.is_strongly_connected(graph)
    assert (built.adjacency == nx.to_numpy_array(graph).T).all()
    for refused in (lambda: built.laplacian, lambda: built.metropolis):
        with pytest.raises(ConcordError, match="need edges without direction"):
            refused()


GRIDS = {4: (2, 2), 8: (2, 4), 16: (4, 4), 64: (8, 8)}
BY_NETWORKX = {
    "ring": nx.cycle_graph,
    "torus": lambda agents: nx.grid_2d_graph(*GRIDS[agents], periodic=True),
    "grid": lambda agents: nx.grid_2d_graph(*GRIDS[agents]),
    "hypercube": lambda agents: nx.hypercube_graph(agents.bit_length() - 1),
    "exponential": lambda agents: nx.circulant_graph(
        agents, [2**j for j in range(9) if 2**j < agents]
    ),
    "complete": nx.complete_graph,
}


@pytest.mark.parametrize("agents", GRIDS)
@pytest.mark.parametrize("kind", BY_NETWORKX)
def test_edges_are_those_of_networkx(kind, agents):
    graph = nx.convert_node_labels_to_integers(BY_NETWORKX[kind](agents), ordering="sorted")
    assert pairs(build(kind, agents)) == sorted(tuple(sorted(edge)) for edge in graph.edges)


@pytest.mark.parametrize(
    ("kind", "agents", "options", "most"),
    [
        ("ring", 1_000_001, {}, "1000001 does not fit; give integer >= 1 and <= 1000000"),
        ("exponential", 10**6, {}, "so that there are at most 5000000$"),
        ("erdos_renyi", 200_000, {"probability": 0.1}, "so that there are at most 5000000$"),
    ],
)
def test_too_many_agents_are_refused_with_the_number_that_can_be(kind, agents, options, most):
    with pytest.raises(ConcordError, match=most):
        build(kind, agents, **options)


@pytest.mark.parametrize("kind", ["ring", "star", "directed_ring", "directed_exponential"])
def test_weights_of_rows_and_of_columns_add_up(kind):
    built = build(kind, 6, **({"every": 2} if kind == "directed_ring" else {}))
    hears = (built.adjacency + np.eye(6)) > 0
    for weights, axis in (("row_stochastic", 1), ("column_stochastic", 0)):
        dense = mixing_matrix(built, weights)
        assert ((dense > 0) == hears).all()
        assert abs(dense.sum(axis=axis) - 1).max() < 1e-15
        shares = hears / hears.sum(axis=axis, keepdims=True)  # equal ones
        assert abs(dense - shares).max() < 1e-15


@pytest.mark.parametrize(("agents", "radius"), [(1, 0.5), (20, 0.4), (200, 0.1)])
def test_neighbors_are_those_that_networkx_finds(agents, radius):
    expected = nx.random_geometric_graph(agents, radius, seed=3).edges
    found = pairs(build("random_geometric", agents, radius=radius, seed=3))
    assert found == sorted(tuple(edge) for edge in expected)


@settings(deadline=None)
@given(graphs())
def test_degrees_neighbors_and_connection(built):
    graph = nx.empty_graph(built.agents)
    graph.add_edges_from(pairs(built))
    assert built.degrees.tolist() == [graph.degree(i) for i in range(built.agents)]
    assert [n.tolist() for n in built.neighbors] == [sorted(graph[i]) for i in range(built.agents)]
    # A graph is connected when Laplacian modes other than the constant one all decay.
    modes = np.linalg.eigvalsh(built.laplacian)[1:]
    assert built.is_connected == bool((modes > 1e-9).all())


@pytest.mark.parametrize(
    ("kind", "agents", "options", "message"),
    [
        ("rings", 4, {}, r"^topology.kind: there is no topology 'rings'; did you mean 'ring'\?$"),
        ("ring", 0, {}, "^topology: agents: 0 does not fit; give integer >= 1 and <= 1000000$"),
        ("ring", 4, {"rows": 2}, "topology.rows: unknown key"),
        ("grid", 6, {"rows": 4}, "topology.rows: 4 rows do not divide 6 agents; give a divisor"),
        ("hypercube", 6, {}, "6 agents make no hypercube; use a power of two, such as 4"),
        ("directed_ring", 3, {"every": 2}, "topology.every: a ring of 3 has no chords"),
        ("edge_list", 3, {"edges": [[0, 1], [1, 3]]}, r"topology.edges\[1\]: \[1, 3\] names an ag"),
        ("edge_list", 3, {"edges": [[1, 1]]}, r"topology.edges\[0\]: \[1, 1\] joins an agent to i"),
        ("edge_list", 3, {"edges": [[0, 1], [1, 0]]}, r"topology.edges\[1\]: .* is given twice"),
    ],
)
def test_wrong_topology(kind, agents, options, message):
    with pytest.raises(ConcordError, match=message):
        build(kind, agents, **options)


# Weights


GRAPHS = [
    build("ring", 5),
    build("complete", 6),
    build("no_edges", 4),
    build("star", 7),
    build("path", 4),
    build("ring", 1),
    build("edge_list", 6, edges=[[0, 5], [1, 4], [2, 4], [0, 2]]),
    build("ring", 90),
]


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: f"{g.name} of {g.agents}")
def test_weights_are_what_they_say(graph):
    laplacian, identity = as_dense(graph.laplacian), np.eye(graph.agents)
    whole, half = (as_dense(mixing_matrix(graph, f"{lazy}metropolis")) for lazy in ("", "lazy_"))
    assert abs(whole - whole.T).max() < EXACT and abs(whole.sum(axis=1) - 1).max() < EXACT
    assert abs(2 * half - identity - whole).max() < EXACT
    assert abs(identity - as_dense(mixing_matrix(graph, 0.1)) - 0.1 * laplacian).max() < EXACT


@pytest.mark.parametrize("agents", [DENSE_AGENTS, DENSE_AGENTS + 1])
def test_matrices_are_dense_or_sparse_and_the_same(agents):
    """Of a directed graph and an undirected one, against sums written out."""
    rng = np.random.default_rng(1)
    for kind in ("star", "directed_exponential"):
        graph = build(kind, agents)
        assert isinstance(graph.adjacency, np.ndarray) == (agents <= DENSE_AGENTS)
        values, diagonal = rng.standard_normal(len(graph.senders)), rng.standard_normal(agents)
        expected = np.diag(diagonal)
        for value, i, j in zip(values, graph.receivers, graph.senders, strict=True):
            expected[i, j] = value
        np.testing.assert_array_equal(as_dense(graph.matrix(values, diagonal)), expected)
        hears = as_dense(graph.adjacency)
        degrees = np.diag(graph.degrees)
        np.testing.assert_array_equal(as_dense(graph.signless_laplacian), degrees + hears)


@settings(deadline=None)
@given(graphs())
def test_ways_links_and_sums_over_them(graph):
    """Ways are ordered by receiver, each edge is two, one there and one back."""
    arcs = list(zip(graph.receivers.tolist(), graph.senders.tolist(), strict=True))
    assert arcs == sorted([(i, j) for i, j in pairs(graph)] + [(j, i) for i, j in pairs(graph)])
    assert [arcs[back] for back in graph.order_by_sender] == [(j, i) for i, j in arcs]
    assert graph.link_count == len(pairs(graph))
    for arc, back in enumerate(graph.order_by_sender):
        assert (graph.links == graph.links[arc]).nonzero()[0].tolist() == sorted({arc, int(back)})
    values = np.arange(2.0 * len(arcs)).reshape(-1, 2)
    sent = [
        sum((values[w] for w, (_, j) in enumerate(arcs) if j == a), np.zeros(2))
        for a in range(graph.agents)
    ]
    np.testing.assert_array_equal(graph.add_up_sent(values), np.reshape(sent, (-1, 2)))
    if arcs:
        most = [max(values[w, 0] for w, other in enumerate(arcs) if other[0] == i) for i, _ in arcs]
        np.testing.assert_array_equal(graph.per_receiver(np.maximum, values)[:, 0], most)
    assert set(graph.numbers_of(pairs(graph)).tolist()) == set(graph.pair_numbers.tolist())
