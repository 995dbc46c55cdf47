"""Steps follow from the values of their schedules only where they do."""

from typing import Any, ClassVar

import matrices
import numpy as np
import pytest

import concord
from concord.laws import read_off
from concord.laws.exact import block_diagonal
from concord.laws.law import update_of
from concord.laws.read_off import StepReader
from concord.networks.network import Network
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampler import FullGradientSampler, Positions, langevin_noise
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule

RNG = np.random.default_rng(5)
ROOTS = RNG.standard_normal((4, 2, 4))
PROBLEM = QuadraticProblem(ROOTS @ ROOTS.swapaxes(1, 2), RNG.standard_normal((4, 2)))
NETWORK = Network(concord.network("ring", 4).graph)


class Odd(FullGradientSampler[Positions]):
    """Decentralized Langevin steps of which one is larger than its schedule says."""

    name: ClassVar[str] = "Odd"
    step_size: Schedule
    odd: int = -1
    ahead: int = 0

    def step(self, state: Positions, k: int, problem: Any, network: Any, rng: Any) -> Positions:
        """Return W x - eta grad f(x) + sqrt(2 eta) w, with eta of iteration k + ahead."""
        eta = self.step_size(k + self.ahead)
        drift = (1.01 if k == self.odd else 1.0) * eta * problem.gradient(state.x)
        noise = langevin_noise(rng, eta, state.x)
        return Positions(network.mix(network.matrix("metropolis"), state.x, plus=noise - drift))


@pytest.mark.parametrize("b", [1.0, 1000.0])
@pytest.mark.parametrize("odd", [-1, 37])
def test_steps_with_a_schedule_are_those_of_their_formula(
    monkeypatch: pytest.MonkeyPatch, b: float, odd: int
) -> None:
    fits, fit = [], read_off._fit_affine_map
    monkeypatch.setattr(read_off, "_fit_affine_map", lambda *args: fits.append(1) or fit(*args))
    schedule = Schedule(0.1 * b**0.6, b, 1.0, 0.6)
    update = update_of(Odd(schedule, odd), PROBLEM, NETWORK)
    weights = np.kron(matrices.dense(NETWORK.matrix("metropolis")), np.eye(2))
    gram = block_diagonal(PROBLEM.gram)
    for k in [*range(100), 10_000]:
        eta = schedule(k)
        drift = (1.01 if k == odd else 1.0) * eta
        step = update.at(k)
        np.testing.assert_allclose(step.matrix, weights - drift * gram, rtol=0, atol=1e-13)
        np.testing.assert_allclose(step.offset, drift * PROBLEM.shift.ravel(), rtol=0, atol=1e-13)
        np.testing.assert_allclose(step.noise, 2 * eta * np.eye(8), rtol=0, atol=1e-13)
    assert len(fits) < 60


@pytest.mark.parametrize("odd", [-1, 37])
def test_later_steps_follow_from_the_values_of_schedules(monkeypatch, odd: int) -> None:
    """No step is taken for them. Entries are as exact as numbers near one, also for small steps."""
    schedule = Schedule(0.1, 1.0, 1.0, 0.6)
    update = update_of(Odd(schedule, odd), PROBLEM, NETWORK)
    monkeypatch.setattr(read_off, "_Steps", None)
    monkeypatch.setattr(read_off.StepReader, "read_step", None)
    weights = np.kron(matrices.dense(NETWORK.matrix("metropolis")), np.eye(2))
    for k in [odd + 1, odd + 2, 99, 100, 12_345, 10**9]:
        eta, step = schedule(k), update.at(k)
        expected = weights - eta * block_diagonal(PROBLEM.gram)
        np.testing.assert_allclose(step.matrix, expected, rtol=1e-15, atol=2e-15)
        np.testing.assert_allclose(step.offset, eta * PROBLEM.shift.ravel(), rtol=1e-13, atol=0)
        np.testing.assert_allclose(step.noise, 2 * eta * np.eye(8), rtol=1e-13, atol=0)


def test_gains_of_gradients_follow_schedules_too() -> None:
    problem = concord.problems.linear_regression(
        [*RNG.standard_normal((4, 9, 2))], [*np.ones((4, 9))]
    )
    sampler = DESGLD(Schedule(0.01, 1.0, 1.0, 0.6), batch_size=3)
    reader = StepReader(sampler, problem, NETWORK).update()
    update = update_of(sampler, problem, NETWORK)
    for k in [3, 1000]:
        read, step = reader.at(k), update.at(k)
        assert np.abs(step.gradient_gain).max() > 0
        for name in ("matrix", "offset", "noise", "gradient_gain"):
            expected = getattr(read, name)
            np.testing.assert_allclose(getattr(step, name), expected, rtol=1e-12, atol=1e-14)


def test_steps_that_look_at_schedules_elsewhere_are_read_one_by_one() -> None:
    schedule = Schedule(0.1, 1.0, 1.0, 0.6)
    step = update_of(Odd(schedule, ahead=1), PROBLEM, NETWORK).at(3000)
    np.testing.assert_allclose(step.noise, 2 * schedule(3001) * np.eye(8), rtol=1e-12)
