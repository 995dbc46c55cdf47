r"""Approximate Gaussian laws of samplers on smooth problems, whose gradients are re-linearized.

Where gradients are not affine a law is not Gaussian, and no recursion of moments is exact. At
iterations 0, 1, 2, 3, 4, 6, 9, ... every agent's gradient is replaced by the affine one that has
the same mean over the agent's own law N(m_i, C_ii) there, and the same covariance with its position
(``problems.gaussian_fit.linearize``); up to the next one the law is that of the affine update. No
single linearization does: agents are wider than the posterior, and skewness turns width into a
bias of their means.

What a sampler keeps beside positions and starts from the gradients there (``exact.Start``), such as
tracked gradients, follows each change of them.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from concord.laws import exact
from concord.laws.exact import Affine, Moments, Update
from concord.laws.law import LawInputs, add_gradient_errors, find_family, laws_of_updates
from concord.laws.paths import Path
from concord.laws.read_off import NoLaw, StepReader
from concord.minibatches import batches_of
from concord.networks.network import Network
from concord.problem import Problem
from concord.problems.gaussian_fit import Fit, fit, gradient_field, linearize
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampler import Algorithm

POINTS = 64  # of an agent's law, over which gradients are averaged
DIVERGED = 1e4  # standard deviations of the fit


class LinearizedPath(Path):
    """Approximate Gaussian laws of a sampler's settings on a smooth problem.

    Gradients are linearized anew at iterations that grow by half; a *part* lies between two of
    them.

    positions: mean and covariance of an agent's start. normal_fit: the Gaussian fitted to the
    posterior, in whose standard deviations divergence is judged. mix: the read-out, (agents,
    agents). errors: covariances of mini-batch errors, as of ``laws_of_versions``. Raises ``NoLaw``
    where the sampler has no law on Gaussian problems either.
    """

    def __init__(
        self,
        samplers: Sequence[Algorithm],
        problem: Problem,
        network: Network,
        positions: Moments | None,
        normal_fit: Fit,
        mix: np.ndarray | None = None,
        errors: np.ndarray | None = None,
    ) -> None:
        """Prepare the laws of samplers; raise ``NoLaw`` if starts have no known moments."""
        if positions is None:
            raise NoLaw("of these starts only draws are known; take another initial")
        refuse_local_steps(samplers)
        agents, dim = problem.agents, problem.dim
        self._samplers, self._network, self._errors = samplers, network, errors
        self._at, self._fit, self._positions = gradient_field(problem), normal_fit, positions
        start = exact.initial_moments(agents, dim, positions)
        starts = exact.stack_versions([start] * len(samplers))
        no_step: Any = None  # it goes by parts
        super().__init__(no_step, starts, agents, dim, mix)
        self._readers: list[StepReader] = []  # of the last linearization
        self._at_rest: list[Update] | None = None  # updates without gradients; None: not read yet
        # Where gradients are linearized, the updates and paths from there, and the moments there.
        self._begins: list[int] = []
        self._parts: list[tuple[list[Update], Path, Moments]] = []

    def _advance(
        self, moments: Moments, first: int, end: int, done: Callable[[int], object] = lambda n: None
    ) -> Moments:
        """Return the moments at iteration ``end``, linearizing further parts where needed.

        moments, first: ignored, since every part keeps its own first moments. done: is told the
        number of iterations.
        """
        while not self._begins or _next_linearization(self._begins[-1]) <= end:
            self._begin_part()
        place = bisect_right(self._begins, end) - 1
        _, path, begun = self._parts[place]
        done(end - first)
        return path._advance(begun, self._begins[place], end)

    def _sum_moments(self, moments: Moments, first: int, end: int) -> Moments | None:
        """Return the moments of the sum of the positions over iterations (first, end].

        Gradients are those linearized at ``end``, for all of these iterations.
        """
        self._advance(self._start, 0, end)
        return self._parts[bisect_right(self._begins, end) - 1][1]._sum_moments(moments, first, end)

    def _begin_part(self) -> None:
        """Linearize the problem at the end of the last part, and begin the next part."""
        if not self._begins:
            updates = self._linearize(self._start)
            path = self._build_path(updates)
            self._begins.append(0)
            self._parts.append((updates, path, path._start))
            return
        k = _next_linearization(self._begins[-1])
        before, path, begun = self._parts[-1]
        mean, cov = path._advance(begun, self._begins[-1], k)
        updates = self._linearize((mean, cov))
        size, mean, cov = self._agents * self._dim, mean.copy(), cov.copy()
        for version, (old, new) in enumerate(zip(before, updates, strict=True)):
            was, now = old.start, new.start
            assert was is not None and now is not None
            lead = np.eye(cov.shape[-1])
            lead[size:, :size] = (now.matrix - was.matrix)[size:]
            mean[version] = lead @ mean[version]
            mean[version, size:] += (now.offset - was.offset)[size:]
            cov[version] = lead @ cov[version] @ lead.T
        self._begins.append(k)
        self._parts.append((updates, self._build_path(updates), (mean, cov)))

    def _build_path(self, updates: list[Update]) -> Path:
        """Return the laws of affine updates, each from its own initial moments."""
        arguments = self._agents, self._dim, self._positions
        starts = [exact.initial_moments(*arguments, update.start) for update in updates]
        cycle = self._parts[0][1]._cycle if self._parts else None  # the same all along
        return laws_of_updates(updates, starts, self._network, self._dim, cycle=cycle)

    def _linearize(self, moments: Moments) -> list[Update]:
        """Return the samplers' updates on the problem linearized at the agents' moments.

        Samplers that have diverged are linearized at the fit, and their moments stay infinite.
        """
        wide, (agents, dim) = self._fit.cov, (self._agents, self._dim)
        marginals = exact.marginals(*moments, agents, dim)
        spread = np.sqrt(np.diagonal(wide, axis1=-2, axis2=-1))
        with np.errstate(all="ignore"):
            apart = np.abs(marginals.mean - self._fit.mean) / spread
            width = np.diagonal(marginals.cov, axis1=-2, axis2=-1) / spread**2
            fine = (apart.max(axis=(1, 2)) < DIVERGED) & (width.max(axis=(1, 2)) < DIVERGED**2)
            cov = np.where(fine[:, None, None, None], marginals.cov + 1e-6 * wide, wide)
            cov = (cov + cov.swapaxes(-1, -2)) / 2
            low = np.linalg.eigvalsh(cov)[..., 0].min(axis=1) <= 0
        fine &= ~low
        cov[~fine] = wide
        mean = np.where(fine[:, None, None], marginals.mean, self._fit.mean)
        gram, shift = linearize(self._at, mean, cov, POINTS)
        fine &= np.isfinite(gram).all(axis=(1, 2, 3)) & np.isfinite(shift).all(axis=(1, 2))
        moments[0][~fine] = np.inf
        gram[~fine], shift[~fine] = self._fit.hessians, 0.0
        local = self._fit.local
        problems = [
            QuadraticProblem(H, b, local) for H, b in zip(gram, np.nan_to_num(shift), strict=True)
        ]
        updates, errors = self._read_on(problems), self._errors
        return updates if errors is None else [add_gradient_errors(u, errors) for u in updates]

    def _read_on(self, problems: Sequence[QuadraticProblem]) -> list[Update]:
        """Return the samplers' updates, each on its own problem.

        Where a step takes one gradient of each agent and no more of a problem, steps are read once.
        """
        if self._at_rest is None:
            self._at_rest = _read_at_rest(self._samplers, problems[0], self._network)
        if self._at_rest:
            return [_move_to(*pair) for pair in zip(self._at_rest, problems, strict=True)]
        versions = [*zip(self._samplers, problems, strict=True)]
        self._readers = [
            reader.on(*version) for reader, version in zip(self._readers, versions, strict=False)
        ] or [StepReader(*version, self._network) for version in versions]
        return [reader.update() for reader in self._readers]


@lru_cache(maxsize=1)
def _make_flat(agents: int, dim: int, local: tuple[bool, ...] | None) -> QuadraticProblem:
    """Return a problem without gradients, one and the same for all paths."""
    own = None if local is None else np.array(local)
    return QuadraticProblem(np.zeros((agents, dim, dim)), np.zeros((agents, dim)), own)


def _read_at_rest(
    samplers: Sequence[Algorithm], like: QuadraticProblem, network: Network
) -> list[Update]:
    """Return the samplers' updates without gradients, with what these would do.

    like: a problem of as many numbers. Empty where a step takes more of a problem than a gradient.
    """
    local = None if like.local is None else tuple(like.local.tolist())
    flat = _make_flat(like.agents, like.dim, local)
    if not network.delivers_all or batches_of(samplers[0]) is not None:
        return []
    try:
        family = find_family(samplers, [flat], network, errors=True)
        readers = (StepReader(sampler, flat, network, errors=True) for sampler in samplers)
        return (family and family.updates_of(samplers)) or [each.update() for each in readers]
    except Exception:  # whatever a step does with what is no problem
        return []


def _move_to(update: Update, problem: QuadraticProblem) -> Update:
    """Return the update of a step on a problem, given that without gradients, and their gain."""
    gram = exact.block_diagonal(problem.gram)

    def update_at(k: int) -> Affine:
        """Return the update of iteration k."""
        step = update.at(k)
        gain: Any = step.gradient_gain
        matrix = step.matrix.copy()
        matrix[:, : len(gram)] += gain @ gram
        return Affine(matrix, step.offset - gain @ problem.shift.ravel(), step.noise)

    return replace(update, at=update_at)


def refuse_local_steps(samplers: Sequence[Algorithm]) -> None:
    """Raise ``NoLaw`` for samplers whose agents take several steps between two exchanges."""
    if any(getattr(sampler, "period", 1) > 1 for sampler in samplers):
        raise NoLaw(
            "agents make several steps between two vectors, along which they are not linearized; "
            "sample it instead"
        )


def law_of_run(run: LawInputs) -> exact.Law:
    """Return the approximate law of a run's agents at its recorded iterations.

    Raises ``NoLaw`` where the law is not finite, though chains may be: the mean of a gradient that
    grows exponentially is far larger over a wide Gaussian than over chains.
    """
    if batches_of(run.sampler) is not None:
        raise NoLaw(
            "errors of mini-batches are not approximated; leave out batch_size, or sample it"
        )
    positions = run.initial.moments(run.problem.dim)
    normal_fit = fit(run.problem, 0.0 if positions is None else positions[0])
    arguments = [run.sampler], run.problem, run.network, positions, normal_fit
    law = LinearizedPath(*arguments).law(run.trace.draw.tolist())
    finite = np.isfinite(law.mean).all(axis=(1, 2)) & np.isfinite(law.cov).all(axis=(1, 2, 3))
    if not finite.all():
        raise NoLaw(
            f"the approximation has no finite law at iteration {law.iterations[~finite][0]}, where "
            "chains may be finite; sample it instead, or take a smaller step"
        )
    return replace(law, approximate=True)


def _next_linearization(k: int) -> int:
    """Return the next iteration after k at which gradients are linearized again."""
    return k + 1 if k < 3 else int(1.5 * k)
