"""Networks of one's own: which node of a graph is which agent."""

import networkx as nx
import numpy as np
import pandas
import pytest
import scipy.sparse

import concord

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
    dense = matrix.dense()
    return {(int(i), int(j)) for i, j in np.argwhere(dense) if i < j}


@pytest.mark.parametrize("name", GIVEN)
def test_nodes_of_numbers_are_the_agents_of_these_numbers(name):
    network = concord.network(GIVEN[name], 4)
    assert pattern(network.metropolis()) == {(0, 3), (0, 2), (1, 2)}
    assert network.names == (0, 1, 2, 3)


def test_directions_stay_with_their_agents():
    network = concord.network(nx.DiGraph([(3, 0), (0, 2), (2, 1), (1, 3)]))
    heard = {(int(j), int(i)) for i, j in np.argwhere(network.adjacency().dense())}
    assert network.directed and heard == {(3, 0), (0, 2), (2, 1), (1, 3)}


@pytest.mark.parametrize("nodes", [["hospital", "clinic", "lab"], [3, 1, 2], [(1, 0), (0, 0), 5]])
def test_other_nodes_are_agents_in_order_of_insertion_and_keep_their_names(nodes):
    network = concord.network(nx.path_graph(nodes))
    assert network.names == tuple(nodes) and network.edges == ((0, 1), (1, 2))
    table = nx.to_pandas_adjacency(nx.path_graph(nodes), dtype=int)
    assert concord.network(table).names == tuple(nodes)
    assert concord.network(table).edges == ((0, 1), (1, 2))


def test_weights_stay_with_their_agents():
    weights = concord.network(nx.Graph(PATH)).metropolis().dense()
    network = concord.network(weights)
    np.testing.assert_array_equal(network.weights.dense(), weights)
    assert pattern(network.weights) == set(network.edges) == {(0, 3), (0, 2), (1, 2)}
    for given in (
        pandas.DataFrame(weights).loc[[3, 0, 2, 1], [3, 0, 2, 1]],
        pandas.DataFrame(weights).loc[[3, 0, 2, 1], [1, 2, 0, 3]],
        scipy.sparse.csr_array(weights),
    ):
        np.testing.assert_array_equal(concord.network(given).weights.dense(), weights)


def test_a_table_without_names_of_its_rows_is_a_matrix():
    table = pandas.DataFrame(nx.to_numpy_array(nx.path_graph(3)), columns=["a", "b", "c"])
    network = concord.network(table)
    assert network.edges == ((0, 1), (1, 2)) and network.names == (0, 1, 2)


def test_what_happens_on_edges_and_to_agents_names_their_numbers():
    turns = {"kind": "in_turn", "graphs": [[[3, 0]], [[0, 2], [2, 1]]]}
    late = {"seconds": 1.0, "slowest": 2.0, "slow_agents": [3]}
    for graph in (nx.Graph(PATH), nx.DiGraph([*PATH, (1, 3)])):
        network = concord.network(graph, schedule=turns, compute=late)
        assert network.conditions.compute.slow_agents == (3,)
        for edge in ((0, 3), (3, 1)) if graph.is_directed() else ((3, 2),):
            wrong = {"kind": "in_turn", "graphs": [[edge]]}
            with pytest.raises(concord.ConcordError, match="is no edge of the topology"):
                concord.network(graph, schedule=wrong)


def test_agents_sample_from_their_own_potentials():
    shift = np.array([[0.0], [10.0], [20.0], [30.0]])
    problem = concord.problems.quadratic(H=np.ones((4, 1, 1)), b=shift)
    laws = [
        concord.law("de_sgld", problem, graph, step_size=0.1, iterations=30)
        for graph in (nx.Graph(PATH), {"kind": "edge_list", "edges": PATH})
    ]
    np.testing.assert_array_equal(laws[0].mean, laws[1].mean)


def test_networks_of_kinds_have_numbers_for_names():
    assert concord.network("ring", 4).names == (0, 1, 2, 3)
    assert concord.network("ring", 4, awake=0.5).names == (0, 1, 2, 3)
