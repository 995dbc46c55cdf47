"""DG-LMC: the law that it has when its steps are small, and its options."""

from __future__ import annotations

import numpy as np
import pytest

import concord
from concord.laws import exact
from concord.networks import topology
from concord.samplers import dg_lmc
from concord.sampling.schedules import Schedule
from variants import problem


def stationary(prob, **options):
    graph = topology.build("server", prob.agents)
    update = dg_lmc.affine(prob, graph, dg_lmc.Params(**options))
    size = prob.agents * prob.dim
    mean, cov = exact.stationary(update.at(0))
    return exact.marginals(mean[:size], cov[:size, :size], prob.agents, prob.dim)


@pytest.mark.parametrize(
    ("agents", "rho", "steps"), [(4, 0.05, 1), (3, (0.02, 0.1, 0.3), 3), (1, 0.2, 2)]
)
def test_small_steps_leave_the_bias_of_the_tolerance(agents, rho, steps):
    """Each A_i becomes (A_i^-1 + rho_i I)^-1; the rest goes with the step."""
    prob = problem(agents, 2)
    widths = np.broadcast_to(np.asarray(rho), agents)[:, None, None] * np.eye(2)
    own = np.linalg.inv(np.linalg.inv(prob.gram) + widths)
    cov = np.linalg.inv(own.sum(axis=0))
    centers = np.linalg.solve(prob.gram, prob.shift[..., None])[..., 0]
    mean = cov @ np.einsum("aij,aj->i", own, centers)
    assert np.abs(cov / prob.posterior.cov - 1).max() > 0.05  # it is no small bias
    off = []
    for step in (2e-4, 1e-4):
        found = stationary(prob, step_size=Schedule(step), tolerance=rho, local_steps=steps)
        np.testing.assert_allclose(found[0] - found[0][:1], 0, atol=1e-12)
        np.testing.assert_allclose(found[2], mean, rtol=1e-8)
        off.append(found[3] - cov)
    assert np.abs(off[0]).max() < 0.02 * np.abs(cov).max()
    np.testing.assert_allclose(off[0], 2 * off[1], atol=0.02 * np.abs(off[0]).max())


def test_all_agents_know_the_same():
    trace = concord.sample(
        "dg_lmc", problem(5, 2), "server", step_size=0.01, tolerance=0.1, iterations=3, chains=4
    )
    x = trace["x"]
    assert np.ptp(x[:, 0], axis=1).min() > 0  # the start
    assert np.ptp(x[:, 1:], axis=2).max() == 0
    assert trace["unicasts"][-1].tolist() == [6] * 5  # up and down, three times


def test_it_takes_as_many_gradients_as_steps():
    prob = problem(3, 2)
    params = dg_lmc.Params(Schedule(0.01), tolerance=0.1, local_steps=4)
    rng = np.random.default_rng(1)
    state, step = dg_lmc.init(prob, topology.build("server", 3), params, np.zeros((2, 3, 2)), rng)
    assert step(state, 0, rng)[1].gradients.tolist() == [4, 4, 4]
