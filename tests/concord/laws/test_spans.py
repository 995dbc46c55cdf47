"""Steps are read as combinations of others only where they are."""

from typing import Any, ClassVar

import matrices
import numpy as np
import pytest

import concord
from concord.laws import read_off, spans
from concord.laws.exact import block_diagonal
from concord.laws.law import update_of
from concord.laws.read_off import StepReader
from concord.laws.spans import Span
from concord.networks.network import Network
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampler import FullGradientSampler, Positions, langevin_noise
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


def test_a_vector_in_the_span_is_found_and_another_is_not() -> None:
    seen, known = RNG.standard_normal((3, 5, 4)), RNG.standard_normal((3, 30))
    span = Span()
    assert span.find(seen[0]) is None
    span.add(seen[0], known[0])
    span.add(seen[1], known[1])
    found = span.find(2 * seen[0] - 3 * seen[1])
    np.testing.assert_allclose(found, 2 * known[0] - 3 * known[1], rtol=0, atol=1e-13)
    beside = seen[0].copy()
    beside[2, 3] *= 1 + 1e-13
    assert span.find(beside) is None
    assert span.find(seen[2]) is None


def test_a_full_span_begins_anew() -> None:
    span = Span()
    for number in range(spans.MOST + 1):
        span.add(np.eye(spans.MOST + 1)[[number]], np.ones(2))
    assert span.find(np.eye(spans.MOST + 1)[[0]]) is None
    assert span.find(np.eye(spans.MOST + 1)[[spans.MOST]]) is not None


@pytest.mark.parametrize("b", [1.0, 1000.0])
@pytest.mark.parametrize("odd", [-1, 37])
def test_steps_with_a_schedule_are_those_of_their_formula(
    monkeypatch: pytest.MonkeyPatch, b: float, odd: int
) -> None:
    fits, fit = [], read_off._fit_affine_map
    monkeypatch.setattr(read_off, "_fit_affine_map", lambda *args: fits.append(1) or fit(*args))
    schedule = Schedule(0.1 * b**0.6, b, 1.0, 0.6)
    update = StepReader(Odd(schedule, odd), PROBLEM, NETWORK).update()
    weights = np.kron(matrices.dense(NETWORK.matrix("metropolis")), np.eye(2))
    gram = block_diagonal(PROBLEM.gram)
    for k in [*range(100), 10_000]:
        eta = schedule(k)
        drift = (1.01 if k == odd else 1.0) * eta
        step = update.at(k)
        np.testing.assert_allclose(step.matrix, weights - drift * gram, rtol=0, atol=1e-13)
        np.testing.assert_allclose(step.offset, drift * PROBLEM.shift.ravel(), rtol=0, atol=1e-13)
        np.testing.assert_allclose(step.noise, 2 * eta * np.eye(8), rtol=0, atol=1e-13)
    assert len(fits) < 40


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


def test_steps_that_look_at_schedules_elsewhere_are_read_one_by_one() -> None:
    schedule = Schedule(0.1, 1.0, 1.0, 0.6)
    step = update_of(Odd(schedule, ahead=1), PROBLEM, NETWORK).at(3000)
    np.testing.assert_allclose(step.noise, 2 * schedule(3001) * np.eye(8), rtol=1e-12)
