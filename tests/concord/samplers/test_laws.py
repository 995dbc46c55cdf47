"""Stationary laws, read off a sampler's steps, against numbers and closed forms by hand.

Six agents on a ring: f_i = h_i x^2 / 2 - b_i x; the h_i add up to 1 and the b_i to 0, so the
posterior is N(0, 1). The numbers are of a calculation by itself, to the digits given.
"""

import itertools

import numpy as np
import pytest

from concord.laws.read_off import StepReader
from concord.networks.construction import network
from concord.samplers.admm import ADMM
from concord.samplers.d_mala import DMALA
from concord.samplers.de_sgld import DESGLD
from concord.samplers.dg_lmc import DGLMC
from concord.samplers.diging_sgld import DIGingSGLD
from concord.samplers.extra_sgld import EXTRASGLD
from concord.samplers.graph_gibbs import GraphGibbs
from concord.samplers.local_sgld import LocalSGLD
from steps import NAMES, NETWORKS, Quadratic, Regression, limit, steps_of

CURVATURES = np.array([0.10, 0.20, 0.10, 0.25, 0.15, 0.20])
SHIFTS = np.array([1, -0.5, 0.3, -0.8, 0.6, -0.6])
PROBLEM = Quadratic(CURVATURES[:, None, None], SHIFTS[:, None])
RING = network("ring", 6)
STATIONARY = {
    "DE-SGLD": (
        DESGLD(0.1),
        [0.1521, -0.0001, -0.0023, -0.0946, 0.0461, 0.0088],
        [1.2512, 1.2350, 1.2421, 1.2066, 1.2222, 1.2258],
        (0.018343, 1.010312),
    ),
    "EXTRA, h = 0.5": (
        EXTRASGLD(0.1, h=0.5),
        [0.0] * 6,
        [1.3744, 1.3712, 1.3752, 1.3696, 1.3727, 1.3721],
        (0.0, 1.008471),
    ),
    "EXTRA, h = 0.1": (
        EXTRASGLD(0.1, h=0.1),
        [0.0] * 6,
        [1.2473, 1.2437, 1.2462, 1.2392, 1.2427, 1.2426],
        (0.0, 1.008693),
    ),
    "DIGing": (
        DIGingSGLD(0.1),
        [0.0] * 6,
        [1.2321, 1.2316, 1.2312, 1.2292, 1.2297, 1.2307],
        (0.0, 1.008505),
    ),
    "five local steps": (
        LocalSGLD(0.1, period=5),
        [0.1763, 0.1779, -0.2016, -0.1137, -0.1153, 0.2642],
        [1.2814, 1.3085, 1.2423, 1.2256, 1.1994, 1.2677],
        (0.031321, 1.012412),
    ),
}


@pytest.mark.parametrize("name", STATIONARY)
def test_the_stationary_law_has_the_digits_of_the_table(name):
    sampler, means, variances, average = STATIONARY[name]
    found = limit(sampler, PROBLEM, RING)
    digits = 5.1e-5  # half a unit of the last of four digits, and rounding
    np.testing.assert_allclose(found[0].ravel(), means, rtol=0, atol=digits)
    np.testing.assert_allclose(found[1].ravel(), variances, rtol=0, atol=digits)
    np.testing.assert_allclose(
        [part.item() for part in found[2:4]], average, rtol=0, atol=digits / 100
    )


@pytest.mark.parametrize(
    ("h", "kind"),
    list(itertools.product([0.1, 0.5], ["ring", "torus", "exponential", "complete"])),
)
def test_with_equal_hessians_averages_have_one_law(h, kind):
    """On any doubly stochastic W the average is the Langevin algorithm with step eta / N on f."""
    rng, net, eta = np.random.default_rng(3), network(kind, 16), 0.02
    root = rng.standard_normal((2, 2))
    hessian = root @ root.T / 16 + 0.1 * np.eye(2)
    problem = Quadratic(np.tile(hessian, (16, 1, 1)), rng.standard_normal((16, 2)))
    gram, step = 16 * hessian, eta / 16
    cov = np.linalg.inv(gram @ (np.eye(2) - step / 2 * gram))
    for sampler in (DESGLD(eta), EXTRASGLD(eta, h=h), DIGingSGLD(eta)):
        found = limit(sampler, problem, net)
        np.testing.assert_allclose(found[2], problem.posterior.mean, rtol=1e-8)
        np.testing.assert_allclose(found[3], cov, rtol=1e-8)


def test_ten_local_steps_bias_the_mean_and_variance_reduction_does_not():
    """With the mean of all, W = J/6; on a ring agents' references differ, and some bias is left."""
    everyone = network("complete", 6)
    drifting = limit(LocalSGLD(0.1, period=10), PROBLEM, everyone)
    assert drifting[2] == pytest.approx(0.08932, abs=1e-5)
    assert drifting[3] == pytest.approx(1.017169, abs=1e-6)
    reduced = limit(LocalSGLD(0.1, period=10, renewal=1.0), PROBLEM, everyone)
    assert reduced[2] == pytest.approx(0, abs=1e-9)
    assert reduced[3] == pytest.approx(1.009593, abs=1e-6)
    ring = [limit(LocalSGLD(0.1, period=10, renewal=q), PROBLEM, RING)[2].item() for q in (None, 1)]
    assert ring == pytest.approx([0.069000, 0.007077], abs=1e-6)


@pytest.mark.parametrize("direction", ["link", "one_way"])
@pytest.mark.parametrize("sampler", [DIGingSGLD(0.03), EXTRASGLD(0.03)], ids=["diging", "extra"])
def test_what_a_step_conserves_is_lost_with_one_direction_alone(sampler, direction):
    loss = {"kind": "bernoulli", "rate": 0.2, "direction": direction}
    net, x0 = network("ring", 6, loss=loss), np.zeros((1000, 6, 1))
    found = steps_of(sampler, PROBLEM, net, 800, x0=x0)
    sums = [state[1].sum(axis=1).std() for state in found.states]
    if direction == "link":
        assert max(sums) < 1e-12
    else:  # a random walk, from where a transient has led
        assert sums[-1] > 1.35 * sums[200] > 0


# Samplers of other laws.


def coupled(problem, net, rho):
    """Return mean and covariance of the graph-coupled target."""
    precision = np.zeros((net.agents, problem.dim) * 2)
    for i in range(net.agents):
        precision[i, :, i] += problem.gram[i]
    for i, j in net.edges:
        for a, b in ((i, j), (j, i)):
            precision[a, :, a] += np.eye(problem.dim) / rho
            precision[a, :, b] -= np.eye(problem.dim) / rho
    cov = np.linalg.inv(precision.reshape(problem.shift.size, -1))
    return (cov @ problem.shift.ravel()).reshape(problem.shift.shape), cov


@pytest.mark.parametrize("net", NETWORKS, ids=NAMES)
def test_draws_of_graph_gibbs_have_the_graph_coupled_law(net):
    problem = Regression(net.agents, 2)
    found, expected = limit(GraphGibbs(0.1), problem, net), coupled(problem, net, 0.1)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found[4], expected[1], rtol=1e-9, atol=1e-10)


def test_small_langevin_steps_of_graph_gibbs_have_it_too():
    problem, net = Regression(5, 2), network("ring", 5)
    expected = coupled(problem, net, 0.5)[1]
    first, second = (
        np.abs(limit(GraphGibbs(0.5, gamma), problem, net)[4] - expected).max()
        for gamma in (2e-3, 1e-3)
    )
    assert first < 0.05 * expected.max()
    assert 1.8 < first / second < 2.2


def test_graph_gibbs_gets_to_the_posterior_as_its_tolerance_falls():
    problem, off = Regression(6, 2), []
    for rho in (2e-3, 1e-3):
        found = limit(GraphGibbs(rho), problem, network("complete", 6))
        off.append(np.abs(found[3] - problem.posterior.cov).max())
    assert off[0] < 0.05 * problem.posterior.cov.max()
    assert off[1] < 0.6 * off[0]


def test_d_admms_conserves_the_sum_of_its_duals_and_has_the_right_mean():
    problem = Regression(6, 2)
    matrix = StepReader(ADMM(5.0), problem, RING).update().at(0).matrix
    sizes = np.sort(np.abs(np.linalg.eigvals(matrix)))
    assert np.abs(sizes[-2:] - 1).max() < 1e-9 and sizes[-3] < 1 - 1e-4
    mean = limit(ADMM(5.0), problem, RING)[0]
    np.testing.assert_allclose(mean, np.tile(problem.posterior.mean, (6, 1)), atol=1e-8)


def test_the_average_of_small_steps_of_d_mala_has_half_the_variance_or_all_of_it():
    problem, ring = Regression(5, 2), network("ring", 5)
    for drift, factor in (("half", 1.0), ("whole", 0.5)):
        off = []
        for epsilon in (0.04, 0.02):
            found = limit(DMALA(epsilon, drift, "none"), problem, ring)
            np.testing.assert_allclose(found[2], problem.posterior.mean, rtol=1e-6)
            off.append(np.abs(found[3] - factor * problem.posterior.cov).max())
        assert off[0] < 0.02 * problem.posterior.cov.max()
        assert off[1] < 0.3 * off[0]


@pytest.mark.parametrize(
    ("agents", "rho", "steps", "coupling"),
    [(4, 0.05, 1, None), (1, 0.2, 2, None), (3, 0.05, 3, ((1.0, 0.5), (-0.3, 2.0)))],
)
def test_small_steps_of_dg_lmc_leave_the_bias_of_its_tolerance(agents, rho, steps, coupling):
    """Each P_i becomes (P_i^-1 + rho (A^T A)^-1)^-1; the rest goes with the step."""
    problem, net = Regression(agents, 2), network("server", agents)
    root = np.eye(2) if coupling is None else np.array(coupling)
    own = np.linalg.inv(np.linalg.inv(problem.gram) + rho * np.linalg.inv(root.T @ root))
    cov = np.linalg.inv(own.sum(axis=0))
    centers = np.linalg.solve(problem.gram, problem.shift[..., None])[..., 0]
    mean = cov @ np.einsum("aij,aj->i", own, centers)
    assert np.abs(cov / problem.posterior.cov - 1).max() > 0.05  # it is no small bias
    off = []
    for step in (2e-4, 1e-4):
        found = limit(DGLMC(step, rho, local_steps=steps, coupling=coupling), problem, net)
        np.testing.assert_allclose(found[0], np.tile(mean, (agents, 1)), rtol=1e-8)
        off.append(found[3] - cov)
    assert np.abs(off[0]).max() < 0.02 * np.abs(cov).max()
    np.testing.assert_allclose(off[0], 2 * off[1], atol=0.02 * np.abs(off[0]).max())
