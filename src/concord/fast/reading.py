"""Steps read as matrices (A, B, c), which schedules may change from iteration to iteration."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from msgspec.structs import fields, replace

from concord.laws.read_off import StepReader
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampler import Algorithm
from concord.sampling.schedules import Schedule

# Square roots of schedules' values, relative to the first value, at which steps are read: the
# nodes of Chebyshev's polynomials on (0, 1), by which a polynomial of degree four is well known.
NODES = np.cos(np.pi * np.arange(1, 10, 2) / 20) ** 2
LONGEST = 32  # steps of a period
ROUNDING, LEAST = 1e-11, 1e-13  # of an entry, relative to itself, and to the largest of its row


class UnsteadyStep(Exception):
    """An error that says that a step is no function of schedules' values."""


class ReadStep:
    """A sampler's step as matrices (A_k, B_k, c_k), (S, S + T + 1), of which zeros are left out.

    begin, period: the iteration from which on steps repeat, but for schedules, and after how many.
    size: S. draws: how many numbers of a chain each call of the generator draws, T together.
    starts, columns: start of each row among the entries, and their columns.
    coefficients: those of powers by which the entries of each step of a period come out, (period,
    powers, entries).

    problem: a quadratic one; None: gradients, (agents, dim), are given as the first draw. last: the
    last iteration. Raises ``UnsteadyStep``, ``NoLaw``, or whatever a step does, where it is not
    read.
    """

    def __init__(
        self, sampler: Algorithm, problem: Any, network: Any, shape: tuple[int, int], last: int
    ) -> None:
        flat = QuadraticProblem(np.zeros((*shape, shape[1])), np.zeros(shape))
        self._problem, self._network = flat if problem is None else problem, network
        self._wrap = _WithGivenGradients if problem is None else lambda one: one
        values = {option.name: getattr(sampler, option.name) for option in fields(sampler)}
        self._schedules = {
            name: value
            for name, value in values.items()
            if isinstance(value, Schedule) and not value.constant
        }
        self._first = np.array([schedule.initial for schedule in self._schedules.values()])
        others = np.kron(np.eye(len(self._first)), NODES[1:, None] - NODES[0])
        roots = NODES[0] + np.vstack([np.zeros(len(self._first)), others])
        periods = np.array([self._read_period(sampler, row) for row in roots])
        rows, self.columns = np.nonzero((periods != 0).any(axis=(0, 1)))
        self.size = periods.shape[2]
        self.starts = np.searchsorted(rows, np.arange(self.size + 1))
        entries = periods[:, :, rows, self.columns].swapaxes(0, 1)
        self.coefficients = np.linalg.solve(_raise(roots), entries)
        if self._schedules:
            self._test(sampler, rows, last)

    def powers(self, iterations: np.ndarray) -> np.ndarray:
        """Return the powers of which the entries consist in iterations, (steps, powers)."""
        if not self._schedules:
            return np.ones((len(iterations), 1))
        values = np.stack([schedule(iterations) for schedule in self._schedules.values()], axis=1)
        return _raise(np.sqrt(values / self._first))

    def _read_period(self, sampler: Algorithm, roots: np.ndarray) -> np.ndarray:
        """Read the steps of a period, (period, S, S + T + 1), with constant schedules.

        roots: square roots of their values. ``UnsteadyStep`` if steps do not repeat soon.
        """
        constant = zip(self._schedules, roots**2 * self._first, strict=True)
        steady = replace(sampler, **{name: Schedule(value) for name, value in constant})
        reader = StepReader(self._wrap(steady), self._problem, self._network)
        if reader.cycle is None or reader.cycle[1] > LONGEST:
            raise UnsteadyStep
        self.begin, self.period = reader.cycle
        return np.array([self._read(reader, self.begin + phase) for phase in range(self.period)])

    def _read(self, reader: StepReader, k: int) -> np.ndarray:
        """Read the step of iteration k, (S, S + T + 1). ``UnsteadyStep`` if it makes choices."""
        maps = reader.read_step(k)
        if len(maps.choices.probability) > 1:
            raise UnsteadyStep
        self.draws = np.array([kick.shape[1] for kick in maps.kicks], dtype=np.int64)
        return np.hstack([maps.update.matrix, *maps.kicks, maps.update.offset[:, None]])

    def _test(self, sampler: Algorithm, rows: np.ndarray, last: int) -> None:
        """Raise ``UnsteadyStep`` unless the sampler's own steps, at two iterations, are as read.

        It might ask for schedules' values elsewhere than at k. rows: of the entries.
        """
        reader = StepReader(self._wrap(sampler), self._problem, self._network)
        for k in (self.begin + 1, last):
            reading = self._read(reader, k)
            expected = np.zeros_like(reading)
            coefficients = self.coefficients[(k - self.begin) % self.period]
            expected[rows, self.columns] = self.powers(np.array([k]))[0] @ coefficients
            least = LEAST * np.abs(reading[:, :-1]).max(axis=1, keepdims=True)
            if not np.allclose(expected, reading, rtol=ROUNDING, atol=least):
                raise UnsteadyStep


def _raise(roots: np.ndarray) -> np.ndarray:
    """Return one and the powers one to four of each column of roots, (steps, schedules)."""
    powers = roots[:, :, None] ** np.arange(1, len(NODES))
    return np.hstack([np.ones((len(roots), 1)), powers.reshape(len(roots), -1)])


class _WithGivenGradients:
    """A sampler of the same steps as a given one, which gets gradients as random numbers."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the given sampler."""
        return getattr(self._sampler, name)

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        """Take the given sampler's step, with gradients from rng."""
        given = SimpleNamespace(gradient=lambda x: rng.standard_normal(x.shape))
        return self._sampler.step(state, k, given, network, rng)
