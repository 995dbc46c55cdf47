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
# Of an entry, relative to itself, and to the largest of its row, or to its largest coefficient.
ROUNDING, LEAST = 1e-11, 1e-13


class UnsteadyStep(Exception):
    """An error that says that a step is no function of schedules' values."""


class ReadStep:
    """A sampler's step as matrices (A_k, B_k, c_k), (S, S + T + 1), of which zeros are left out.

    begin: the first iteration of which this is the step. size: S. entries: how many there are.
    draws: how many numbers of a chain each call of the generator draws, T together.
    rows: start of each row among the entries, their columns, and the coefficients of powers by
    which they come out, (powers, entries).

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
        rows, columns = np.nonzero((readings != 0).any(axis=0))
        self.size, self.entries = readings.shape[1], len(columns)
        starts = np.searchsorted(rows, np.arange(self.size + 1))
        self.rows = starts, columns, _fit(_raise(roots), readings[:, rows, columns])
        if not count:
            return
        values = np.resize(BETWEEN, count)
        self._test(_raise(values[None] ** 0.5), self._read_at(values))
        for k in (self.begin + 1, last):  # the step asks for schedules' values at k alone
            self._test(self.powers(np.array([k])), self._read(sampler, k))

    def powers(self, iterations: np.ndarray) -> np.ndarray:
        """Return the powers of which the entries consist in iterations, (steps, powers)."""
        values = np.reshape([s(iterations) for s in self._schedules], (-1, len(iterations))).T
        return _raise(np.sqrt(values / self._first))

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

    def _test(self, powers: np.ndarray, reading: np.ndarray) -> None:
        """Raise ``UnsteadyStep`` unless the matrices of powers, (1, powers), are those read."""
        starts, columns, coefficients = self.rows
        difference = reading.copy()
        difference[np.repeat(np.arange(self.size), np.diff(starts)), columns] -= (
            powers[0] @ coefficients
        )
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
