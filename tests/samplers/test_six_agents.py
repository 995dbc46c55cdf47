"""Six agents on a ring, worked out by hand: stationary laws, and what lost vectors do to them.

f_i = h_i x^2 / 2 - b_i x; the h_i add up to 1 and the b_i to 0, so the posterior is N(0, 1). The
numbers are of a calculation by itself, to the digits given.
"""

import itertools

import numpy as np
import pytest

import concord
from concord.errors import ConcordError
from concord.laws import exact, paths
from concord.laws.arrivals import Losses
from concord.networks import topology
from concord.networks.conditions import Conditions
from concord.networks.edges import Edges
from concord.networks.moments import chances
from concord.networks.network import drawing, under
from concord.samplers import de_sgld, diging_sgld, extra_sgld, local_sgld

CURVATURES = np.array([0.10, 0.20, 0.10, 0.25, 0.15, 0.20])
SHIFTS = np.array([1, -0.5, 0.3, -0.8, 0.6, -0.6])
PROBLEM = concord.problems.quadratic(CURVATURES[:, None, None], SHIFTS[:, None])
RING = topology.build("ring", 6)

STATIONARY = {
    "DE-SGLD": (
        (de_sgld, {}),
        [0.1521, -0.0001, -0.0023, -0.0946, 0.0461, 0.0088],
        [1.2512, 1.2350, 1.2421, 1.2066, 1.2222, 1.2258],
        (0.018343, 1.010312),
    ),
    "EXTRA, h = 0.5": (
        (extra_sgld, {"h": 0.5}),
        [0.0] * 6,
        [1.3744, 1.3712, 1.3752, 1.3696, 1.3727, 1.3721],
        (0.0, 1.008471),
    ),
    "EXTRA, h = 0.1": (
        (extra_sgld, {"h": 0.1}),
        [0.0] * 6,
        [1.2473, 1.2437, 1.2462, 1.2392, 1.2427, 1.2426],
        (0.0, 1.008693),
    ),
    "DIGing": (
        (diging_sgld, {}),
        [0.0] * 6,
        [1.2321, 1.2316, 1.2312, 1.2292, 1.2297, 1.2307],
        (0.0, 1.008505),
    ),
    "five local steps": (
        (local_sgld, {"period": 5}),
        [0.1763, 0.1779, -0.2016, -0.1137, -0.1153, 0.2642],
        [1.2814, 1.3085, 1.2423, 1.2256, 1.1994, 1.2677],
        (0.031321, 1.012412),
    ),
    "EXTRA as released": (
        (extra_sgld, {"form": "two_steps"}),
        [0.1789, 0.0061, 0.0041, -0.1004, 0.0587, 0.0161],
        [1.6421, 1.6165, 1.6283, 1.5729, 1.5973, 1.6025],
        (0.027251, 1.389733),
    ),
}


def limit(module, graph=RING, step_size=0.1, problem=PROBLEM, **options):
    """Return means and variances of the agents and of their average in the stationary law."""
    params = module.Params(step_size=step_size, **options)
    module.check(problem, graph, params)
    update = module.affine(problem, graph, params)
    agents, dim = problem.agents, problem.dim
    start = exact.initial(agents, dim, (0.0, 1.0), *update.auxiliary)
    return exact.marginals(*exact.limit(update.at(0), *start), agents, dim)


@pytest.mark.parametrize("name", STATIONARY)
def test_the_stationary_law_has_the_digits_of_the_table(name):
    (module, options), means, variances, average = STATIONARY[name]
    found = [part.ravel() for part in limit(module, **options)]
    digits = 5.1e-5  # half a unit of the last of four digits, and rounding
    np.testing.assert_allclose(found[0], means, rtol=0, atol=digits)
    np.testing.assert_allclose(found[1], variances, rtol=0, atol=digits)
    np.testing.assert_allclose(np.concatenate(found[2:]), average, rtol=0, atol=digits / 100)


LOST = {
    ("de_sgld", "link"): (1.00319, 1.00323, 1.00323),
    ("de_sgld", "one_way"): (1.09877, 1.09882, 1.09882),
    ("diging_sgld", "link"): (1.00248, 1.00252, 1.00252),
    ("diging_sgld", "one_way"): (2.53524, 4.25668, 7.70244),
    ("extra_sgld", "link"): (1.00247, 1.00252, 1.00252),
    ("extra_sgld", "one_way"): (12925, 31339, 68266),
}
SAMPLERS = {"de_sgld": de_sgld, "diging_sgld": diging_sgld, "extra_sgld": extra_sgld}


def lossy(direction):
    loss = {"kind": "bernoulli", "rate": 0.2, "direction": direction}
    return under(RING, Conditions(loss=loss), "tests")


def law_under_losses(kind, direction, iterations):
    net, module = lossy(direction), SAMPLERS[kind]
    ways = Edges(net)
    update = module.affine(PROBLEM, net, module.Params(step_size=0.03))
    start = exact.initial(6, 1, (0.0, 0.0), *update.auxiliary)
    ends, on_loss = (ways.receivers, ways.senders), net.conditions.on_loss
    return paths.lossy([update], Losses(chances(net), ends, on_loss), [start], 6, 1).law(iterations)


@pytest.mark.parametrize(("kind", "direction"), LOST)
def test_a_fifth_of_the_vectors_lost_gives_the_variances_of_the_table(kind, direction):
    law = law_under_losses(kind, direction, [1000, 2000, 4000])
    expected = np.array(LOST[kind, direction])
    digits = 0.51 if expected[0] > 1000 else 5.1e-6
    np.testing.assert_allclose(law.average_cov.ravel(), expected, rtol=0, atol=digits)
    if kind != "de_sgld":
        assert abs(law.average_mean).max() < 1e-6  # it begins at 0, but b is not
    elif direction == "link":  # and the other way has the same mean
        other = law_under_losses(kind, "one_way", [4000])
        np.testing.assert_allclose(other.average_mean[-1], law.average_mean[-1], atol=1e-12)
        assert law.average_mean[-1] == pytest.approx(0.0070, abs=5e-5)


@pytest.mark.parametrize("direction", ["link", "one_way"])
@pytest.mark.parametrize("kind", ["diging_sgld", "extra_sgld"])
def test_what_a_step_conserves_is_lost_with_one_direction_alone(kind, direction):
    module, net = SAMPLERS[kind], drawing(lossy(direction), np.random.default_rng(1))
    rng, params = np.random.default_rng(2), module.Params(step_size=0.03)
    state, step = module.init(PROBLEM, net, params, np.zeros((200, 6, 1)), rng)
    sums = []
    for k in range(800):
        state, _ = step(state, k, rng)
        sums.append(state[1].sum(axis=1).std())
    if direction == "link":
        assert max(sums) < 1e-12
    else:  # a random walk, four times as long and so about twice as wide
        assert sums[-1] > 1.5 * sums[199] > 0


GRAPHS = ["ring", "torus", "exponential", "complete"]


@pytest.mark.parametrize(("h", "graph"), list(itertools.product([0.1, 0.5], GRAPHS)))
def test_with_equal_hessians_averages_have_one_law(h, graph):
    """On any doubly stochastic W the average is the Langevin algorithm with step eta / N on f."""
    rng, graph = np.random.default_rng(3), topology.build(graph, 16)
    root = rng.standard_normal((2, 2))
    hessian = root @ root.T / 16 + 0.02 * np.eye(2)
    problem = concord.problems.quadratic(np.tile(hessian, (16, 1, 1)), rng.standard_normal((16, 2)))
    gram, shift = 16 * hessian, problem.shift.sum(axis=0)
    eta = 0.02
    alone = exact.stationary(
        exact.Affine(np.eye(2) - eta / 16 * gram, eta / 16 * shift, 2 * eta / 16 * np.eye(2))
    )
    for module, options in ((de_sgld, {}), (extra_sgld, {"h": h}), (diging_sgld, {})):
        found = limit(module, graph, eta, problem, **options)
        np.testing.assert_allclose(found[2], alone[0], rtol=1e-8)
        np.testing.assert_allclose(found[3], alone[1], rtol=1e-8)


def test_ten_local_steps_bias_the_mean_and_variance_reduction_does_not():
    """With the mean of all, W = J/6; the numbers are of a calculation by itself."""
    everyone = topology.build("complete", 6)
    drifting = limit(local_sgld, everyone, period=10)
    assert drifting[2] == pytest.approx(0.08932, abs=1e-5)
    assert drifting[3] == pytest.approx(1.017169, abs=1e-6)
    reduced = limit(local_sgld, everyone, period=10, renewal=1.0)
    assert reduced[2] == pytest.approx(0, abs=1e-9)
    assert reduced[3] == pytest.approx(1.009593, abs=1e-6)
    # On a ring agents' references differ, and some bias is left.
    ring = [limit(local_sgld, RING, period=10, renewal=q)[2].item() for q in (None, 1.0)]
    assert ring == pytest.approx([0.069000, 0.007077], abs=1e-6)


@pytest.mark.parametrize("module", [extra_sgld, diging_sgld, local_sgld])
def test_a_directed_network_needs_weights_that_are_doubly_stochastic(module):
    graph = topology.build("directed_ring", 6)
    module.check(PROBLEM, graph, module.Params(step_size=0.1, weights="row_stochastic"))
    with pytest.raises(ConcordError, match=r"^weights: metropolis needs neighbors .*; use a"):
        module.check(PROBLEM, graph, module.Params(step_size=0.1))
    uneven = topology.build("directed_ring", 6, every=2, reach=3)
    with pytest.raises(ConcordError, match=r"^weights: row_stochastic are not doubly stochastic"):
        module.check(PROBLEM, uneven, module.Params(step_size=0.1, weights="row_stochastic"))
