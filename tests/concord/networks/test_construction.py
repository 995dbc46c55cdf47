"""Networks of one's own: which node of a graph is which agent."""

import networkx as nx
import numpy as np
import pandas
import pytest
import scipy.sparse

from concord.errors import ConcordError
from concord.networks.construction import network as own

PATH = [(3, 0), (0, 2), (2, 1)]  # nodes are inserted as 3, 0, 2, 1
GIVEN = {
    "graph": nx.Graph(PATH),
    "added one by one": nx.relabel_nodes(nx.path_graph(4), {0: 3, 1: 0, 2: 2, 3: 1}),
    "numbers of numpy": nx.Graph([(np.int64(i), np.int64(j)) for i, j in PATH]),
    "table": nx.to_pandas_adjacency(nx.Graph(PATH), dtype=int),
    "matrix": nx.to_numpy_array(nx.Graph(PATH), nodelist=range(4)),
    "sparse array": nx.to_scipy_sparse_array(nx.Graph(PATH), nodelist=range(4)),
    "sparse matrix": scipy.sparse.coo_matrix(nx.to_numpy_array(nx.Graph(PATH), nodelist=range(4))),
    "edges": {"kind": "edge_list", "edges": PATH},
}


def pattern(matrix):
    """Return the pairs that a matrix joins."""
    return {(int(i), int(j)) for i, j in np.argwhere(matrix) if i < j}


@pytest.mark.parametrize("name", GIVEN)
def test_nodes_of_numbers_are_the_agents_of_these_numbers(name):
    network = own(GIVEN[name], 4)
    assert pattern(network.graph.metropolis) == {(0, 3), (0, 2), (1, 2)}
    assert network.names == (0, 1, 2, 3)


def test_directions_stay_with_their_agents():
    network = own(nx.DiGraph([(3, 0), (0, 2), (2, 1), (1, 3)]))
    heard = {(int(j), int(i)) for i, j in np.argwhere(network.graph.adjacency)}
    assert network.graph.directed and heard == {(3, 0), (0, 2), (2, 1), (1, 3)}


@pytest.mark.parametrize("nodes", [["hospital", "clinic", "lab"], [3, 1, 2], [(1, 0), (0, 0), 5]])
def test_other_nodes_are_agents_in_order_of_insertion_and_keep_their_names(nodes):
    network = own(nx.path_graph(nodes))
    assert network.names == tuple(nodes) and network.edges == ((0, 1), (1, 2))
    table = nx.to_pandas_adjacency(nx.path_graph(nodes), dtype=int)
    assert own(table).names == tuple(nodes)
    assert own(table).edges == ((0, 1), (1, 2))


def test_weights_stay_with_their_agents():
    weights = own(nx.Graph(PATH)).graph.metropolis
    network = own(weights)
    np.testing.assert_array_equal(network.graph.weights, weights)
    assert pattern(network.graph.weights) == set(network.edges) == {(0, 3), (0, 2), (1, 2)}
    for given in (
        pandas.DataFrame(weights).loc[[3, 0, 2, 1], [3, 0, 2, 1]],
        pandas.DataFrame(weights).loc[[3, 0, 2, 1], [1, 2, 0, 3]],
        scipy.sparse.csr_array(weights),
    ):
        np.testing.assert_array_equal(own(given).graph.weights, weights)


def test_own_weights_are_those_that_samplers_ask_for():
    weights = [[0.5, 0.5, 0.0], [0.5, 0.25, 0.25], [0.0, 0.25, 0.75]]
    network, x = own(weights), np.arange(6.0).reshape(1, 3, 2)
    np.testing.assert_allclose(network.start(x).mix("metropolis", x), weights @ x)
    half = network.start(x).mix("lazy_metropolis", x)
    np.testing.assert_allclose(half, (np.eye(3) + weights) / 2 @ x)


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        ([[0.5, 0.5], [0.4, 0.6]], {}, "no adjacency, and as weights not symmetric"),
        ([[0.5, 0.4], [0.4, 0.5]], {}, "neither an adjacency .* nor doubly stochastic"),
        ([[1.5, -0.5], [-0.5, 1.5]], {}, "neither an adjacency .* nor doubly stochastic"),
        ([[0, 1, 1], [1, 0, 0]], {}, "is no network; give the name of a kind"),
        ([["a"]], {}, "is no network; give the name of a kind"),
        (nx.Graph(), {}, "it has no agents"),
        (nx.Graph([(0, 0), (0, 1)]), {}, "an edge joins agent 0 to itself"),
        (nx.path_graph(3), {"agents": 4}, "it has 3 agents, and the problem 4; give a graph of 4"),
        (nx.path_graph(3), {"rows": 4}, "rows is an option of a kind; remove it"),
        ("ring", {}, "has no size; give agents"),
        ("ring", {"agents": 4, "los": None}, "network: 'los' is no argument; did you mean loss="),
        ("no_such", {"agents": 4}, "there is no topology 'no_such'"),
    ],
)
def test_what_is_no_network_is_refused(graph, options, message):
    with pytest.raises(ConcordError, match=message):
        own(graph, **options)


def drawn(**options):
    return own("erdos_renyi", 12, probability=0.4, **options).edges


def test_a_random_graph_takes_seed_and_rng():
    rngs = np.random.default_rng(7), np.random.default_rng(7)
    assert drawn() == drawn(seed=0) == drawn(rng=0) != drawn(seed=1)
    assert drawn(seed=1) == drawn(rng=1) == drawn(rng=np.int64(1))
    first = drawn(rng=rngs[0])
    assert first == drawn(rng=rngs[1]) != drawn(rng=rngs[0])
    assert drawn(seed=None) != drawn(seed=None)
    given = {"kind": "random_geometric", "radius": 0.5}
    assert own(given, 12, rng=3).edges == own({**given, "seed": 3}, 12).edges


@pytest.mark.parametrize(
    ("graph", "options", "sentence"),
    [
        ("erdos_renyi", {"seed": 1, "rng": 2}, "rng: seed is 1 besides; give one of the two"),
        ("erdos_renyi", {"rng": "x"}, "rng: 'x' does not fit; give integer"),
        ("erdos_renyi", {"seed": -1}, "network.seed: -1 does not fit; give"),
        ("ring", {"rng": 2}, "network: 'seed' is no argument"),
        (nx.path_graph(4), {"rng": 2}, "network: seed is an option of a kind; remove it"),
    ],
)
def test_a_seed_that_does_not_fit_is_refused(graph, options, sentence):
    probability = {"probability": 0.4} if "erdos_renyi" in str(graph) else {}
    with pytest.raises(ConcordError, match=f"^{sentence}"):
        own(graph, 4, **probability, **options)
