"""Steps read as matrices (A, B, c), which schedules may change from iteration to iteration."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from msgspec.structs import fields, replace

from concord.laws.exact import Affine, Update
from concord.laws.iterations import Cycle
from concord.laws.read_off import StepReader
from concord.networks.network import Network
from concord.sampler import Algorithm

# Square roots of schedules' values, relative to the first value, at which steps are read: the
# nodes of Chebyshev's polynomials on (0, 1), by which a polynomial of degree four is well known.
NODES = np.cos(np.pi * np.arange(1, 10, 2) / 20) ** 2
LONGEST = 32  # steps of a period
MOST_NUMBERS = 1 << 20  # of the matrices of iterations that are computed together
SHARES = 0.3, 1e-6  # of a step's largest value, at which it is tested
WIDER = 4.0  # the largest value up to which steps are read, relative to that asked for
ROUNDING, LEAST = 1e-11, 1e-13  # of an entry, relative to itself, and to the largest of its row


class UnsteadyStep(Exception):
    """An error that says that a step is no function of schedules' values."""


class ReadStep:
    """A sampler's step as matrices (A_k, B_k, c_k), (S, S + T + 1), of which zeros are left out.

    With mini-batches G_k, the gain of errors of gradients, stands before B_k.

    begin, period: the iteration from which on steps repeat, but for schedules, and after how many.
    size: S. errors: how many errors of gradients a chain has. draws: how many numbers of a chain
    each call of the generator draws, T together.
    starts, columns: start of each row among the entries, and their columns.
    coefficients: those of powers by which the entries of each step of a period come out, (period,
    powers, entries).

    problem: a quadratic one. last: the last iteration. errors: whether to read G_k of full
    gradients, too. step: the option that varies, whose largest value the sampler has; None:
    all schedules that are not constant. Raises ``UnsteadyStep``, ``NoLaw``, or whatever a step
    does, where it is not read.
    """

    def __init__(
        self,
        sampler: Algorithm,
        problem: Any,
        network: Any,
        last: int,
        errors: bool = False,
        step: str | None = None,
    ) -> None:
        self._problem = problem
        self._begin_reading = lambda one: StepReader(one, problem, network, errors)
        self._reader: StepReader | None = None  # of the first of several steady samplers
        values = {option.name: getattr(sampler, option.name) for option in fields(sampler)}
        self._schedules = {
            name: value
            for name, value in values.items()
            if (name == step if step else getattr(value, "constant", True) is False)
        }
        self._first = np.array([schedule.initial for schedule in self._schedules.values()])
        others = np.kron(np.eye(len(self._first)), NODES[1:, None] - NODES[0])
        roots = NODES[0] + np.vstack([np.zeros(len(self._first)), others])
        periods = np.array([self._read_period(sampler, row) for row in roots])
        rows, self.columns = self._places = np.nonzero((periods != 0).any(axis=(0, 1)))
        self.size = periods.shape[2]
        self.starts = np.searchsorted(rows, np.arange(self.size + 1))
        self._width = periods.shape[3]
        kicks = (periods[..., self.size + self.errors : -1] != 0).any(axis=(0, 1))
        self._kicks_apart = kicks.sum(axis=0).max(initial=0) <= 1  # each normal moves one entry
        entries = periods[:, :, rows, self.columns].swapaxes(0, 1)
        self.coefficients = _fit_powers(_raise(roots), entries)
        if step:
            self._test_values(sampler)
        elif self._schedules:
            self._test(sampler, last)

    def powers(self, iterations: np.ndarray) -> np.ndarray:
        """Return the powers of which the entries consist in iterations, (steps, powers)."""
        if not self._schedules:
            return np.ones((len(iterations), 1))
        values = np.stack([schedule(iterations) for schedule in self._schedules.values()], axis=1)
        return _raise(np.sqrt(values / self._first))

    def update_at(self, k: int) -> Affine:
        """Return the update of iteration k, not before ``begin``."""
        together = max(1, MOST_NUMBERS // (self.size * self._width))
        return self._updates(k - k % together, together)[k % together]

    def find_cycle(self) -> Cycle:
        """Return from which iteration on steps repeat, but for schedules, and after how many."""
        return self.begin, self.period

    def update_of(self, value: float, k: int) -> Affine:
        """Return the update of iteration k, not before ``begin``, with the step at a value."""
        powers = _raise(np.sqrt([[value]] / self._first))
        return self._build(np.array([(k - self.begin) % self.period]), powers)[0]

    @lru_cache(maxsize=1)  # noqa: B019  # iterations follow each other
    def _updates(self, first: int, count: int) -> list[Affine]:
        """Return the updates of some iterations from the first on."""
        iterations = np.arange(first, first + count)
        return self._build((iterations - self.begin) % self.period, self.powers(iterations))

    def _build(self, phases: np.ndarray, powers: np.ndarray) -> list[Affine]:
        """Return updates, given their phases in a period, (steps,), and powers, (steps, powers)."""
        whole = self._expand(phases, powers)
        ends = np.cumsum([self.size, self.errors])
        matrix, gain, normals = np.split(whole[..., :-1], ends, axis=-1)
        if self._kicks_apart:  # so that Q is diagonal
            noise = np.zeros_like(matrix)
            np.einsum("kii->ki", noise)[:] = np.einsum("kij,kij->ki", normals, normals)
        else:
            noise = normals @ normals.swapaxes(-1, -2)
        parts = zip(matrix, whole[..., -1], noise, gain, strict=True)
        return [Affine(a, c, q, g if g.size else None) for a, c, q, g in parts]

    def _expand(self, phases: np.ndarray, powers: np.ndarray) -> np.ndarray:
        """Return steps, (steps, S, S + T + 1), given their phases in a period and their powers."""
        whole = np.zeros((len(phases), self.size, self._width))
        for phase in set(phases.tolist()):
            (some,) = np.nonzero(phases == phase)
            whole[some[:, None], *self._places] = powers[some] @ self.coefficients[phase]
        return whole

    def _read_period(self, sampler: Algorithm, roots: np.ndarray) -> np.ndarray:
        """Read the steps of a period, (period, S, S + T + 1), with constant schedules.

        roots: square roots of their values. ``UnsteadyStep`` if steps do not repeat soon.
        """
        reader = self._read_steady(sampler, roots**2 * self._first)
        if reader.cycle is None or reader.cycle[1] > LONGEST:
            raise UnsteadyStep
        self.begin, self.period = reader.cycle
        return np.array([self._read(reader, self.begin + phase) for phase in range(self.period)])

    def _read_steady(self, sampler: Algorithm, values: np.ndarray) -> StepReader:
        """Return a reader of the sampler with schedules that are constant, at values."""
        pairs = zip(self._schedules.items(), values.tolist(), strict=True)
        steady = replace(sampler, **{name: type(old)(value) for (name, old), value in pairs})
        if self._reader is None:
            self._reader = self._begin_reading(steady)
        return self._reader.on(steady, self._problem)

    def _read(self, reader: StepReader, k: int) -> np.ndarray:
        """Read the step of iteration k, (S, S + T + 1). ``UnsteadyStep`` if it makes choices."""
        maps = reader.read_step(k)
        if len(maps.choices.probability) > 1:
            raise UnsteadyStep
        self.draws = np.array([kick.shape[1] for kick in maps.kicks], dtype=np.int64)
        matrix, gain = maps.update.matrix, maps.update.gradient_gain
        gains = [] if gain is None else [gain]
        self.errors = 0 if gain is None else gain.shape[1]
        return np.hstack([matrix, *gains, *maps.kicks, maps.update.offset[:, None]])

    def _test(self, sampler: Algorithm, last: int) -> None:
        """Raise ``UnsteadyStep`` unless the sampler's own steps, at two iterations, are as read.

        It might ask for schedules' values elsewhere than at k.
        """
        reader = self._begin_reading(sampler)
        for k in (self.begin + 1, last):
            phase = (k - self.begin) % self.period
            self._compare(self._read(reader, k), phase, self.powers(np.array([k])))

    def _test_values(self, sampler: Algorithm) -> None:
        """Raise ``UnsteadyStep`` unless steps at small values are as read, and starts are the same.

        Steps before ``begin`` are not read.
        """
        readers = [self._read_steady(sampler, share * self._first) for share in SHARES]
        for share, reader in zip(SHARES, readers, strict=True):
            for phase in range(self.period):
                self._compare(self._read(reader, phase), phase, _raise(np.sqrt([[share]])))
        self.start = readers[0].start
        if self.begin or not all(map(np.array_equal, self.start[:3], readers[1].start[:3])):
            raise UnsteadyStep

    def _compare(self, reading: np.ndarray, phase: int, powers: np.ndarray) -> None:
        """Raise ``UnsteadyStep`` unless a step, (S, S + T + 1), is that of powers, (1, powers)."""
        expected = self._expand(np.array([phase]), powers)[0]
        least = LEAST * np.abs(reading[:, :-1]).max(axis=1, keepdims=True)
        if not np.allclose(expected, reading, rtol=ROUNDING, atol=least):
            raise UnsteadyStep


class StepFamily:
    """A sampler with all constant values of an option, on one problem and network.

    sampler: one with any value. name: the option. errors: as of ``StepReader``.
    """

    def __init__(
        self, sampler: Algorithm, name: str, problem: Any, network: Network, errors: bool = False
    ) -> None:
        self._name, self._on, self._errors = name, (problem, network), errors
        self._is_readable = callable(getattr(sampler, name)) and network.delivers_all
        self._largest = 0.0  # the value up to which steps were read
        self._step: Any = None
        self._reader: StepReader | None = None

    def reader_of(self, sampler: Algorithm) -> StepReader:
        """Return a reader of the sampler with its value of the option."""
        if self._reader is None:
            self._reader = StepReader(sampler, *self._on, self._errors)
        return self._reader.on(sampler, self._on[0])

    def updates_of(self, samplers: Sequence[Algorithm]) -> list[Update] | None:
        """Return the updates of samplers, each with its value of the option, which few are read of.

        None where they are no polynomials of its root, or vectors may be lost.
        """
        if not self._is_readable:
            return None
        values = [float(getattr(sampler, self._name)(0)) for sampler in samplers]
        if max(values) > self._largest:
            self._largest = WIDER * max(values)
            kind = type(getattr(samplers[0], self._name))
            widest = replace(samplers[0], **{self._name: kind(self._largest)})
            try:
                self._step = ReadStep(widest, *self._on, 0, self._errors, self._name)
            except Exception:  # whatever a step does that cannot be read
                self._is_readable = False
                return None
        step = self._step
        return [
            Update(partial(step.update_of, value), step.start, None, step.find_cycle)
            for value in values
        ]


@lru_cache(maxsize=32)
def _keep_family(*arguments: Any) -> StepFamily:
    """Return a family of steps, the same object for all that ask for it."""
    return StepFamily(*arguments)


def read_family(
    sampler: Algorithm, name: str, problem: Any, network: Network, errors: bool = False
) -> StepFamily | None:
    """Return a sampler with all values of an option, of which what is read is kept for other calls.

    errors: as of ``StepReader``. None where values are no numbers: steps may differ otherwise.
    """
    value = getattr(sampler, name)
    if not getattr(value, "constant", type(value) is float):
        return None
    like = replace(sampler, **{name: type(value)(1.0)})
    return _keep_family(like, name, problem, network, errors)


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
