"""The order of updates, against loops over agents written out."""

import numpy as np
import pytest

from concord.errors import ConcordError
from concord.networks.matrix import copy_vectors
from concord.networks.mixing import ORDERS, mixer
from concord.networks.topology import build
from concord.networks.weights import check_weights, weights_of
from variants import from_dense

EXACT = 1e-12  # rounding only


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
RNG = np.random.default_rng(5)
# A directed ring, and weights with no structure at all and an empty row.
DIGRAPHS = [
    from_dense((np.eye(5) + np.roll(np.eye(5), 1, 1) + np.roll(np.eye(5), 2, 1)) / 3),
    from_dense(RNG.standard_normal((6, 6)) * np.array([1, 1, 0, 1, 1, 1])[:, None]),
]
WEIGHTS = [graph.metropolis() for graph in GRAPHS] + DIGRAPHS

every_order = pytest.mark.parametrize("order", ORDERS)
every_matrix = pytest.mark.parametrize("matrix", WEIGHTS, ids=lambda m: f"{m.agents} agents")


def draw(agents: int, chains: int = 3, dim: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((chains, agents, dim))


def one_by_one(matrix, x, order, response):
    """Move agents as the definition says; response(i, total) gives the new value of agent i."""
    weights, old, new = matrix.dense(), x.copy(), x.copy()
    for i in range(matrix.agents):
        seen = new if order == "in_place" else old
        total = np.zeros_like(x[:, 0])
        for j in range(matrix.agents):
            total += weights[i, j] * seen[:, j]
        new[:, i] = response(i, total)
    return new


@pytest.mark.parametrize("apart", [False, True], ids=["whole", "parts"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("dim", [1, 3])
def test_vectors_are_copied_where_a_mask_says_so(dim, dtype, apart):
    x = RNG.standard_normal((4, 5, dim)).transpose(1, 0, 2)
    out = np.zeros((5, 4, 2 * dim), dtype)[..., :: 2 if apart else 1][..., :dim]
    where = RNG.random((5, 4)) < 0.5
    copy_vectors(x, out, where)
    assert (out == np.where(where[..., None], x, 0).astype(dtype)).all()
    copy_vectors(x, out)
    assert (out == x.astype(dtype)).all()


@every_order
@every_matrix
def test_mixer_is_the_loop_over_agents(matrix, order):
    mix = mixer(matrix, 3, 2, order)
    for seed in range(2):  # buffers of one call must not leak into the next
        x, residual = draw(matrix.agents, seed=seed), draw(matrix.agents, seed=seed + 10)
        inputs = x.copy(), residual.copy()
        out = np.full_like(x, np.nan)
        assert mix(x, residual, out) is out
        expected = one_by_one(matrix, x, order, lambda i, total, r=residual: total + r[:, i])
        assert abs(out - expected).max() < EXACT
        assert (x == inputs[0]).all()
        assert (residual == inputs[1]).all()


@every_order
@every_matrix
def test_mixer_takes_any_response(matrix, order):
    shift, gain = draw(matrix.agents), draw(matrix.agents, seed=1)
    x = draw(matrix.agents, seed=2)

    def respond(agent, total, out):
        total -= shift[:, agent]  # allowed by the contract
        out[...] = np.tanh(total) * gain[:, agent]

    expected = one_by_one(
        matrix, x, order, lambda i, total: np.tanh(total - shift[:, i]) * gain[:, i]
    )
    out = mixer(matrix, 3, 2, order)(x, respond, np.empty_like(x))
    assert abs(out - expected).max() < EXACT


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: f"{g.name} of {g.agents}")
def test_weights_are_what_they_say(graph):
    laplacian, identity = graph.laplacian().dense(), np.eye(graph.agents)
    made = {
        name: weights_of(graph, name).dense()
        for name in ("metropolis", "lazy_metropolis", "max_degree", "best_constant")
    }
    for matrix in made.values():
        assert abs(matrix - matrix.T).max() < EXACT and abs(matrix.sum(axis=1) - 1).max() < EXACT
    assert abs(2 * made["lazy_metropolis"] - identity - made["metropolis"]).max() < EXACT
    degree = graph.degrees.max()
    assert abs((1 + degree) * (identity - made["max_degree"]) - laplacian).max() < 1e-9
    if not graph.connected:
        return
    slowest = [
        np.abs(np.linalg.eigvalsh(matrix)[:-1]).max(initial=0)
        for share in np.linspace(0.01, 1, 80)
        for matrix in [identity - share * laplacian]
    ]
    best = np.abs(np.linalg.eigvalsh(made["best_constant"])[:-1]).max(initial=0)
    assert best <= min(slowest) + EXACT


def test_one_weight_may_be_that_of_every_edge():
    found = weights_of(build("complete", 20), 0.6 / 19).dense()
    expected = np.full((20, 20), 0.6 / 19)
    np.fill_diagonal(expected, 0.4)
    np.testing.assert_allclose(found, expected, atol=EXACT)
    star = weights_of(build("star", 7), 0.1)
    np.testing.assert_allclose(star.diagonal, [0.4, *[0.9] * 6], atol=EXACT)
    check_weights(build("star", 7), 0.1)
    with pytest.raises(ConcordError, match=r"^weights: 0\.3 gives an agent the weight -0\.8"):
        check_weights(build("star", 7), 0.3)


def test_weights_that_are_negative_are_refused():
    with pytest.raises(ConcordError, match=r"^weights: best_constant gives an agent the weight -0"):
        check_weights(build("star", 7), "best_constant")
    check_weights(build("ring", 5), "best_constant")
