"""Steps follow from the values of their schedules only where they do."""

from typing import Any, ClassVar

import matrices
import numpy as np
import pytest

import concord
from concord.laws import read_off
from concord.laws.exact import block_diagonal
from concord.laws.law import find_family, update_of
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


@pytest.mark.parametrize("errors", [False, True])
def test_settings_of_a_step_are_read_at_few_values(errors: bool) -> None:
    """Entries are those of the formula, at values far apart, and gains too where they are read."""
    values = [0.2 * 4.0**-i for i in range(12)]
    samplers = [DESGLD(Schedule(value)) for value in values]
    family = find_family(samplers, [PROBLEM], NETWORK, errors)
    assert family is not None
    updates = family.updates_of(samplers)
    assert updates is not None
    weights = np.kron(matrices.dense(NETWORK.matrix("metropolis")), np.eye(2))
    for eta, update in zip(values, updates, strict=True):
        step = update.at(7)
        expected = weights - eta * block_diagonal(PROBLEM.gram)
        np.testing.assert_allclose(step.matrix, expected, rtol=1e-14, atol=2e-15)
        np.testing.assert_allclose(step.offset, eta * PROBLEM.shift.ravel(), rtol=1e-13, atol=0)
        np.testing.assert_allclose(step.noise, 2 * eta * np.eye(8), rtol=1e-13, atol=0)
        assert (step.gradient_gain is not None) == errors
        if errors:
            np.testing.assert_allclose(step.gradient_gain, -eta * np.eye(8), rtol=1e-13, atol=1e-15)


class Rough(Odd):
    """Steps whose size is no polynomial of the root of their option."""

    def step(self, state: Positions, k: int, problem: Any, network: Any, rng: Any) -> Positions:
        """Return x - (1 - exp(-20 eta)) grad f(x) + w."""
        eta = 1 - np.exp(-20 * self.step_size(k))
        noise = rng.standard_normal(state.x.shape)
        return Positions(state.x - eta * problem.gradient(state.x) + noise)


def test_settings_that_are_no_polynomials_are_read_one_by_one() -> None:
    samplers = [Rough(Schedule(value)) for value in (0.1, 0.02)]
    family = find_family(samplers, [PROBLEM], NETWORK)
    assert family is not None
    assert family.updates_of(samplers) is None
    step = family.reader_of(samplers[1]).read_step(0).update
    expected = np.eye(8) - (1 - np.exp(-0.4)) * block_diagonal(PROBLEM.gram)
    np.testing.assert_allclose(step.matrix, expected, rtol=1e-12, atol=1e-13)


def test_settings_that_differ_otherwise_are_no_family() -> None:
    one = Odd(Schedule(0.1))
    assert find_family([one, Odd(Schedule(0.2), 3)], [PROBLEM], NETWORK) is None
    assert find_family([one, Odd(Schedule(0.1), 3)], [PROBLEM], NETWORK) is None
