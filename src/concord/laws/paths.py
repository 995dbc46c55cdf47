r"""Exact moments of versions of a sampler along the iterations.

A *version* is one setting of the sampler on one data set; versions are on the first axis. A step
maps the moments of one iteration to those of the next: it is an ``Affine`` update, ``NoisyStep``
with mini-batches, or a ``Move`` on a network with losses, averaged over these. Where steps repeat
after a cycle of p iterations, powers of the composition of p steps lead over many of them
(``exact.Powers``), and so do those of the second moments of choices (``laws.switching``).

The time average over the iterations (h, k] is one more block of the state, the running sum
:math:`z' = z + R s'` of readings R s of the state: :math:`A \to \begin{pmatrix} A & 0 \\ R A & I
\end{pmatrix}`, so that its law is exact, too.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np

from concord.laws import exact
from concord.laws.arrivals import Move
from concord.laws.exact import Affine, Law, Marginals, Moments, Powers, Update
from concord.laws.iterations import ALWAYS, Cycle
from concord.laws.switching import Choices
from concord.progress import progress

# The limit, where it has to be gone to: enough for whatever mixes within 10^7 iterations.
FOREVER = 2**26
KEPT, LARGEST_KEPT = 16, 1 << 20  # moments, for other answers and iterations; numbers of each
LONGEST_SUM = 1 << 17  # iterations of random steps over which positions are summed up

# E[xi_i xi_i^T], (..., agents, dim, dim), as a function of the agents' means and covariances.
GradientNoise = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Path:
    """The moments of versions of a sampler (settings, data sets) along the iterations.

    step_at: function that returns the step of iteration k -> k + 1, whose ``apply`` maps mean and
    covariance of the state, (versions, T) and (versions, T, T), to those after it.
    start: mean and covariance of the state at iteration 0.
    agents, dim: number of agents and of entries of each; positions come first in the state.
    mix: matrix (agents, agents) by which answers are computed from positions; None: the answers are
    the positions.
    cycle: when steps repeat; None: unknown.
    powers: powers of a cycle's composition, with a method ``advance``; None: go step by step.
    """

    def __init__(
        self,
        step_at: Callable[[int], Any],
        start: Moments,
        agents: int,
        dim: int,
        mix: np.ndarray | None = None,
        cycle: Cycle | None = None,
        powers: Powers | Choices | None = None,
    ) -> None:
        self._step_at, self._start, self._mix = step_at, start, mix
        self._agents, self._dim = agents, dim
        self._cycle = cycle
        self._step_cache: dict[int, Any] = {}
        self._cycle_starts: list[Moments] = []  # where the first cycle begins
        self._powers = powers
        self._kept: dict[int, Moments] = {}  # by iteration
        self._sums: dict[int, Moments | None] = {}  # of positions, by the run's length
        self._summing: list[DeterministicPath] = []  # the path of the state with a running sum

    def with_answers(self, mix: np.ndarray | None) -> Self:
        """Return the same laws with answers computed by another matrix ``mix``.

        mix: (agents, agents). The two share what they have computed.
        """
        if self._cycle is not None:
            self._cycle_powers()
        other = copy(self)
        other._mix = mix
        return other

    def periodic_part(self) -> Self:
        """Return the laws under the periodic steps alone, as if they began at iteration 0."""
        begin, period = self._cycle or (0, 1)
        if not begin:
            return self
        other = copy(self)
        other._step_at, other._cycle = lambda k: self._step(begin + k), (0, period)
        other._step_cache, other._cycle_starts = {}, []
        other._kept, other._sums, other._summing = {}, {}, []
        return other

    def marginals_at(self, iterations: Sequence[int]) -> Marginals:
        """Return the laws of the answers at increasing iterations, (iterations, versions, ...).

        Moments that leave the finite range are ``nan`` from there on, without a warning.
        """
        if not len(iterations):
            return self.marginals_at([0]).select(slice(0, 0))
        with np.errstate(all="ignore"), progress(max(iterations), "exact law") as done:
            results = self._reduce_at(iterations, done)
            marginals = self._expand([np.stack(parts) for parts in zip(*results, strict=True)])
        for part in marginals:
            if not np.isfinite(part).all():
                part[~np.isfinite(part)] = np.nan
        return marginals

    def law(self, iterations: Sequence[int]) -> Law:
        """Return the law of the first version at the given iterations, sorted, each once."""
        recorded = sorted(set(iterations))
        return Law(np.array(recorded, dtype=int), *self.marginals_at(recorded).select(np.s_[:, 0]))

    def time_average(self, iterations: int) -> Marginals | None:
        """Return the laws of the average of x over the second half of a run, one for each version.

        None where the moments of a sum are not computed. iterations: the run's length.
        """
        first = iterations // 2
        with np.errstate(all="ignore"):
            if iterations not in self._sums:
                begun = self._advance(self._start, 0, first)
                self._sums[iterations] = self._sum_moments(begun, first, iterations)
            results, count = self._sums[iterations], iterations - first
            return results and self._marginals((results[0] / count, results[1] / count**2))

    def limit(self) -> Marginals | None:
        """Return the laws of the answers as iterations go to infinity, (versions, ...).

        None where steps do not repeat, or powers of a period's steps are not computed.
        """
        return (
            None
            if self._cycle is None or self._cycle_powers() is None
            else self.marginals_at([FOREVER]).select(0)
        )

    def _step(self, k: int) -> Any:
        """Return the step of iteration k, cached where steps repeat."""
        if self._cycle is None or k < self._cycle[0]:
            return self._step_at(k)
        begin, period = self._cycle
        k = begin + (k - begin) % period
        if k not in self._step_cache:
            self._step_cache[k] = self._step_at(k)
        return self._step_cache[k]

    def _cycle_powers(self) -> Powers | Choices | None:
        """Return the powers of the update of a whole cycle; None to go step by step."""
        return self._powers

    def _advance(
        self,
        moments: Moments,
        first: int,
        end: int,
        done: Callable[[int], object] = lambda n: None,
    ) -> Moments:
        """Return the state's moments at iteration ``end``; those at ``first`` are the start's.

        The last ``KEPT`` small ones are kept for who asks for them, or beyond them, again.
        done: called with each number of iterations computed, for a progress bar.
        """
        skips = end > first + 1
        before = max((k for k in self._kept if first < k <= end), default=None) if skips else None
        if before is not None:
            moments, first = self._kept[before], before
        moments = self._compute_moments(moments, first, end, done)
        if moments[1].size <= LARGEST_KEPT:
            self._kept[end] = moments
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return moments

    def _compute_moments(
        self,
        moments: Moments,
        first: int,
        end: int,
        done: Callable[[int], object] = lambda n: None,
    ) -> Moments:
        """Return the state's moments at iteration ``end``, given any at ``first``."""
        begin, period = self._cycle or (end, 1)
        from_start = self._cycle is not None and moments is self._start
        if from_start and self._cycle_starts and first < begin <= end:
            moments, first = self._cycle_starts[0], begin
        while first < end:
            count, powers = 1, None
            if first >= begin and end - first >= period and (first - begin) % period == 0:
                powers = self._cycle_powers()
            if powers is not None:
                cycles = (end - first) // period
                moments, count = powers.advance(cycles, *moments), cycles * period
            else:
                moments = self._step(first).apply(*moments)
            first += count
            done(count)
            if from_start and first == begin and not self._cycle_starts:
                self._cycle_starts.append(moments)
        return moments

    def _sum_moments(self, moments: Moments, first: int, end: int) -> Moments | None:
        """Return the moments of the sum of the positions over iterations (first, end].

        moments: of the state at ``first``. None where they are not computed.
        """
        return None

    def _reduce_at(
        self, iterations: Sequence[int], done: Callable[[int], object]
    ) -> Iterable[Sequence[np.ndarray]]:
        """Return what is kept of the moments (``_reduce``) at increasing iterations."""
        k, moments = 0, self._start
        for due in iterations:
            moments, k = self._advance(moments, k, due, done), due
            yield self._reduce(moments)

    def _marginals(self, moments: Moments) -> Marginals:
        """Return the laws of the answers, given the state's moments."""
        return self._expand(self._reduce(moments))

    def _expand(self, parts: Sequence[np.ndarray]) -> Marginals:
        """Return the laws of the answers, given what ``_reduce`` returns, along leading axes."""
        return Marginals(*parts)

    def _reduce(self, moments: Moments) -> Sequence[np.ndarray]:
        """Return what is kept of the state's moments in each iteration: the laws of the answers."""
        if self._mix is None:
            return self._marginals_of(*moments)
        read = self._answer_matrix(moments)
        return self._marginals_of(np.matvec(read, moments[0]), read @ moments[1] @ read.T)

    def _marginals_of(self, mean: np.ndarray, cov: np.ndarray) -> Marginals:
        """Return the agents' laws, given moments whose first agents * dim entries are theirs."""
        return exact.marginals(mean, cov, self._agents, self._dim)

    def _answer_matrix(self, moments: Moments) -> np.ndarray:
        """Return the matrix R, (agents * dim, T), that maps a state to the answers."""
        assert self._mix is not None
        return np.kron(self._mix, np.eye(self._dim)) @ self._position_matrix(moments)

    def _position_matrix(self, moments: Moments) -> np.ndarray:
        """Return the matrix, (agents * dim, T), that maps a state to the positions."""
        return np.eye(self._agents * self._dim, moments[0].shape[-1])


class DeterministicPath(Path):
    """The laws of affine updates without random choices: steps are ``Affine``."""

    def limit(self) -> Marginals | None:
        """Return the laws in the limit, (versions, ...), with conserved quantities kept.

        Computed by ``exact.limit``, since powers of the update would move conserved quantities by
        rounding. They are nan where a version does not settle, and None where steps do not repeat.
        """
        if self._cycle is None:
            return None
        begin, period = self._cycle
        with np.errstate(all="ignore"):
            start = self._advance(self._start, 0, begin)
            once = self._compose_cycle()
            ends = []
            for *parts, mean, cov in zip(once.matrix, once.offset, once.noise, *start, strict=True):
                is_finite = np.isfinite(parts[0]).all()
                end = exact.limit(Affine(*parts), mean, cov) if is_finite else None
                ends.append(end or (np.full_like(mean, np.nan), np.full_like(cov, np.nan)))
            moments: Moments = exact.stack_versions(ends)
            for k in range(begin, begin + (FOREVER - begin) % period):
                moments = self._step(k).apply(*moments)
            return self._marginals(moments)

    def _reduce_at(
        self, iterations: Sequence[int], done: Callable[[int], object]
    ) -> Iterable[Sequence[np.ndarray]]:
        """Return what is kept of the moments (``_reduce``) at increasing iterations."""
        step = self._step(0) if self._cycle == ALWAYS and self._start[0].ndim == 2 else None
        if step is None or step.sparse is None or max(iterations) > 2 * len(iterations):
            return super()._reduce_at(iterations, done)
        return self._reduce_by_roots(step, set(iterations), done)

    def _reduce_by_roots(
        self, step: Affine, iterations: set[int], done: Callable[[int], object]
    ) -> Iterable[Sequence[np.ndarray]]:
        """Return the laws of the answers at iterations, with a sparse A, of one version.

        With roots C_0 = F F^T and Q = B B^T the covariance of iteration k is that of A^k F, plus
        those of A^j B over j < k, of which the agents' blocks alone are computed.
        """
        (mean,), (cov,), (noise,) = *self._start, step.noise
        ratio = cov.trace() / max(noise.trace(), 1e-300)
        alike = np.allclose(cov, ratio * noise, rtol=1e-14, atol=0)  # then one root will do
        columns = root = exact.find_root(noise)
        if not alike:
            columns = np.hstack([root, exact.find_root(cov)])
        count = root.shape[1]
        total: Any = 0.0
        read = None if self._mix is None else self._answer_matrix(self._start)

        def square(root: np.ndarray) -> np.ndarray:
            """Return the covariances of agents, and of their average, (agents + 1, dim, dim)."""
            answers = root[: self._agents * self._dim] if read is None else read @ root
            each = answers.reshape(self._agents, self._dim, -1)
            each = np.concatenate([each, each.mean(axis=0, keepdims=True)])
            return each @ each.swapaxes(-1, -2)

        for k in range(max(iterations) + 1):
            added = square(columns[:, :count])
            if k in iterations:
                law = total + (ratio * added if alike else square(columns[:, count:]))
                answers = mean[: self._agents * self._dim] if read is None else read @ mean
                means = answers.reshape(1, self._agents, self._dim)
                yield means, law[None, :-1], means.mean(axis=1), law[None, -1]
            total = total + added
            mean, columns = step.matrix[0] @ mean + step.offset[0], step.sparse @ columns
            done(1)

    def _cycle_powers(self) -> Powers | Choices:
        """Return the powers of the composition of a period's steps, computed at the first call."""
        self._powers = self._powers or Powers(self._compose_cycle())
        return self._powers

    def _compose_cycle(self) -> Affine:
        """Return the composition of the steps of one period."""
        begin, period = self._cycle or (0, 1)
        return reduce(Affine.compose_with, map(self._step, range(begin, begin + period)))

    def _sum_moments(self, moments: Moments, first: int, end: int) -> Moments:
        """Return the moments of the sum of the positions over iterations (first, end]."""
        read, (mean, cov) = self._position_matrix(moments), moments
        stack, more = [(0, 0)] * (mean.ndim - 1), (0, len(read))
        wide = np.pad(mean, [*stack, more]), np.pad(cov, [*stack, more, more])
        args = wide, self._agents, self._dim, None, self._cycle
        if not self._summing:
            step = lambda k: self._step(k).add_running_sum(read)  # noqa: E731
            self._summing.append(DeterministicPath(step, *args))
        mean, cov = self._summing[0]._compute_moments(wide, first, end)
        size = moments[0].shape[-1]
        return mean[..., size:], cov[..., size:, size:]


class RandomPath(Path):
    """The moments of versions whose steps are random, averaged over their outcomes.

    Steps have the mean matrix ``lead``: those of a network with losses, and those that samplers
    choose at random.
    """

    def _sum_moments(self, moments: Moments, first: int, end: int) -> Moments | None:
        """Return the moments of the sum of the positions over iterations (first, end].

        None over more than ``LONGEST_SUM`` iterations, since it goes step by step.
        """
        if end - first > LONGEST_SUM:
            return None
        (mean, cov), read = moments, self._position_matrix(moments)
        across = np.zeros((*mean.shape[:-1], len(read), mean.shape[-1]))  # Cov(sum, state)
        total = np.zeros((*mean.shape[:-1], len(read)))
        spread = np.zeros((*total.shape, len(read)))
        for k in range(first, end):
            move = self._step(k)
            mean, cov = move.apply(mean, cov)
            # Given the state of an iteration the mean matrix alone leads to expectations of later
            # ones, and so to covariances of different iterations.
            across = across @ move.lead.swapaxes(-1, -2)
            both = across @ read.T
            spread = spread + both + both.swapaxes(-1, -2) + read @ cov @ read.T
            across = across + read @ cov
            total = total + np.matvec(read, mean)
        return total, spread


class NoisyStep(NamedTuple):
    """The step of versions with mini-batch gradients.

    Errors xi of the gradients have mean zero given the state, so they are uncorrelated with it and
    add G E[xi xi^T] G^T to the covariance: mean and covariance are exact, but the law is no longer
    Gaussian, and the W2 formula of its moments is a lower bound. Agents draw independently.

    step: the updates, or the moves on a network with losses, without errors.
    gain: G of every version, (versions, rows, agents * dim).
    errors: E[xi xi^T] as a function of the agents' moments.
    """

    step: Affine | Move
    gain: np.ndarray
    errors: GradientNoise
    agents: int
    dim: int

    @property
    def lead(self) -> np.ndarray:
        """The matrix by which the mean moves: errors have mean zero given the state."""
        return self.step.matrix if isinstance(self.step, Affine) else self.step.lead

    def apply(self, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Return the state's moments after the step, (versions, T) and (versions, T, T)."""
        blocks, size, each = (self.agents, self.dim), self.agents * self.dim, np.arange(self.agents)
        own = cov[:, :size, :size].reshape(-1, *blocks, *blocks)[:, each, :, each].swapaxes(0, 1)
        errors = self.errors(mean[:, :size].reshape(-1, *blocks), own)
        of_agents = self.gain.reshape(*self.gain.shape[:2], *blocks).swapaxes(1, 2)
        spread = (of_agents @ errors).swapaxes(1, 2).reshape(self.gain.shape)
        noise = self.step.noise + spread @ self.gain.swapaxes(-1, -2)
        moments: Moments = replace(self.step, noise=noise).apply(mean, cov)
        return moments


def build_path(update: Update, start: Moments, agents: int, dim: int) -> Path:
    """Return the law of one version with full gradients along the iterations.

    start: moments (S,) and (S, S) of the state at iteration 0.

    With a Gaussian start the law is Gaussian and these moments are all of it. Where updates repeat
    powers are taken: the result is that of the recursion but for rounding, some 1e-16 times the
    number of iterations.
    """
    args = stack_updates([update]), exact.stack_versions([start]), agents, dim
    return DeterministicPath(*args, cycle=update.find_cycle())


def stack_updates(updates: Sequence[Update]) -> Callable[[int], Affine]:
    """Return a function of the iteration that stacks the updates of versions into one."""
    return lambda k: exact.stack_versions([update.at(k) for update in updates])
