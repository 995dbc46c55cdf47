"""The exact law against closed forms, brute-force loops and enumeration."""

import itertools
import warnings

import numpy as np
import pytest

import concord
import tracking
from concord.laws import exact, paths
from concord.laws.iterations import find_cycle
from concord.laws.law import laws_of_updates, update_of
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.samplers.admm import ADMM
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD


def always(affine: exact.Affine) -> exact.Update:
    return exact.Update(lambda k: affine, find_cycle=lambda: (0, 1))


def quadratic(agents: int, dim: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((agents, 8, dim))
    gram = features.swapaxes(1, 2) @ features
    return concord.problems.quadratic(gram, 3 * rng.standard_normal((agents, dim)))


def network(kind: str, agents: int) -> Network:
    return Network(build_graph(kind, agents))


def sgld(problem, network, eta: float, **batches) -> exact.Affine:
    return update_of(DESGLD(eta, **batches), problem, network).at(0)


def sghmc(problem, network, eta: float, friction: float) -> exact.Affine:
    return update_of(DESGHMC(eta, friction), problem, network).at(0)


def admms(problem, network, rho: float) -> exact.Affine:
    return update_of(ADMM(rho), problem, network).at(0)


def at_zero(blocks: int, size: int) -> exact.Start:
    """Return the start of blocks of which all but the positions are zero."""
    total = blocks * size
    return exact.Start(np.eye(total, size), np.zeros(total), np.zeros((total, total)))


STEPS = {"de_sgld": (sgld, 0.03), "de_sghmc": (sghmc, 0.1, 4.0), "d_admms": (admms, 1.5)}


def test_the_law_of_a_large_ring_is_the_recursion_of_dense_matrices() -> None:
    """Products take the few entries of A alone that are not 0."""
    affine = sghmc(quadratic(60, 2), network("ring", 60), 0.03, 4.0)
    stacked = exact.stack_versions([affine])
    assert affine.sparse is not None and stacked.sparse is not None
    assert exact.stack_versions([affine, affine]).sparse is None
    mean, cov = np.ones(240), np.diag(np.arange(240.0))
    expected = affine.matrix @ cov @ affine.matrix.T + affine.noise
    for moments in (affine.apply(mean, cov), stacked.apply(mean[None], cov[None])):
        assert moments[0].ravel() == pytest.approx(affine.matrix @ mean + affine.offset, abs=1e-11)
        assert moments[1].reshape(240, 240) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("sampler", STEPS)
def test_stationary_law_is_the_limit_of_the_recursion(sampler):
    build, *options = STEPS[sampler]
    affine = build(quadratic(4, 2, seed=1), network("ring", 4), *options)
    mean, cov = exact.stationary(affine)
    np.testing.assert_allclose(affine.matrix @ mean + affine.offset, mean, atol=1e-10)
    lyapunov = affine.matrix @ cov @ affine.matrix.T + affine.noise
    np.testing.assert_allclose(lyapunov, cov, atol=1e-10 * np.abs(cov).max())
    start = exact.initial_moments(4, 2, (1.0, 1.0), at_zero(len(mean) // 8, 8))
    law = paths.build_path(always(affine), start, 4, 2).law([3000])
    limit = exact.marginals(mean, cov, 4, 2)
    for late, final in zip(
        (law.mean, law.cov, law.average_mean, law.average_cov), limit, strict=True
    ):
        # Spectral radii below 0.99: 3000 steps leave 1e-13.
        np.testing.assert_allclose(late[0], final, atol=1e-9)


@pytest.mark.parametrize("a", [1.0, -1.0, 1.0001, 30.0])
def test_no_stationary_law_without_contraction(a):
    affine = exact.Affine(np.diag([a, 0.5]), np.zeros(2), np.eye(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert exact.stationary(affine) is None


def test_mini_batch_moments_agree_with_enumeration():
    # Two agents of two points each, one point per batch: all 4^k sequences of batches, each of
    # which gives a Gaussian, are enumerated; mean and covariance of their mixture must agree.
    rng = np.random.default_rng(5)
    curvature, slope = rng.uniform(0.5, 2, (2, 2)), rng.standard_normal((2, 2))
    eta, steps = 0.07, 4
    gram, shift = curvature.sum(axis=1)[:, None, None], slope.sum(axis=1)[:, None]
    problem = concord.problems.quadratic(gram, shift)
    affine = sgld(problem, network("ring", 2), eta, batch_size=1)

    def gradient_noise(mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        # The estimate is 2 (a_j x - b_j) for a random point j, so xi = +-(e x - g) with these.
        e, g = curvature[:, 0] - curvature[:, 1], slope[:, 0] - slope[:, 1]
        second = (e * mean[:, 0] - g) ** 2 + e**2 * cov[:, 0, 0]
        return second[:, None, None]

    mean0, cov0 = exact.initial_moments(2, 1, (0.5, 0.8))
    updates, starts, ring = [always(affine)], [(mean0, cov0)], network("ring", 2)
    law = laws_of_updates(updates, starts, ring, 1, noise=gradient_noise).law([steps])
    weights = network("ring", 2).matrix("metropolis")
    means, seconds = [], []
    for batches in itertools.product(itertools.product((0, 1), repeat=2), repeat=steps):
        mean, cov = mean0, cov0
        for chosen in batches:
            a = np.array([2 * curvature[i, j] for i, j in enumerate(chosen)])
            b = np.array([2 * slope[i, j] for i, j in enumerate(chosen)])
            step = weights - eta * np.diag(a)
            mean = step @ mean + eta * b
            cov = step @ cov @ step.T + 2 * eta * np.eye(2)
        means.append(mean)
        seconds.append(cov + np.outer(mean, mean))
    mean = np.mean(means, axis=0)
    cov = np.mean(seconds, axis=0) - np.outer(mean, mean)
    np.testing.assert_allclose(law.mean[0, :, 0], mean, rtol=1e-12)
    np.testing.assert_allclose(law.cov[0, :, 0, 0], np.diag(cov), rtol=1e-12)
    assert law.average_cov[0, 0, 0] == pytest.approx(cov.mean(), rel=1e-12)


def test_a_block_may_start_from_the_positions():
    """Unit vectors as chains: positions, their noise and the block's own, each moved by hand."""
    rng = np.random.default_rng(4)
    factor, matrix, offset = rng.standard_normal((2, 2)), rng.standard_normal((6, 6)), [5.0, -1.0]
    positions = rng.standard_normal((3, 2)), factor @ factor.T
    whole, noise = np.vstack([np.eye(6), matrix]), np.diag([0.0] * 6 + [0.25] * 6)
    start = exact.Start(whole, np.concatenate([np.zeros(6), np.tile(offset, 3)]), noise)
    mean, cov = exact.initial_moments(3, 2, positions, start)
    x0 = positions[0].ravel()
    np.testing.assert_allclose(mean, np.concatenate([x0, matrix @ x0 + np.tile(offset, 3)]))
    drawn = np.kron(np.eye(3), factor)
    gain = np.block([[drawn, np.zeros((6, 6))], [matrix @ drawn, 0.5 * np.eye(6)]])
    np.testing.assert_allclose(cov, gain @ gain.T, atol=1e-14)


def test_gradient_tracking_from_the_gradients_of_the_start():
    """The law against the equations, agent by agent, of which each chain is given one number."""
    agents, dim, steps, eta = 4, 2, 3, 0.01
    problem, ring = quadratic(agents, dim, seed=2), network("ring", agents)
    update = update_of(tracking.Tracking(eta), problem, ring)
    start = exact.initial_moments(agents, dim, (0.5, 2.0), update.start)
    law = paths.build_path(update, start, agents, dim).law([0, steps])

    weights, count = ring.matrix("metropolis"), agents * dim * (steps + 1)
    drawn = np.vstack([np.zeros(count), np.eye(count)]).reshape(-1, steps + 1, agents, dim)

    def gradient(x):
        return np.einsum("ade,cae->cad", problem.gram, x) - problem.shift

    x = 0.5 + 2.0 * drawn[:, 0]
    y = gradient(x)
    for k in range(steps):
        new = weights @ x - eta * y + np.sqrt(2 * eta) * drawn[:, k + 1]
        y = weights @ y + gradient(new) - gradient(x)
        x = new
    np.testing.assert_allclose(law.mean[1], x[0], rtol=1e-12)
    gain = x[1:] - x[0]
    np.testing.assert_allclose(law.cov[1], np.einsum("mad,mae->ade", gain, gain), rtol=1e-12)
    average = gain.mean(axis=1)
    np.testing.assert_allclose(law.average_cov[1], average.T @ average, rtol=1e-12)


@pytest.mark.parametrize("kind", ["ring", "complete"])
def test_restriction_removes_what_d_admms_conserves(kind):
    affine = admms(quadratic(5, 2), network(kind, 5), 1.5)
    reduced, basis = exact.restrict(affine)
    assert basis.shape == (20, 18)
    np.testing.assert_allclose(basis.T @ basis, np.eye(18), atol=1e-12)
    # The subspace is invariant, and offset and noise stay inside.
    np.testing.assert_allclose(basis @ reduced.matrix, affine.matrix @ basis, atol=1e-11)
    np.testing.assert_allclose(basis @ reduced.offset, affine.offset, atol=1e-11)
    np.testing.assert_allclose(basis @ reduced.noise @ basis.T, affine.noise, atol=1e-11)
    assert exact.spectral_radius(affine.matrix) == pytest.approx(1, abs=1e-9)
    assert exact.spectral_radius(reduced.matrix) < 0.999
    mean, cov = exact.stationary(affine)
    mean_in, cov_in = exact.stationary(reduced)
    np.testing.assert_allclose(basis @ mean_in, mean, atol=1e-9)
    np.testing.assert_allclose(basis @ cov_in @ basis.T, cov, atol=1e-9)


def test_restriction_keeps_a_random_walk():
    # Eigenvalue 1 driven by noise is no conserved quantity; the idle one beside it is.
    affine = exact.Affine(np.diag([1.0, 1.0, 0.5]), np.zeros(3), np.diag([1.0, 0.0, 1.0]))
    reduced, basis = exact.restrict(affine)
    assert basis.shape == (3, 2)
    np.testing.assert_allclose(basis[1], 0, atol=1e-15)
    assert exact.spectral_radius(reduced.matrix) == 1
    # Nothing conserved: nothing removed.
    free = sgld(quadratic(3, 2), network("ring", 3), 0.01)
    assert exact.restrict(free)[1].shape == (6, 6)


def test_largest_stable_step_of_the_complete_graph():
    # Equal f_i with curvature h: 1 - eta h for the average, 0 - eta h for the rest, so eta < 1/h;
    # without edges 1 - eta h throughout, so eta < 2/h.
    problem = concord.problems.quadratic(np.full((3, 1, 1), 5.0), np.ones((3, 1)))
    for kind, limit in (("complete", 0.2), ("no_edges", 0.4)):
        graph = network(kind, 3)
        is_stable = lambda eta, g=graph: exact.spectral_radius(sgld(problem, g, eta).matrix) < 1  # noqa: E731
        for start in (1e-3, 1.0):
            step = exact.find_largest(is_stable, start, 1e-6)
            assert step == pytest.approx(limit, rel=2e-6)
            assert step < limit


def test_stable_steps_out_of_reach():
    assert np.isnan(exact.find_largest(lambda eta: False, 1.0, 1e-4))
    assert exact.find_largest(lambda eta: True, 1.0, 1e-4) == np.inf


@pytest.mark.parametrize(
    "conserved", [False, True], ids=["it forgets its start", "it conserves a part of it"]
)
def test_powers_go_where_the_recursion_goes(conserved: bool) -> None:
    """Over few iterations between two records, and over 5,000."""
    problem, graph = quadratic(4, 2), network("ring", 4)
    update = admms(problem, graph, 2.0) if conserved else sgld(problem, graph, 1e-3)
    blocks = len(update.offset) // 8 - 1
    wide = at_zero(1 + blocks, 8)._replace(noise=np.diag([0.0] * 8 + [1.0] * 8 * blocks))
    start = exact.initial_moments(4, 2, (3.0, 2.0), wide)
    record = [0, 1, 7, 5007, 5010]

    def law(update: exact.Update) -> exact.Law:
        return paths.build_path(update, start, 4, 2).law(record)

    slow, fast = law(exact.Update(lambda k: update)), law(always(update))
    for name in ("mean", "cov", "average_mean", "average_cov"):
        one, other = getattr(slow, name), getattr(fast, name)
        assert not np.array_equal(one, other)
        # Roundings of 5,000 steps, relative to the largest entry.
        assert np.abs(one - other).max() <= 5000 * 2.3e-16 * np.abs(one).max()


def test_powers_are_taken_only_where_every_update_is_the_same() -> None:
    """A step that changes late, or once, or at last, is not overlooked."""
    usual, other = (
        exact.Affine(np.array([[a]]), np.ones(1), np.ones((1, 1))) for a in (0.999, 0.9)
    )
    start = np.zeros(1), np.zeros((1, 1))
    for odd in ([999], [500], range(400, 1000), range(0, 1000, 2), []):
        at = lambda k, odd=odd: other if k in odd else usual  # noqa: E731
        update = exact.Update(at, find_cycle=lambda at=at: find_cycle(at))
        law = paths.build_path(update, start, 1, 1).law([1000])
        mean, variance = 0.0, 0.0
        for k in range(1000):
            a = 0.9 if k in odd else 0.999
            mean, variance = a * mean + 1, a * a * variance + 1
        assert law.mean[0, 0, 0] == pytest.approx(mean, rel=1e-12)
        assert law.cov[0, 0, 0, 0] == pytest.approx(variance, rel=1e-12)


@pytest.mark.parametrize("iterations", [10**6, 10**6 + 1])
def test_a_law_of_a_million_iterations_takes_no_million_steps(monkeypatch, iterations) -> None:
    calls = []
    problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]]], b=[[1.0], [0.0]])
    of = exact.Affine.apply
    monkeypatch.setattr(exact.Affine, "apply", lambda *args: calls.append(1) or of(*args))
    law = concord.law(
        *("de_sgld", problem, "complete"),
        iterations=iterations,
        record={"at": [iterations]},
        step_size=0.1,
    )
    assert len(calls) < 50
    expected = concord.law("de_sgld", problem, "complete", iterations=2000, step_size=0.1)
    assert len(calls) > 2000
    for name in ("mean", "cov"):
        assert np.allclose(getattr(law, name), getattr(expected, name)[-1:], rtol=1e-12)
