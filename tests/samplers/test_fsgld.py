"""FSGLD and DSGLD: unbiased over agents, and their exact moments."""

import numpy as np
import pytest

import concord
from concord.laws import exact
from concord.networks import topology
from concord.samplers import fsgld
from concord.sampling.gradients import gradient_at
from concord.sampling.schedules import Schedule
from concord.testing.variants import Bare
from variants import Still, problem

SERVER = topology.build("server", 4)
UNEQUAL = (0.1, 0.2, 0.3, 0.4)


class Drawing(Still):
    """No noise, and in every chain the next agent."""

    def __init__(self, uniform):
        super().__init__(len(uniform))
        self.uniform = uniform

    def random(self, out):
        out[:] = self.uniform


def once(prob, params, theta):
    """What one step makes of theta, for each agent drawn."""
    x0 = np.repeat(theta[None, None], 4, axis=0).repeat(4, axis=1)
    chances = np.full(4, 0.25) if params.probabilities is None else np.array(UNEQUAL)
    rng = Drawing(np.cumsum(chances) - chances / 2)
    state, step = fsgld.init(prob, SERVER, params, x0, rng)
    state, info = step(state, 0, rng)
    assert np.ptp(state.x, axis=1).max() == 0
    assert np.array_equal(info.unicasts, 2 * np.eye(4)), "only the one drawn sends, and is sent"
    assert np.array_equal(info.gradients, params.local_steps * np.eye(4))
    return state.x[:, 0], chances


@pytest.mark.parametrize("surrogates", ["none", "laplace"])
@pytest.mark.parametrize("chances", [None, UNEQUAL])
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_over_agents_the_drift_is_that_of_the_posterior(kind, surrogates, chances):
    prob, eta, theta = problem(4, 2), 0.03, np.array([0.7, -1.3])
    if kind == "logistic":
        rng = np.random.default_rng(2)
        X = rng.standard_normal((40, 2))
        prob = concord.problems.logistic_regression(X, X[:, 0] > 0.3, agents=4)
    params = fsgld.Params(Schedule(eta), surrogates=surrogates, probabilities=chances)
    moved, chance = once(prob, params, theta)
    gradients = np.empty((1, 4, 2))
    prob.gradient(1)(np.broadcast_to(theta, (1, 4, 2)).copy(), gradients)
    full = gradients[0].sum(axis=0)
    np.testing.assert_allclose(chance @ moved, theta - eta * full, rtol=1e-10)
    assert (np.ptp(moved, axis=0).max() > 1e-6) == ((kind, surrogates) != ("linear", "laplace"))


@pytest.mark.parametrize("surrogates", ["none", "laplace"])
@pytest.mark.parametrize("steps", [1, 3])
def test_the_step_is_the_choice_of_the_law(surrogates, steps):
    prob = problem(4, 2)
    params = fsgld.Params(
        Schedule(0.01), surrogates=surrogates, probabilities=UNEQUAL, local_steps=steps
    )
    law = fsgld.choices(prob, SERVER, params)(0)
    theta = np.array([0.7, -1.3])
    moved, _ = once(prob, params, theta)
    state = np.tile(theta, 4)
    np.testing.assert_allclose(
        np.tile(moved, 4), np.einsum("sij,j->si", law.matrix, state) + law.offset, rtol=1e-12
    )


def test_simulated_moments_are_those_of_the_law():
    prob, chains = problem(3, 2), 20_000
    options = {"step_size": 0.02, "surrogates": "none", "probabilities": [0.2, 0.3, 0.5]}
    trace = concord.sample(
        "fsgld", prob, "server", iterations=12, chains=chains, record={"at": [12]}, **options
    )
    x = trace["x"][:, 0, 0]
    at = fsgld.choices(prob, topology.build("server", 3), fsgld.Params(**options))
    mean, cov = exact.initial(3, 2, (0.0, 1.0))
    for k in range(12):
        mean, cov = at(k).step(mean, cov)
    z = (x.mean(axis=0) - mean[:2]) / np.sqrt(cov.diagonal()[:2] / chains)
    assert np.abs(z).max() < 4
    fourth = ((x - x.mean(axis=0)) ** 4).mean(axis=0) / x.var(axis=0) ** 2  # heavier than normal
    z = (x.var(axis=0) / cov.diagonal()[:2] - 1) / np.sqrt((fourth - 1) / chains)
    assert np.abs(z).max() < 4


def test_surrogates_of_quadratic_potentials_leave_langevin_alone():
    """Its stationary covariance is that of ULA on the sum, without them it is wider."""
    prob, wide = problem(4, 2), []
    for surrogates in ("laplace", "none"):
        params = fsgld.Params(Schedule(0.01), surrogates=surrogates)
        mean, cov = fsgld.choices(prob, SERVER, params)(0).stationary()
        np.testing.assert_allclose(mean[:2], prob.posterior.mean, rtol=1e-8)
        wide.append(cov[:2, :2])
    gram = prob.gram.sum(axis=0)
    ula = np.linalg.inv(gram @ (np.eye(2) - 0.005 * gram))
    np.testing.assert_allclose(wide[0], ula, rtol=1e-8)
    assert np.linalg.eigvalsh(wide[1] - wide[0]).min() > 0.01 * ula.max()


def test_gradients_of_chosen_agents_are_those_of_all():
    prob, rng = problem(4, 2), np.random.default_rng(3)
    x, agents = rng.standard_normal((5, 1, 2)), rng.integers(0, 4, (5, 1))
    found, wanted = np.empty_like(x), np.empty_like(x)

    class Plain(Bare):
        gradient = staticmethod(prob.gradient)

    gradient_at(prob, 5, 1)(x, agents, found)
    gradient_at(Plain(4), 5, 1)(x, agents, wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
