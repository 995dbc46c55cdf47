"""Steps read as matrices (A, B, c), which schedules may change from iteration to iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec.structs import fields, replace

from concord.laws.read_off import StepReader
from concord.problem import CountedProblem
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampling.schedules import Schedule

# Square roots of schedules' values, relative to the first value, at which steps are read: the
# nodes of Chebyshev's polynomials on (0, 1), by which a polynomial of degree four is well known.
NODES = np.cos(np.pi * np.arange(1, 10, 2) / 20) ** 2
BETWEEN = np.array([0.7, 0.4])  # values at which the polynomials are tested
ROUNDING = 1e-11  # of the entries of a row, relative to the largest


class UnsteadyStep(Exception):
    """An error that says that a step is no function of schedules' values."""


class ReadStep:
    """A sampler's step as matrices (A_k, B_k, c_k), (S, S + T + 1), of which zeros are left out.

    begin: the first iteration of which this is the step. size: S. draws: how many numbers of a
    chain each call of the generator draws, T together.
    starts, columns: start of each row among the nonzero entries, and the entries' columns.

    problem: a quadratic one; None: gradients are given as the first draw. last: the last iteration.
    shape: (agents, dim). Raises ``UnsteadyStep``, ``NoLaw``, or whatever a step does, where it is
    not read.
    """

    def __init__(
        self, sampler: Any, problem: Any, network: Any, last: int, shape: tuple[int, int]
    ) -> None:
        self._sampler, self._network = sampler, network
        self._gives = problem is None
        flat = np.zeros((*shape, shape[1])), np.zeros(shape)
        self._problem = QuadraticProblem(*flat) if self._gives else problem
        self._names = [
            option.name
            for option in fields(sampler)
            if isinstance(value := getattr(sampler, option.name), Schedule) and not value.constant
        ]
        self._schedules = [getattr(sampler, name) for name in self._names]
        self._first = np.array([schedule.initial for schedule in self._schedules])
        count = len(self._names)
        roots = np.full((1 + (len(NODES) - 1) * count, count), NODES[0])
        for number in range(count):
            roots[1 + 4 * number : 5 + 4 * number, number] = NODES[1:]
        readings = np.array([self._read_at(values) for values in roots**2])
        rows, self.columns = np.nonzero((readings != 0).any(axis=0))
        self.size = readings.shape[1]
        self.starts = np.searchsorted(rows, np.arange(self.size + 1))
        self._coefficients = np.linalg.solve(_powers(roots), readings[:, rows, self.columns])
        if not count:
            return
        values = np.resize(BETWEEN, count)
        self._test(values, self._read_at(values))
        for k in (self.begin + 1, last):  # the step asks for schedules' values at k alone
            self._test(self._values(np.array([k]))[0], self._read(sampler, k))

    @property
    def is_constant(self) -> bool:
        """Whether the matrices are the same in all iterations."""
        return not self._names

    def at(self, iterations: np.ndarray) -> np.ndarray:
        """Return the entries of the matrices of iterations, (steps, entries), or (1, entries)."""
        entries: np.ndarray = self._entries(self._values(iterations))
        return entries[:1] if self.is_constant else entries

    def _values(self, iterations: np.ndarray) -> np.ndarray:
        """Return the schedules' values relative to the first, (steps, schedules)."""
        values = [schedule(iterations) for schedule in self._schedules]
        return np.reshape(values, (len(values), len(iterations))).T / self._first

    def _entries(self, values: np.ndarray) -> Any:
        """Return the entries at values of the schedules, (steps, entries)."""
        return _powers(np.sqrt(values)) @ self._coefficients

    def _read_at(self, values: np.ndarray) -> np.ndarray:
        """Read the step with schedules that have constant values, relative to the first."""
        constant = zip(self._names, values * self._first, strict=True)
        return self._read(replace(self._sampler, **{n: Schedule(v) for n, v in constant}))

    def _read(self, sampler: Any, k: int | None = None) -> np.ndarray:
        """Read the step of iteration k as matrices (A, B, c), (S, S + T + 1).

        None: of any iteration. ``UnsteadyStep`` where they differ, or the step makes choices.
        """
        one = _WithGivenGradients(sampler) if self._gives else sampler
        reader = StepReader(one, self._problem, self._network)
        if k is None:
            if reader.cycle is None or reader.cycle[1] > 1:
                raise UnsteadyStep
            k = self.begin = reader.cycle[0]
        maps = reader.read_step(k)
        if len(maps.choices.probability) > 1:
            raise UnsteadyStep
        self.draws = np.array([kick.shape[1] for kick in maps.kicks], dtype=np.int64)
        return np.hstack([maps.update.matrix, *maps.kicks, maps.update.offset[:, None]])

    def _test(self, values: np.ndarray, reading: np.ndarray) -> None:
        """Raise ``UnsteadyStep`` unless matrices at values of the schedules are those read."""
        expected = np.zeros_like(reading)
        rows = np.repeat(np.arange(len(reading)), np.diff(self.starts))
        expected[rows, self.columns] = self._entries(values[None])[0]
        sizes = np.abs(reading).max(axis=1, keepdims=True)
        if not (np.abs(expected - reading) <= ROUNDING * sizes).all():
            raise UnsteadyStep


def _powers(roots: np.ndarray) -> np.ndarray:
    """Return one and the powers one to four of each column of roots, (steps, schedules)."""
    powers = roots[:, :, None] ** np.arange(1, len(NODES))
    return np.hstack([np.ones((len(roots), 1)), powers.reshape(len(roots), -1)])


class _WithGivenGradients:
    """A sampler of the same steps as a given one, which gets gradients as random numbers.

    It takes them once in a step, at its positions x, before all noise.
    """

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the given sampler."""
        return getattr(self._sampler, name)

    def step(self, state: Any, k: int, problem: Any, network: Any, rng: Any) -> Any:
        """Take the given sampler's step, with gradients from rng."""
        given = CountedProblem(_GivenGradients(state.x, rng), len(state.x))
        return self._sampler.step(state, k, given, network, rng)


class _GivenGradients:
    """A problem whose gradients at x, (chains, agents, dim), are numbers of rng, asked for once."""

    def __init__(self, x: np.ndarray, rng: Any) -> None:
        self._x, self._rng = x, rng
        self.agents, self.dim = x.shape[1:]

    def gradient(self, x: np.ndarray) -> Any:
        """Return the given gradients; refuse to do so elsewhere than at the positions, or twice."""
        if x is not self._x:
            raise UnsteadyStep
        self._x = np.empty(0)
        return self._rng.standard_normal(x.shape)
