"""Steps read as matrices (A, B, c), which schedules may change from iteration to iteration."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec.structs import fields, replace

from concord.laws.exact import Affine
from concord.laws.read_off import StepReader
from concord.sampler import Algorithm

# Square roots of schedules' values, relative to the first value, at which steps are read: the
# nodes of Chebyshev's polynomials on (0, 1), by which a polynomial of degree four is well known.
NODES = np.cos(np.pi * np.arange(1, 10, 2) / 20) ** 2
LONGEST = 32  # steps of a period
MOST_NUMBERS = 1 << 20  # of the matrices of iterations that are computed together
ROUNDING, LEAST = 1e-11, 1e-13  # of an entry, relative to itself, and to the largest of its row


class UnsteadyStep(Exception):
    """An error that says that a step is no function of schedules' values."""


class ReadStep:
    """A sampler's step as matrices (A_k, B_k, c_k), (S, S + T + 1), of which zeros are left out.

    With mini-batches G_k, the gain of errors of gradients, stands before c_k.

    begin, period: the iteration from which on steps repeat, but for schedules, and after how many.
    size: S. draws: how many numbers of a chain each call of the generator draws, T together.
    starts, columns: start of each row among the entries, and their columns.
    coefficients: those of powers by which the entries of each step of a period come out, (period,
    powers, entries).

    problem: a quadratic one. last: the last iteration. wrap: function that returns the sampler
    whose steps are read, given one with its options. Raises ``UnsteadyStep``, ``NoLaw``, or
    whatever a step does, where it is not read.
    """

    def __init__(
        self,
        sampler: Algorithm,
        problem: Any,
        network: Any,
        last: int,
        wrap: Callable[[Any], Any] = lambda sampler: sampler,
    ) -> None:
        self._problem, self._network, self._wrap = problem, network, wrap
        values = {option.name: getattr(sampler, option.name) for option in fields(sampler)}
        self._schedules = {
            name: value
            for name, value in values.items()
            if getattr(value, "constant", True) is False
        }
        self._first = np.array([schedule.initial for schedule in self._schedules.values()])
        others = np.kron(np.eye(len(self._first)), NODES[1:, None] - NODES[0])
        roots = NODES[0] + np.vstack([np.zeros(len(self._first)), others])
        periods = np.array([self._read_period(sampler, row) for row in roots])
        rows, self.columns = self._places = np.nonzero((periods != 0).any(axis=(0, 1)))
        self.size = periods.shape[2]
        self.starts = np.searchsorted(rows, np.arange(self.size + 1))
        self._width = periods.shape[3]
        entries = periods[:, :, rows, self.columns].swapaxes(0, 1)
        self.coefficients = _fit_powers(_raise(roots), entries)
        if self._schedules:
            self._test(sampler, rows, last)

    def powers(self, iterations: np.ndarray) -> np.ndarray:
        """Return the powers of which the entries consist in iterations, (steps, powers)."""
        if not self._schedules:
            return np.ones((len(iterations), 1))
        values = np.stack([schedule(iterations) for schedule in self._schedules.values()], axis=1)
        return _raise(np.sqrt(values / self._first))

    def update_at(self, k: int) -> Affine:
        """Return the update of iteration k, not before ``begin``."""
        together = max(1, MOST_NUMBERS // (self.size * self._width))
        parts = self._updates(k - k % together, together)
        matrix, offset, noise, gain = (part[k % together] for part in parts)
        return Affine(matrix, offset, noise, gain if gain.size else None)

    @lru_cache(maxsize=1)  # noqa: B019  # iterations follow each other
    def _updates(self, first: int, count: int) -> tuple[np.ndarray, ...]:
        """Return A, c, B B^T and G of some iterations from the first on, on a first axis."""
        iterations = np.arange(first, first + count)
        phases, powers = (iterations - self.begin) % self.period, self.powers(iterations)
        whole = np.zeros((count, self.size, self._width))
        for phase in set(phases.tolist()):
            (some,) = np.nonzero(phases == phase)
            whole[some[:, None], *self._places] = powers[some] @ self.coefficients[phase]
        ends = np.cumsum([self.size, self.draws.sum()])
        matrix, normals, gain = np.split(whole[..., :-1], ends, axis=-1)
        return matrix, whole[..., -1], normals @ normals.swapaxes(-1, -2), gain

    def _read_period(self, sampler: Algorithm, roots: np.ndarray) -> np.ndarray:
        """Read the steps of a period, (period, S, S + T + 1), with constant schedules.

        roots: square roots of their values. ``UnsteadyStep`` if steps do not repeat soon.
        """
        values = zip(self._schedules.items(), roots**2 * self._first, strict=True)
        steady = replace(sampler, **{name: type(of)(value) for (name, of), value in values})
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
        matrix, gain = maps.update.matrix, maps.update.gradient_gain
        gains = [] if gain is None else [gain]
        return np.hstack([matrix, *maps.kicks, *gains, maps.update.offset[:, None]])

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


def _fit_powers(powers: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Return the coefficients of the fewest powers that entries consist of, (..., powers, entries).

    powers: (steps, powers). entries: (..., steps, entries). Coefficients of rounding's size are
    zero, and others are fitted anew without them, since steps of a small size would feel them.
    """
    coefficients: np.ndarray = np.linalg.solve(powers, entries)
    used = np.abs(coefficients) > 1e-12 * np.abs(coefficients).max(axis=-2, keepdims=True)
    for choice in np.unique(np.moveaxis(used, -2, -1).reshape(-1, len(powers)), axis=0):
        place = (used == choice[:, None]).all(axis=-2)
        columns = np.moveaxis(entries, -2, 0)[:, place]
        fitted = np.zeros_like(columns)
        fitted[choice] = np.linalg.lstsq(powers[:, choice], columns)[0]
        np.moveaxis(coefficients, -2, 0)[:, place] = fitted
    return coefficients
