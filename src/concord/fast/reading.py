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
LONGEST = 32  # steps of a period
BETWEEN = np.array([0.7, 0.4])  # values at which the polynomials are tested
# Of an entry, relative to itself, and to the largest of its row, or to its largest coefficient.
ROUNDING, LEAST = 1e-11, 1e-13


class UnsteadyStep(Exception):
    """An error that says that a step is no function of schedules' values."""


class ReadStep:
    """A sampler's step as matrices (A_k, B_k, c_k), (S, S + T + 1), of which zeros are left out.

    begin, period: the iteration from which on steps repeat, but for schedules, and after how many.
    size: S. entries: how many there are. draws: how many numbers of a chain each call of the
    generator draws, T together.
    rows: start of each row among the entries, their columns, and the coefficients of powers by
    which they come out in each step of a period, (period, powers, entries).

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
        self._schedules = {
            option.name: value
            for option in fields(sampler)
            if isinstance(value := getattr(sampler, option.name), Schedule) and not value.constant
        }
        self._first = np.array([schedule.initial for schedule in self._schedules.values()])
        count, others = len(self._schedules), len(NODES) - 1
        roots = np.full((1 + others * count, count), NODES[0])
        for number in range(count):
            roots[1 + others * number :, number][:others] = NODES[1:]
        readings = np.array([self._read_period(values) for values in roots**2])
        rows, columns = np.nonzero((readings != 0).any(axis=(0, 1)))
        self.size, self.entries = readings.shape[2], len(columns)
        starts = np.searchsorted(rows, np.arange(self.size + 1))
        phases = readings[:, :, rows, columns].swapaxes(0, 1)
        fitted = np.array([_fit(_raise(roots), entries) for entries in phases])
        self.rows = starts, columns, fitted
        if not count:
            return
        values = np.resize(BETWEEN, count)
        for phase, reading in enumerate(self._read_period(values)):
            self._test(_raise(values[None] ** 0.5), phase, reading)
        reader = self._make_reader(sampler)
        for k in (self.begin + 1, last):  # the step asks for schedules' values at k alone
            self._test(self.powers(np.array([k])), k - self.begin, self._read(reader, k))

    def powers(self, iterations: np.ndarray) -> np.ndarray:
        """Return the powers of which the entries consist in iterations, (steps, powers)."""
        values = [schedule(iterations) for schedule in self._schedules.values()]
        return _raise(np.sqrt(np.reshape(values, (-1, len(iterations))).T / self._first))

    def _make_reader(self, sampler: Any) -> StepReader:
        """Return the reader of a sampler's steps."""
        one = _WithGivenGradients(sampler) if self._gives else sampler
        return StepReader(one, self._problem, self._network)

    def _read_period(self, values: np.ndarray) -> np.ndarray:
        """Read the steps of a period, (period, S, S + T + 1), with constant schedules.

        values: those of the schedules, relative to the first. ``UnsteadyStep`` if steps do not
        repeat soon.
        """
        constant = zip(self._schedules, values * self._first, strict=True)
        reader = self._make_reader(
            replace(self._sampler, **{name: Schedule(value) for name, value in constant})
        )
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

    def _test(self, powers: np.ndarray, steps: int, reading: np.ndarray) -> None:
        """Raise ``UnsteadyStep`` unless the matrices of powers, (1, powers), are those read.

        steps: how many there are before it, modulo the period.
        """
        starts, columns, coefficients = self.rows
        difference = reading.copy()
        places = np.repeat(np.arange(self.size), np.diff(starts)), columns
        difference[places] -= powers[0] @ coefficients[steps % self.period]
        largest = np.abs(reading[:, :-1]).max(axis=1, keepdims=True)
        if not (np.abs(difference) <= ROUNDING * np.abs(reading) + LEAST * largest).all():
            raise UnsteadyStep


def _fit(powers: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Return the coefficients of powers, (powers, entries), by which entries come out.

    powers: (readings, powers), square. Powers that an entry does not need have the coefficient
    zero, so that rounding is not amplified. entries: (readings, entries).
    """
    coefficients: np.ndarray = np.linalg.solve(powers, entries)
    sizes = np.abs(coefficients)
    needed = sizes > LEAST * sizes.max(axis=0)
    for some in np.unique(needed, axis=1).T:
        alike = (needed == some[:, None]).all(axis=0)
        fitted = np.linalg.lstsq(powers[:, some], entries[:, alike], rcond=None)[0]
        coefficients[:, alike] = 0.0
        coefficients[np.ix_(some, alike)] = fitted
    return coefficients


def _raise(roots: np.ndarray) -> np.ndarray:
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
