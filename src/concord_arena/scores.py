r"""Scores of a law: b², the squared bias in posterior standard deviations, at three levels.

.. math::
    b^2 = \max_{f \in \{x_j,\, x_j^2\}} \frac{(E_k f - E_\pi f)^2}{\mathrm{Var}_\pi f}

for the worst agent, the network average, and all agents' draws pooled. The ergodic one is that of a
time average over one run, whose expected square counts its spread, too:
:math:`E (\bar f - E_\pi f)^2 / \mathrm{Var}_\pi f` for f = x_j; the mean over agents is
that of the network average.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from concord.laws.exact import Marginals
from concord.laws.gaussian import Gaussian, monomials
from concord.laws.wasserstein import bias2, w2
from concord.local_coordinates import PosteriorByAgent
from concord.problem import Problem
from concord.reference import Reference, reference_of

Levels = dict[str, np.ndarray]  # numbers by level


class NormalLaws(NamedTuple):
    """One normal law, of mean (dim,) and cov (dim, dim), or one of each agent (a first axis)."""

    mean: np.ndarray
    cov: np.ndarray

    def monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of each x_j and each x_j^2, (..., 2 dim)."""
        return monomials(self.mean, self.cov)


def select_target(target: Gaussian | PosteriorByAgent, level: str) -> NormalLaws:
    """Return the laws with which agents, or at the level ``average`` their average, are compared.

    Where agents hold local coordinates there is one for each agent.
    """
    rows = select_rows(target, level)
    return NormalLaws(*(of[rows] for of in target.moments()))


def select_rows(target: Reference, level: str) -> Any:
    """Return the index of a level's rows in the moments of a posterior (``PosteriorByAgent``)."""
    if not isinstance(target, PosteriorByAgent):
        return ...
    return -1 if level == "average" else np.s_[:-1]


LEVELS = ("worst", "average", "pooled")
TARGETS = (1.0, 0.1, 0.01, 0.001, 0.0001)
# From here on a law has diverged: a bias of a thousand standard deviations.
DIVERGED = 1e6


def bias(marginals: Marginals, target: Gaussian) -> Levels:
    """Return b² of laws by level, as ``compute_bias``, but infinite beyond ``DIVERGED``."""
    by_level = compute_bias(marginals, target)
    return {level: np.where(b2 <= DIVERGED, b2, np.inf) for level, b2 in by_level.items()}


def compute_bias(marginals: Marginals, target: Gaussian | PosteriorByAgent) -> Levels:
    """Return b² of laws by level, one for each law; infinite only where it is not a number."""
    each, average = (select_target(target, level) for level in ("worst", "average"))
    # Pooled agents are compared with the mean of what they are compared with.
    target_moments, variances = (np.atleast_2d(of).mean(axis=0) for of in each.monomials())
    with np.errstate(all="ignore"):
        pooled = monomials(marginals.mean, marginals.cov)[0].mean(axis=-2)
        pooled = ((pooled - target_moments) ** 2 / variances).max(axis=-1)
        return {
            "worst": bias2(marginals.mean, marginals.cov, each).max(axis=-1),
            "average": bias2(marginals.average_mean, marginals.average_cov, average),
            "pooled": np.nan_to_num(pooled, nan=np.inf, posinf=np.inf),
        }


def ergodic_b2(averaged: Marginals, target: Gaussian | PosteriorByAgent) -> Levels:
    """Return, by level, the ergodic b² of averages over time, given the laws of the averages."""

    def error(mean: np.ndarray, cov: np.ndarray, level: str) -> np.ndarray:
        """Return the ergodic b² of averages with these means and covariances at a level."""
        law = select_target(target, level)
        spread = np.diagonal(cov, axis1=-2, axis2=-1) + (mean - law.mean) ** 2
        b2 = (spread / np.diagonal(law.cov, axis1=-2, axis2=-1)).max(axis=-1)
        return np.where(b2 <= DIVERGED, b2, np.inf)

    with np.errstate(all="ignore"):
        average = error(averaged.average_mean, averaged.average_cov, "average")
        worst = error(averaged.mean, averaged.cov, "worst").max(axis=-1)
    return {"worst": worst, "average": average, "pooled": average}


def compare_laws(marginals: Marginals, target: Gaussian) -> dict[str, Levels]:
    """Return w2, mean_error and covariance_error of laws from the posterior, by level and name.

    w2: the 2-Wasserstein distance over sqrt(tr Sigma). mean_error: the length of the whitened
    difference of means. covariance_error: the Frobenius norm of the whitened difference of
    covariances, over the root of the dimension.
    """
    root = np.linalg.inv(np.linalg.cholesky(target.cov))
    dim = len(target.mean)

    def compare(mean: np.ndarray, cov: np.ndarray) -> dict[str, np.ndarray]:
        """Return w2, mean_error and covariance_error of normal laws with these moments."""
        apart = np.matvec(root, mean - target.mean)
        other = root @ cov @ root.T - np.eye(dim)
        errors = {
            "w2": w2(mean, cov, target) / np.sqrt(np.trace(target.cov)),
            "mean_error": np.sqrt((apart**2).sum(axis=-1)),
            "covariance_error": np.sqrt((other**2).sum(axis=(-2, -1)) / dim),
        }
        return {name: np.nan_to_num(v, nan=np.inf, posinf=np.inf) for name, v in errors.items()}

    with np.errstate(all="ignore"):
        worst = compare(marginals.mean, marginals.cov)
        average = compare(marginals.average_mean, marginals.average_cov)
    return {"worst": {n: v.max(axis=-1) for n, v in worst.items()}, "average": average}


DIRECTIONS, FLOORS, EXACT = 50, 10, 20_000
COVERED = (50, 90)  # percent of the draws
# Of which the worst agent has the least; of all others but those with a right value the most.
LARGER_IS_BETTER = ("ess_bulk", "ess_tail", "log_predictive", "modes_visited")


class ReferenceDraws(NamedTuple):
    """Exact posterior draws, and directions, with which samplers' draws on a problem are compared.

    onto: a matrix (dim, dim + DIRECTIONS) that projects draws to coordinates in posterior standard
    deviations and to random directions. drawn: exact draws, (draws, FLOORS + 1, dim). sorted: exact
    draws, sorted in each coordinate, (EXACT, dim).
    """

    onto: np.ndarray
    drawn: np.ndarray
    sorted: np.ndarray


def draw_references(count: int, problem: Problem, rng: np.random.Generator) -> ReferenceDraws:
    """Draw the exact draws and directions with which ``count`` draws of a sampler are compared."""
    exact = reference_of(problem)
    variance = exact.monomials()[1]
    dim = len(variance) // 2
    directions = rng.standard_normal((dim, DIRECTIONS))
    directions *= np.sqrt(dim) / np.linalg.norm(directions, axis=0)
    onto = np.concatenate([np.eye(dim), directions], axis=1) / np.sqrt(variance[:dim, None])
    drawn = exact.sample((FLOORS + 1) * count, rng).reshape(count, FLOORS + 1, dim)
    return ReferenceDraws(onto, drawn, np.sort(exact.sample(EXACT, rng), axis=0))


def compare_draws(draws: np.ndarray, references: ReferenceDraws) -> Iterator[tuple[str, Levels]]:
    """Yield names and values by level of metrics that compare a sampler's draws with exact ones.

    draws: (draws, agents + 1, dim), the network average last.

    In posterior standard deviations: w1, the mean over coordinates of W1 between the marginal laws,
    and sliced_w2 (Bonneel, Rabin, Peyré and Pfister, 2015), both with what as many exact draws show
    (the level ``floor``); coverage_50 and coverage_90, the posterior mass of the central intervals
    that hold so many percent of the draws. Draws that are not finite are infinitely far, and have
    no coverage.
    """
    dim = draws.shape[-1]
    every = np.sort(np.concatenate([draws, references.drawn], axis=1) @ references.onto, axis=0)
    apart = every[:, :-1] - every[:, -1:]
    for name, each in (
        ("w1", np.abs(apart[..., :dim]).mean(axis=(0, 2))),
        ("sliced_w2", np.sqrt((apart[..., dim:] ** 2).mean(axis=(0, 2)))),
    ):
        distances = np.nan_to_num(each, nan=np.inf, posinf=np.inf)
        of_agents, floors = distances[:-FLOORS], distances[-FLOORS:]
        levels = {"worst": of_agents[:-1].max(), "average": of_agents[-1], "floor": floors.mean()}
        yield name, levels
    shares = _coverages(draws, references.sorted)
    for level, each in zip(COVERED, shares, strict=True):
        name = f"coverage_{level}"
        yield name, {"worst": pick_worst(name, each[:-1], level / 100), "average": each[-1]}


def _coverages(draws: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the posterior mass of draws' central intervals, (levels of ``COVERED``, agents).

    draws: (draws, agents, dim). exact: draws of the posterior, (draws, dim), each coordinate
    sorted. The mean over coordinates; nan where a draw is.
    """
    tails = [50 + side * level / 2 for level in COVERED for side in (-1, 1)]
    ends = np.percentile(draws, tails, axis=0)
    below = [np.searchsorted(exact[:, j], ends[..., j]) for j in range(ends.shape[-1])]
    shares = np.diff(np.mean(below, axis=0) / len(exact), axis=0)[::2]
    return np.where(np.isnan(ends).any(axis=(0, 2)), np.nan, shares)


def pick_worst(metric: str, each: np.ndarray, ideal: float | None = None) -> np.ndarray:
    """Return the worst of the agents' values of a metric, (agents,).

    ideal: the best value, from which the worst is farthest; None: the worst is the largest, or the
    least for ``LARGER_IS_BETTER``.
    """
    if np.isnan(each).any():
        return np.array(np.nan)
    if ideal is not None:
        return np.array(each[np.abs(each - ideal).argmax()])
    return np.array(each.min() if metric in LARGER_IS_BETTER else each.max())


def find_solved(b2: np.ndarray, target: float) -> np.ndarray:
    """Find the first index of the first axis from which b² stays at or below a target.

    The index is the length of that axis where the last b² is above the target.
    """
    above = b2 > target
    return np.where(above.any(axis=0), len(b2) - np.argmax(above[::-1], axis=0), 0)


def find_reached(b2: np.ndarray, target: float) -> np.ndarray:
    """Find the first index of the first axis at which b² is at most a target.

    The index is the length of that axis where b² is above the target all along.
    """
    reached = b2 <= target
    return np.where(reached.any(axis=0), reached.argmax(axis=0), len(b2))


def take_last(values: Levels) -> Levels:
    """Return, by level, the values at the last index of the first axis."""
    return {level: of[-1] for level, of in values.items()}


def stack_versions(versions: Sequence[Levels]) -> Levels:
    """Stack the scores of versions, (iterations,), by level into (iterations, versions)."""
    return {level: np.stack([one[level] for one in versions], axis=1) for level in versions[0]}


def price_until_solved(b2: np.ndarray, paid: np.ndarray, target: float) -> np.ndarray:
    """Return the price paid until each version's b² stays at or below a target, (versions,).

    Infinite where the last b² is above it. b2: (iterations, versions). paid: the price of all
    iterations so far, (iterations,).
    """
    return np.append(paid, np.inf)[find_solved(b2, target)]


def grid(end: int, per_octave: int) -> list[int]:
    """Return the grid of iterations up to ``end`` at which a score is computed, ``end`` included.

    It has ``per_octave`` iterations between a power of two and the next, evenly spaced, so that one
    power of an update leads from each to the next.
    """
    octaves = range(end.bit_length())
    points = {(per_octave + part) << octave for octave in octaves for part in range(per_octave)}
    return sorted(k for k in {*range(1, per_octave), *points, end} if k <= end)
