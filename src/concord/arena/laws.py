r"""Exact laws of several versions of a sampler at once: its settings, or data sets.

An update that repeats after p iterations is iterated by the powers of the composition of p steps:
with :math:`T(m, C) = (A m + c, A C A^\top + Q)` the maps T, T^2, T^4, ... make the law after any
number of steps from as many products as that number has binary digits. Where vectors may not
arrive, moments over what does go iteration by iteration (``concord.laws.arrivals``).

The time average over the iterations (h, k] is one more block of the state, the running sum
:math:`z' = z + R s'` of what is read, R s: :math:`A \to \begin{pmatrix} A & 0 \\ R A & I
\end{pmatrix}`, so that its law is exact, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from concord.contracts import AffineSampler, Problem, Quadratic, SwitchingSampler
from concord.laws import arrivals, exact
from concord.laws.powers import Map, Moments, Powers
from concord.laws.switching import Choices
from concord.networks.faults import Edges, Network, chances
from concord.networks.topology import Topology

LONGEST_PERIOD = 64
# The limit, where it has to be gone to: enough for whatever mixes within 10^7 iterations.
FOREVER = 2**26
# Entries of the positions up to which all settings together have a law in time.
SIZE_LIMIT = 150
# Entries of the positions up to which second moments are squared as one linear map.
SECOND_LIMIT = 20


class Seen(NamedTuple):
    """Moments of agents, (..., agents, dim) and (..., agents, dim, dim), and of their average."""

    mean: np.ndarray
    cov: np.ndarray
    average_mean: np.ndarray
    average_cov: np.ndarray


class Path:
    """The laws of versions of a sampler along the iterations.

    Parameters
    ----------
    start
        Moments of the state at iteration 0, (versions, S) and (versions, S, S).
    read
        R, (agents * dim, S): what stands for the agents' positions.
    agents
        Their number.
    """

    def __init__(self, start: Moments, read: np.ndarray, agents: int) -> None:
        self._start, self._read = start, read
        self._agents, self._dim = agents, len(read) // agents

    repeats = False  # whether powers lead to the limit

    def _advance(self, mean: np.ndarray, cov: np.ndarray, first: int, end: int) -> Moments:
        """Return the state's moments at iteration ``end`` from those at ``first``."""
        raise NotImplementedError

    def _sum(self, mean: np.ndarray, cov: np.ndarray, first: int, end: int) -> Moments:
        """Return the moments of the sum of what is read in iterations (first, end]."""
        raise NotImplementedError

    def at(self, iterations: Sequence[int]) -> Seen:
        """Return the laws at increasing iterations, first axes (iterations, versions)."""
        found, k = [], 0
        mean, cov = self._start
        with np.errstate(all="ignore"):
            for due in iterations:
                mean, cov = self._advance(mean, cov, k, due)
                found.append(self._split(np.matvec(self._read, mean), self._of_read(cov)))
                k = due
        return Seen(*(np.stack(parts) for parts in zip(*found, strict=True)))

    def averaged(self, iterations: int) -> Seen | None:
        """Return the laws of the time average of one run, its first half left out."""
        first = iterations // 2
        with np.errstate(all="ignore"):
            mean, cov = self._sum(*self._advance(*self._start, 0, first), first, iterations)
            count = iterations - first
            return self._split(mean / count, cov / count**2)

    def limit(self) -> Seen | None:
        """Return the laws of the limit, (versions, ...); None where updates do not repeat."""
        if not self.repeats:
            return None
        return Seen(*(part[0] for part in self.at([FOREVER])))

    def _of_read(self, cov: np.ndarray) -> np.ndarray:
        return self._read @ cov @ self._read.T

    def _split(self, mean: np.ndarray, cov: np.ndarray) -> Seen:
        agents, dim = self._agents, self._dim
        means = mean.reshape(*mean.shape[:-1], agents, dim)
        blocks = cov.reshape(*cov.shape[:-2], agents, dim, agents, dim)
        each = np.moveaxis(np.diagonal(blocks, axis1=-4, axis2=-2), -1, -3)
        return Seen(means, each, means.mean(axis=-2), blocks.sum(axis=(-4, -2)) / agents**2)


class Repeating(Path):
    """Updates that are the same again after a period, from some iteration on; step by step else."""

    def __init__(
        self,
        maps: Callable[[int], Map],
        period: tuple[int, int] | None,
        start: Moments,
        read: np.ndarray,
        agents: int,
    ) -> None:
        super().__init__(start, read, agents)
        self._begin, self._period = period or (0, 0)
        self._maps = [maps(self._begin + k) for k in range(self._period)]
        self._first_maps = maps
        self._powers = self._cycle(self._maps)
        self.repeats = self._powers is not None

    def _map_at(self, k: int) -> Map:
        if not self._maps or k < self._begin:
            return self._first_maps(k)
        return self._maps[(k - self._begin) % self._period]

    def _cycle(self, maps: Sequence[Map]) -> Powers | None:
        return Powers(reduce(Map.then, maps)) if maps else None

    def _go(
        self,
        map_at: Callable[[int], Map],
        powers: Powers | None,
        moments: Moments,
        first: int,
        end: int,
    ) -> Moments:
        while first < end:
            ready = powers and first >= self._begin and end - first >= self._period
            if powers and ready and (first - self._begin) % self._period == 0:
                cycles = (end - first) // self._period
                moments = powers.after(cycles, *moments)
                first += cycles * self._period
            else:
                moments = map_at(first).of(*moments)
                first += 1
        return moments

    def _advance(self, mean: np.ndarray, cov: np.ndarray, first: int, end: int) -> Moments:
        return self._go(self._map_at, self._powers, (mean, cov), first, end)

    def limit(self) -> Seen | None:
        """Return the laws of the limit, (versions, ...), in which a step keeps what it conserves.

        By ``exact.limit``: powers of the update would move by rounding what it conserves. They are
        no numbers where a version does not settle.
        """
        if not self.repeats:
            return None
        begin, period = self._begin, self._period
        with np.errstate(all="ignore"):
            cycle = reduce(Map.then, self._maps)
            moments = self._advance(*self._start, 0, begin)
            found = [
                exact.limit(exact.Affine(*once), *start) if np.isfinite(once[0]).all() else None
                for once, start in zip(
                    zip(*cycle, strict=True), zip(*moments, strict=True), strict=True
                )
            ]
            lost = np.full_like(moments[0][0], np.nan), np.full_like(moments[1][0], np.nan)
            ends = [lost if end is None else end for end in found]
            settled = np.stack([mean for mean, _ in ends]), np.stack([cov for _, cov in ends])
            until = begin + (FOREVER - begin) % period
            mean, cov = self._go(self._map_at, None, settled, begin, until)
            return self._split(np.matvec(self._read, mean), self._of_read(cov))

    def _sum(self, mean: np.ndarray, cov: np.ndarray, first: int, end: int) -> Moments:
        sums, size = len(self._read), mean.shape[-1]
        powers = self._cycle([one.summing(self._read) for one in self._maps])
        stack, more = [(0, 0)] * (mean.ndim - 1), (0, sums)
        wide = np.pad(mean, [*stack, more]), np.pad(cov, [*stack, more, more])
        mean, cov = self._go(
            lambda k: self._map_at(k).summing(self._read), powers, wide, first, end
        )
        return mean[..., size:], cov[..., size:, size:]


class Stepwise(Path):
    """Moments that go iteration by iteration, averaged over random choices.

    ``step_at(k)`` returns what makes the next moments, and the mean matrix of the update: given the
    state of an iteration that matrix alone leads the expectations of later ones, and so
    covariances of different iterations.
    """

    def __init__(
        self,
        step_at: Callable[[int], tuple[Callable[[np.ndarray, np.ndarray], Moments], np.ndarray]],
        start: Moments,
        read: np.ndarray,
        agents: int,
    ) -> None:
        super().__init__(start, read, agents)
        self._step_at = step_at

    def _advance(self, mean: np.ndarray, cov: np.ndarray, first: int, end: int) -> Moments:
        for k in range(first, end):
            mean, cov = self._step_at(k)[0](mean, cov)
        return mean, cov

    def _sum(self, mean: np.ndarray, cov: np.ndarray, first: int, end: int) -> Moments:
        read = self._read
        across = np.zeros((*mean.shape[:-1], len(read), mean.shape[-1]))  # Cov(sum, state)
        total = np.zeros((*mean.shape[:-1], len(read)))
        spread = np.zeros((*total.shape, len(read)))
        for k in range(first, end):
            after, matrix = self._step_at(k)
            mean, cov = after(mean, cov)
            across = across @ matrix.swapaxes(-1, -2)
            both = across @ read.T
            spread = spread + both + both.swapaxes(-1, -2) + self._of_read(cov)
            across = across + read @ cov
            total = total + np.matvec(read, mean)
        return total, spread


def path(
    sampler: Any,
    problems: Sequence[Problem],
    topology: Topology,
    params: Sequence[Any],
    positions: Moments | None,
    mix: np.ndarray | None = None,
) -> Path | None:
    """Return the laws of versions, each a problem and options; None where they are not known.

    ``positions`` are the moments of an agent's start; problems are of one size. ``mix``, (agents,
    agents), makes what is read of the positions; none: they are read themselves.
    """
    first = problems[0]
    agents, dim = first.agents, first.dim
    quadratic = [p for p in problems if isinstance(p, Quadratic)]
    batches = any(getattr(p, "batch_size", None) is not None for p in params)
    if positions is None or len(quadratic) < len(problems) or batches:
        return None
    both = list(zip(quadratic, params, strict=True))
    answers = np.eye(agents * dim) if mix is None else np.kron(mix, np.eye(dim))
    switching = isinstance(sampler, SwitchingSampler) and not isinstance(topology, Network)
    if switching and agents * dim <= SECOND_LIMIT:  # a choice holds a matrix for each edge
        chosen = [sampler.choices(problem, topology, p) for problem, p in both]
        known = [c for c in chosen if c is not None]
        if len(known) == len(both):
            start = exact.initial(agents, dim, positions)
            firsts = [choices(0) for choices in known]
            own = len(firsts[0].offset[0]) == agents * dim  # of nothing but positions
            if not own or not all(_alike(known[0](k), firsts[0]) for k in (1, 2, 7)):
                return None
            return Switching(firsts, _tiled([start] * len(both)), answers, agents)
    if not isinstance(sampler, AffineSampler) or agents * dim > SIZE_LIMIT:
        return None
    found = [sampler.affine(problem, topology, p) for problem, p in both]
    updates = [update for update in found if update is not None]
    if len(updates) < len(found):
        return None
    starts = [exact.initial(agents, dim, positions, *update.auxiliary) for update in updates]
    size = len(starts[0][0])
    read = answers @ np.eye(agents * dim, size)
    if isinstance(topology, Network):
        return _lossy(updates, topology, starts, read, agents, dim)
    period = period_of(updates[0])

    def maps(k: int) -> Map:
        steps = [update.at(k) for update in updates]
        return Map(*(np.stack([getattr(s, f) for s in steps]) for f in Map._fields))

    return Repeating(maps, period, _tiled(starts), read, agents)


def period_of(update: exact.Update) -> tuple[int, int] | None:
    """Return from which iteration on an update repeats, and after how many; None: it does not.

    Weights that settle, as those of push-sum do, repeat once they have settled but for rounding.
    """

    def same(a: exact.Affine, b: exact.Affine) -> bool:
        return a is b or all(
            np.allclose(getattr(a, f), getattr(b, f), rtol=1e-12, atol=1e-15) for f in Map._fields
        )

    for begin in (0, 256, 2048):
        steps = [update.at(begin + k) for k in range(2 * LONGEST_PERIOD)]
        for period in range(1, LONGEST_PERIOD + 1):
            if all(same(*pair) for pair in zip(steps, steps[period:], strict=False)):
                return begin, period
    return None


def _alike(one: Choices, other: Choices) -> bool:
    """Whether two iterations have the same choices, with the same chances."""
    return all(np.array_equal(a, getattr(other, name)) for name, a in vars(one).items())


def _tiled(starts: Sequence[Moments]) -> Moments:
    return np.stack([mean for mean, _ in starts]), np.stack([cov for _, cov in starts])


def _lossy(
    updates: Sequence[exact.Update],
    network: Network,
    starts: Sequence[Moments],
    read: np.ndarray,
    agents: int,
    dim: int,
) -> Path | None:
    """Return the moments over what arrives; None where it is not independent, or too large."""
    ways = Edges(network)
    if any(update.arrivals is None for update in updates):
        return None
    options = network.conditions
    coded = options.compression is not None or options.privacy is not None
    if len(ways.links) * dim > exact.SIZE_LIMIT or coded:
        return None
    if (drawn := chances(network)) is None:
        return None
    ends, known = (ways.receivers, ways.senders), (agents, dim, options.noise**2)
    size = len(starts[0][0])
    all_moves = [arrivals.moves(u, drawn, ends, options.on_loss, size, *known) for u in updates]
    place = all_moves[0][1]
    wide = [
        (place @ mean + shift, place @ cov @ place.T)
        for (mean, cov), (_, _, shift) in zip(starts, all_moves, strict=True)
    ]
    kept: dict[int, tuple[Any, Any]] = {}
    period = _turn(drawn)
    own = period_of(updates[0])
    period = None if own is None or own[0] or not period else math.lcm(period, own[1])

    def step_at(k: int) -> tuple[Any, Any]:
        k = k if period is None else k % period
        if k not in kept:
            moves = [at(k) for at, *_ in all_moves]
            change, offset, noise, spread = (np.stack([m[i] for m in moves]) for i in range(4))
            move = arrivals.Move(change, offset, noise, spread, moves[0].first, moves[0].second)
            mean = np.eye(len(place)) + (move.spread * move.first) @ move.change
            if period is None:
                kept.clear()
            kept[k] = move.after, mean
        return kept[k]

    return Stepwise(step_at, _tiled(wide), read @ np.eye(size, len(place)), agents)


def _turn(drawn: arrivals.Chances) -> int | None:
    """Return after how many iterations the chances are the same again."""
    first = [drawn(k)[0] for k in range(2 * LONGEST_PERIOD)]
    for period in range(1, LONGEST_PERIOD + 1):
        if all(a is b or np.array_equal(a, b) for a, b in zip(first, first[period:], strict=False)):
            return period
    return None


class Switching(Path):
    r"""Updates that are affine once a random choice is known, the same choices in all iterations.

    First and second moments obey one linear recursion, whose powers are squared: with
    :math:`M = E s s^\top`,

    .. math::
        M' = \sum_c p_c \bigl( A_c M A_c^\top + A_c m b_c^\top + b_c m^\top A_c^\top + b_c b_c^\top
             + Q_c \bigr), \qquad m' = \sum_c p_c (A_c m + b_c).
    """

    repeats = True

    def __init__(
        self, chosen: Sequence[Choices], start: Moments, read: np.ndarray, agents: int
    ) -> None:
        super().__init__(start, read, agents)
        size = len(read)
        self._upper = np.triu_indices(size)
        share = chosen[0].probability
        matrix, offset, noise = (
            np.stack([getattr(c, f) for c in chosen]) for f in ("matrix", "offset", "noise")
        )  # versions, choices, ...
        pairs = np.zeros((size, size, len(self._upper[0])))  # vech -> vec
        both = np.arange(len(self._upper[0]))
        pairs[(*self._upper, both)] = pairs[(*self._upper[::-1], both)] = 1
        quadratic = np.einsum("c,vcij,vckl->vikjl", share, matrix, matrix, optimize=True)
        mixed = np.einsum("c,vcij,vck->vikj", share, matrix, offset, optimize=True)
        mixed = mixed + mixed.swapaxes(1, 2)
        added = np.einsum("c,vci,vck->vik", share, offset, offset) + np.tensordot(
            noise, share, axes=(1, 0)
        )
        second = np.tensordot(quadratic, pairs, axes=2)[:, self._upper[0], self._upper[1]]
        total = len(both) + size
        whole = np.zeros((len(chosen), total, total))
        whole[:, : len(both), : len(both)] = second
        whole[:, : len(both), len(both) :] = mixed[:, self._upper[0], self._upper[1]]
        whole[:, len(both) :, len(both) :] = np.tensordot(matrix, share, axes=(1, 0))
        shift = np.concatenate(
            [added[:, self._upper[0], self._upper[1]], np.tensordot(offset, share, axes=(1, 0))],
            axis=1,
        )
        self._powers = [(whole, shift)]

    def _advance(self, mean: np.ndarray, cov: np.ndarray, first: int, end: int) -> Moments:
        second = (cov + mean[..., :, None] * mean[..., None, :])[..., *self._upper]
        state, count, power = np.concatenate([second, mean], axis=-1), second.shape[-1], 0
        steps = end - first
        while steps:
            if power == len(self._powers):
                matrix, shift = self._powers[-1]
                self._powers.append((matrix @ matrix, np.matvec(matrix, shift) + shift))
            if steps & 1:
                matrix, shift = self._powers[power]
                state = np.matvec(matrix, state) + shift
            steps, power = steps >> 1, power + 1
        mean = state[..., count:]
        cov = np.empty(cov.shape)
        cov[..., *self._upper] = cov[..., *self._upper[::-1]] = state[..., :count]
        return mean, cov - mean[..., :, None] * mean[..., None, :]

    def averaged(self, iterations: int) -> Seen | None:
        """Return None: the sum is not followed."""
        return None
