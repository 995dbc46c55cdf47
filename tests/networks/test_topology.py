"""Topologies and their matrices, against closed forms and dense algebra."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concord.errors import ConcordError
from concord.networks.matrix import STRATEGIES, AgentMatrix, _choose
from concord.networks.topology import Topology, build
from concord.networks.weights import weights_of
from processes import python
from variants import from_dense

EXACT = 1e-12  # rounding only


@st.composite
def graphs(draw, most=12) -> Topology:
    agents = draw(st.integers(1, most))
    pairs = [[i, j] for j in range(agents) for i in range(j)]
    edges = draw(st.lists(st.sampled_from(pairs), unique_by=tuple)) if pairs else []
    return build("edge_list", agents, edges=edges)


def weights_of_a_random_digraph(agents: int, seed: int = 0) -> AgentMatrix:
    rng = np.random.default_rng(seed)
    return from_dense(rng.standard_normal((agents, agents)) * (rng.random((agents, agents)) < 0.4))


# Graphs


@pytest.mark.parametrize(
    ("kind", "agents", "options", "edges"),
    [
        ("complete", 4, {}, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
        ("complete", 1, {}, []),
        ("ring", 4, {}, [(0, 1), (0, 3), (1, 2), (2, 3)]),
        ("ring", 3, {}, [(0, 1), (0, 2), (1, 2)]),
        ("ring", 2, {}, [(0, 1)]),
        ("ring", 1, {}, []),
        ("no_edges", 3, {}, []),
        ("star", 4, {}, [(0, 1), (0, 2), (0, 3)]),
        ("star", 1, {}, []),
        ("path", 4, {}, [(0, 1), (1, 2), (2, 3)]),
        ("grid", 6, {}, [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]),
        ("grid", 6, {"rows": 3}, [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5)]),
        ("grid", 5, {}, [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ("torus", 6, {}, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (3, 5), (4, 5)]),
        ("torus", 4, {"rows": 1}, [(0, 1), (0, 3), (1, 2), (2, 3)]),
        ("hypercube", 1, {}, []),
        ("hypercube", 4, {}, [(0, 1), (0, 2), (1, 3), (2, 3)]),
        ("exponential", 1, {}, []),
        ("exponential", 2, {}, [(0, 1)]),
        ("exponential", 6, {}, [(i, j) for i in range(6) for j in range(i + 1, 6) if j - i != 3]),
        ("random_geometric", 3, {"radius": 1.5}, [(0, 1), (0, 2), (1, 2)]),
        ("erdos_renyi", 4, {"probability": 0}, []),
        ("erdos_renyi", 3, {"probability": 1}, [(0, 1), (0, 2), (1, 2)]),
        ("edge_list", 4, {"edges": [[2, 0], [3, 1]]}, [(0, 2), (1, 3)]),
    ],
)
def test_edges(kind, agents, options, edges):
    built = build(kind, agents, **options)
    assert built == Topology(kind, agents, tuple(edges))


@pytest.mark.parametrize(
    ("kind", "agents", "options", "edges"),
    [
        ("directed_ring", 1, {}, []),
        ("directed_ring", 3, {}, [(0, 1), (1, 2), (2, 0)]),
        ("directed_ring", 4, {"every": 2}, [(0, 1), (0, 2), (1, 2), (2, 0), (2, 3), (3, 0)]),
        ("directed_ring", 4, {"every": 4, "reach": 3}, [(0, 1), (0, 3), (1, 2), (2, 3), (3, 0)]),
        ("directed_exponential", 3, {}, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]),
        ("edge_list", 3, {"edges": [[2, 1], [1, 2]], "directed": True}, [(1, 2), (2, 1)]),
    ],
)
def test_edges_with_a_direction(kind, agents, options, edges):
    built = build(kind, agents, **options)
    assert built == Topology(kind, agents, tuple(edges), directed=True)
    graph = nx.empty_graph(agents, create_using=nx.DiGraph)
    graph.add_edges_from(edges)
    assert built.degrees.tolist() == [graph.out_degree(i) for i in range(agents)]
    assert [n.tolist() for n in built.neighbors] == [sorted(graph.pred[i]) for i in range(agents)]
    assert built.connected == nx.is_strongly_connected(graph)
    assert (built.adjacency().dense() == nx.to_numpy_array(graph).T).all()
    for refused in (built.laplacian, built.metropolis, built.spectral):
        with pytest.raises(ConcordError, match="need neighbors that hear each other"):
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
    assert build(kind, agents).edges == tuple(sorted(tuple(sorted(edge)) for edge in graph.edges))


@pytest.mark.parametrize("kind", ["ring", "torus", "grid", "path"])
def test_a_network_of_many_agents_has_weights_whose_sums_are_one(kind):
    built = build(kind, 10_000)
    weights = built.metropolis()
    assert weights.agents == 10_000 and len(weights.values) <= 5 * 10_000
    np.testing.assert_allclose(weights.sums(), 1.0, rtol=1e-14)


@pytest.mark.parametrize(
    ("kind", "agents", "options", "most"),
    [
        ("ring", 1_000_001, {}, "more than one process carries; use at most 1000000$"),
        ("exponential", 10**6, {}, "so that there are at most 5000000$"),
        ("directed_exponential", 10**6, {}, "so that there are at most 5000000$"),
        ("complete", 2001, {}, "complete, which looks at all pairs; use at most 2000$"),
        ("server", 2001, {}, "server, which looks at all pairs; use at most 2000$"),
        ("erdos_renyi", 200_000, {"probability": 0.1}, "at all pairs; use at most 2000$"),
        ("random_geometric", 2001, {"radius": 0.1}, "at all pairs; use at most 2000$"),
    ],
)
def test_too_many_agents_are_refused_with_the_number_that_can_be(kind, agents, options, most):
    with pytest.raises(ConcordError, match=most):
        build(kind, agents, **options)


@pytest.mark.parametrize("kind", ["ring", "star", "directed_ring", "directed_exponential"])
def test_weights_of_rows_and_of_columns_add_up(kind):
    built = build(kind, 6, **({"every": 2} if kind == "directed_ring" else {}))
    hears = (built.adjacency().dense() + np.eye(6)) > 0
    for weights, axis in (("row_stochastic", 1), ("column_stochastic", 0)):
        dense = weights_of(built, weights).dense()
        assert ((dense > 0) == hears).all()
        assert abs(dense.sum(axis=axis) - 1).max() < 1e-15
        shares = hears / hears.sum(axis=axis, keepdims=True)  # equal ones
        assert abs(dense - shares).max() < 1e-15


def test_random_graphs_have_their_share_of_edges():
    sizes = [len(build("erdos_renyi", 30, probability=0.3, seed=seed).edges) for seed in range(40)]
    pairs = 30 * 29 / 2
    assert abs(np.mean(sizes) - 0.3 * pairs) < 5 * np.sqrt(pairs * 0.3 * 0.7 / 40)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("erdos_renyi", {"probability": 0.3}),
        ("random_geometric", {"radius": 0.3}),
    ],
)
def test_a_random_kind_depends_on_its_seed_alone(kind, options):
    first, again, other = (build(kind, 30, seed=seed, **options).edges for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(("agents", "radius"), [(1, 0.5), (20, 0.4), (200, 0.1)])
def test_neighbors_are_those_that_networkx_finds(agents, radius):
    pairs = nx.random_geometric_graph(agents, radius, seed=3).edges
    assert build("random_geometric", agents, radius=radius, seed=3).edges == tuple(sorted(pairs))


@settings(deadline=None)
@given(graphs())
def test_degrees_neighbors_and_connection(built):
    graph = nx.empty_graph(built.agents)
    graph.add_edges_from(built.edges)
    assert built.degrees.tolist() == [graph.degree(i) for i in range(built.agents)]
    assert [n.tolist() for n in built.neighbors] == [sorted(graph[i]) for i in range(built.agents)]
    # A graph is connected when Laplacian modes other than the constant one all decay.
    modes = np.linalg.eigvalsh(built.laplacian().dense())[1:]
    assert built.connected == bool((modes > 1e-9).all())


@pytest.mark.parametrize(
    ("kind", "agents", "options", "message"),
    [
        ("rings", 4, {}, r"^topology.kind: there is no topology 'rings'; did you mean 'ring'\?$"),
        (["ring"], 4, {}, "topology.kind: there is no topology"),
        ("ring", 0, {}, "^topology: 0 is not a positive number of agents; give 1 or more$"),
        ("ring", True, {}, "topology: True is not a positive"),
        ("ring", 2.5, {}, "topology: 2.5 is not a positive"),
        ("ring", 4, {"rows": 2}, "topology.rows: unknown key"),
        ("grid", 6, {"rows": 4}, "topology.rows: 4 rows do not divide 6 agents; give a divisor"),
        ("grid", 6, {"rows": 0}, "topology.rows: 0 is "),
        ("torus", 6, {"rows": 4}, "topology.rows: 4 rows do not divide 6 agents; give a divisor"),
        (
            "hypercube",
            6,
            {},
            "^topology: 6 agents make no hypercube; use a power of two, such as 4",
        ),
        (
            "directed_ring",
            6,
            {"every": 2, "reach": 1},
            "topology.reach: a chord over 1 agents",
        ),
        ("random_geometric", 3, {"radius": 0.0}, "topology.radius: 0"),
        ("erdos_renyi", 6, {}, "'probability' is missing"),
        ("erdos_renyi", 6, {"probability": 1.5}, "topology.probability: 1.5 is "),
        ("edge_list", 3, {"edges": [[0, 1], [1, 3]]}, r"topology.edges\[1\]: \[1, 3\] names an ag"),
        ("edge_list", 3, {"edges": [[1, 1]]}, r"topology.edges\[0\]: \[1, 1\] joins an agent to i"),
        ("edge_list", 3, {"edges": [[0, 1], [1, 0]]}, r"topology.edges\[1\]: .* is given twice"),
        ("edge_list", 3, {"edges": [[0, 1, 2]]}, r"edges\[0\]: \[0, 1, 2\] has 3 entries; give 2"),
        ("edge_list", 3, {"edges": [[-1, 0]]}, r"topology.edges\[0\]\[0\]: -1 is "),
        ("edge_list", 3, {"edges": 3}, "topology.edges: 3 is not a list"),
    ],
)
def test_wrong_topology(kind, agents, options, message):
    with pytest.raises(ConcordError, match=message):
        build(kind, agents, **options)


def test_message_names_the_file():
    with pytest.raises(
        ConcordError, match=r"^config/papers/x\.yaml: experiments\.a\.topology\.kind: "
    ):
        build("wheel", 5, where="config/papers/x.yaml: experiments.a.topology")


# Matrices and spectra


@settings(deadline=None)
@given(graphs())
def test_metropolis_is_symmetric_doubly_stochastic_with_positive_diagonal(built):
    weights = built.metropolis().dense()
    degrees = built.degrees
    assert (weights == weights.T).all()
    assert abs(weights.sum(axis=0) - 1).max() < EXACT
    assert weights.min() >= 0
    assert np.diag(weights).min() >= 1 / (1 + degrees.max()) - EXACT
    for i, j in built.edges:
        assert weights[i, j] == 1 / (1 + max(degrees[i], degrees[j]))
    assert np.count_nonzero(weights) == built.agents + 2 * len(built.edges)


@settings(deadline=None)
@given(graphs())
def test_laplacian_is_degrees_minus_adjacency(built):
    adjacency = built.adjacency().dense()
    assert (adjacency.sum(axis=1) == built.degrees).all()
    assert (built.laplacian().dense() == np.diag(built.degrees) - adjacency).all()


def cosine(agents: int, k: float) -> float:
    return np.cos(np.pi * k / agents)


def of_weights_and_laplacian(weights, least, most, signless):
    """What is known of a spectrum: eigenvalues of W but 1, and the ends of L's and of D + A's."""
    gamma = max(abs(max(weights)), abs(min(weights)))
    return {
        "lambda_2": max(weights),
        "lambda_N": min(weights),
        "gamma_bar": gamma,
        "spectral_gap": 1 - gamma,
        "laplacian_max": most,
        "algebraic_connectivity": least,
        "signless_max": signless,
    }


def closed_form(kind, agents):
    if kind == "complete":
        return of_weights_and_laplacian([0], agents, agents, 2 * (agents - 1))
    if kind == "star":
        return of_weights_and_laplacian([1 - 1 / agents, 0], 1, agents, agents)
    if kind == "path":
        slow, fast = 2 - 2 * cosine(agents, 1), 2 + 2 * cosine(agents, 1)
        return of_weights_and_laplacian([1 - slow / 3, 1 - fast / 3], slow, fast, fast)
    modes = [2 - 2 * cosine(agents, 2 * k) for k in range(1, agents)]
    return of_weights_and_laplacian([1 - mode / 3 for mode in modes], min(modes), max(modes), 4)


@pytest.mark.parametrize(
    ("kind", "agents"),
    [("ring", n) for n in (3, 5, 6, 20, 101)]
    + [("complete", n) for n in (2, 5, 6, 100)]
    + [("star", n) for n in (3, 6, 50)]
    + [("path", n) for n in (3, 4, 7, 40)],
)
def test_spectra_in_closed_form(kind, agents):
    expected = closed_form(kind, agents)
    assert build(kind, agents).spectral() == pytest.approx(expected, abs=agents * EXACT)


def test_spectrum_of_the_grid():
    # The modes of a grid are sums of the modes of the two paths it is the product of.
    found = build("grid", 20, rows=4).spectral()
    assert found["laplacian_max"] == pytest.approx(4 + 2 * cosine(4, 1) + 2 * cosine(5, 1))
    assert found["algebraic_connectivity"] == pytest.approx(2 - 2 * cosine(5, 1))


def test_spectra_of_the_torus_the_hypercube_and_the_exponential_graph():
    # Modes of a torus are sums of those of two rings, of a hypercube of those of its digits.
    torus = build("torus", 20, rows=4).spectral()
    assert torus["algebraic_connectivity"] == pytest.approx(2 - 2 * np.cos(2 * np.pi / 5))
    assert torus["laplacian_max"] == pytest.approx(4 + 2 - 2 * np.cos(4 * np.pi / 5))
    cube = np.linalg.eigvalsh(build("hypercube", 16).laplacian().dense())
    assert cube == pytest.approx(2 * np.repeat(range(5), [1, 4, 6, 4, 1]), abs=EXACT)
    # Circulant: sums of 2 - 2 cos(2 pi k d / N) over the distances d = 1, 2, 4, 8 (8 is N/2: once).
    around = 2 - 2 * np.cos(2 * np.pi * np.outer(range(16), [1, 2, 4, 8]) / 16)
    expected = np.sort(around @ [1, 1, 1, 0.5])
    found = np.linalg.eigvalsh(build("exponential", 16).laplacian().dense())
    assert found == pytest.approx(expected, abs=EXACT)


def test_spectrum_without_edges_and_of_a_single_agent():
    isolated = build("no_edges", 4).spectral()
    assert isolated["lambda_2"] == isolated["gamma_bar"] == 1
    assert isolated["laplacian_max"] == isolated["signless_max"] == 0
    single = build("ring", 1).spectral()
    assert single["gamma_bar"] == single["algebraic_connectivity"] == 0
    assert single["spectral_gap"] == 1


def test_spectrum_of_too_many_agents():
    with pytest.raises(ConcordError, match="2001 agents is too large to compute; use at most 2000"):
        build("no_edges", 2001).spectral()


# AgentMatrix


def test_entries_are_sorted_and_add_up():
    matrix = AgentMatrix.from_entries(
        3, np.array([2, 0, 2, 1, 0]), np.array([1, 2, 1, 0, 0]), np.array([1.0, 2.0, 3.0, 4, 0])
    )
    assert matrix.rows.tolist() == [0, 1, 2]
    assert matrix.columns.tolist() == [2, 0, 1]
    assert matrix.values.tolist() == [2, 4, 4]


@pytest.mark.parametrize("index", [-1, 3])
def test_entries_outside_the_matrix_are_refused(index):
    with pytest.raises(ValueError, match=r"outside 0, \.\.\., 2"):
        AgentMatrix.from_entries(3, np.array([index]), np.array([0]), np.array([1.0]))


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(0, 5))
def test_algebra_agrees_with_dense(agents, seed):
    matrix = weights_of_a_random_digraph(agents, seed)
    dense = matrix.dense()
    assert (matrix.diagonal == np.diag(dense)).all()
    for agent in range(agents):
        columns, values = matrix.row(agent)
        assert (columns == np.flatnonzero(dense[agent])).all()
        assert (values == dense[agent, columns]).all()


# AgentOperator

MATRICES = {
    "ring": build("ring", 6).metropolis(),
    "ring of 40": build("ring", 40).metropolis(),
    "complete": build("complete", 6).metropolis(),
    "complete Laplacian": build("complete", 40).laplacian(),
    "no edges": build("no_edges", 6).metropolis(),
    "zero": build("no_edges", 6).laplacian(),
    "star": build("star", 5).metropolis(),
    "one agent": build("ring", 1).metropolis(),
    "digraph": weights_of_a_random_digraph(11),
    "diagonal": from_dense(np.diag([1.0, 2.0, 0.0, -1.0])),
    "equal off the diagonal": from_dense(0.5 + np.diag([1.0, 2.0, 3.0])),
}


@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize(("chains", "dim"), [(1, 1), (7, 2), (3, 31)])
def test_operator_agrees_with_dense(name, strategy, chains, dim):
    matrix = MATRICES[name]
    if strategy == "uniform" and matrix._common_value() is None:
        with pytest.raises(ValueError, match="differ"):
            matrix.operator(chains, dim, strategy)
        return
    operator = matrix.operator(chains, dim, strategy)
    rng = np.random.default_rng(1)
    for _ in range(2):  # the second call must not see the first one's buffers
        x = rng.standard_normal((chains, matrix.agents, dim))
        before, out = x.copy(), np.full_like(x, np.nan)
        assert operator(x, out) is out
        expected = np.einsum("ij,cjd->cid", matrix.dense(), x)
        assert abs(out - expected).max() < EXACT
        assert (x == before).all()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_operator_keeps_chains_apart_and_serves_single_precision(strategy):
    matrix = MATRICES["complete"]
    operator = matrix.operator(3, 2, strategy)
    x = np.random.default_rng(2).standard_normal((3, 6, 2)).astype(np.float32)
    x[1, 4, 0] = np.nan
    out = np.empty_like(x)
    operator(x, out)
    expected = np.einsum("ij,cjd->cid", matrix.dense(), x)
    assert np.isnan(out[1]).any()
    assert abs(out[[0, 2]] - expected[[0, 2]]).max() < 4 * np.finfo(np.float32).eps


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_operator_never_loses_a_result(strategy):
    matrix = MATRICES["complete"]
    x = np.random.default_rng(3).standard_normal((3, 6, 2))
    strided = np.zeros((6, 3, 2)).transpose(1, 0, 2)
    matrix.operator(3, 2, strategy)(x, strided)
    assert abs(strided - np.einsum("ij,cjd->cid", matrix.dense(), x)).max() < EXACT


def test_isolated_agents_do_not_hear_of_a_diverged_one():
    x = np.ones((1, 6, 2))
    x[0, 3] = np.inf
    out = build("no_edges", 6).metropolis().operator(1, 2)(x, np.empty_like(x))
    assert (out == x).all()


@pytest.mark.parametrize(
    ("kind", "agents", "dim", "strategy"),
    [
        ("ring", 6, 2, "ranked"),
        ("complete", 6, 2, "ranked"),
        ("no_edges", 6, 2, "uniform"),
        ("ring", 6, 31, "ranked"),
        ("ring", 6, 33, "dense"),
        ("complete", 100, 2, "uniform"),
        ("ring", 100, 2, "ranked"),
        ("star", 32, 2, "sparse"),
        ("ring", 5, 61706, "dense"),
        ("ring", 10_000, 2, "sparse"),
        ("ring", 1000, 1, "sparse"),
    ],
)
def test_chosen_strategy(kind, agents, dim, strategy):
    assert _choose(build(kind, agents).metropolis(), dim) == strategy


@settings(deadline=None)
@given(graphs(), st.integers(1, 4), st.integers(1, 4))
def test_chosen_operator_agrees_with_dense_on_any_graph(built, chains, dim):
    x = np.random.default_rng(0).standard_normal((chains, built.agents, dim))
    for matrix in (built.metropolis(), built.laplacian(), built.adjacency()):
        out = matrix.operator(chains, dim)(x, np.empty_like(x))
        assert abs(out - np.einsum("ij,cjd->cid", matrix.dense(), x)).max() < EXACT * built.agents


def test_start_up_imports_nothing_heavy():
    code = """
import sys
import numpy as np
from concord.networks import mixing, topology
from concord.sampling import partition, schedules
assert not {"networkx", "scipy"} & set(sys.modules)
ring = topology.build("ring", 6)
mixing.mixer(ring.metropolis(), 10, 2, "simultaneous")
assert "scipy" not in sys.modules
topology.build("ring", 500).metropolis().operator(1, 1)
assert "scipy.sparse" in sys.modules
"""
    python(code)
