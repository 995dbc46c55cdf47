"""Scores of samplers by their exact laws, for which no chain is run."""

from collections.abc import Iterator, Sequence

import numpy as np

from concord.laws.exact import Marginals, Moments
from concord.laws.law import laws_of_versions
from concord.networks.network import Network
from concord.problem import Problem
from concord.sampler import Algorithm
from concord_arena import scores
from concord_arena.scores import Levels
from concord_studies.contracts import HeldOut


class Laws:
    """Versions, each a sampler on a problem whose posterior is Gaussian, scored by their laws.

    positions: mean and covariance of an agent's start; None: unknown. mix: the read-out, a matrix
    (agents, agents) applied to the positions; None: the positions. Raises ``NoLaw`` where no law is
    known.
    """

    exact = True

    def __init__(
        self,
        samplers: Sequence[Algorithm],
        problems: Sequence[Problem],
        network: Network,
        positions: Moments | None,
        mix: np.ndarray | None,
    ) -> None:
        """Compute the samplers' laws, each on its problem."""
        self._path = laws_of_versions(samplers, problems, network, positions, mix)
        self._problems = problems
        self._posteriors = [problem.posterior for problem in problems if problem.posterior]

    def bias(self, iterations: Sequence[int]) -> Levels:
        """Return b² by level at increasing iterations, each (iterations, versions)."""
        return self._bias(self._path.marginals_at(iterations))

    def measure(
        self, iterations: Sequence[int], families: Sequence[str]
    ) -> tuple[Levels, Iterator[tuple[str, Levels]]]:
        """Return the score by level, as ``bias`` does, and further metrics by level at the end.

        Further metrics are infinite where the score is. ``log_predictive`` has a level ``exact``,
        the posterior's. families: ignored, since these metrics take chains.
        """
        marginals = self._path.marginals_at(iterations)
        b2 = self._bias(marginals)
        return b2, self._scores(marginals, iterations[-1], scores.take_last(b2))

    def stationary_bias(self) -> Levels | None:
        """Return b² of the stationary laws by level, (versions,); None where there are none."""
        marginals = self._path.limit()
        return None if marginals is None else scores.take_last(self._bias(marginals.select(None)))

    def _bias(self, marginals: Marginals) -> Levels:
        """Return b² by level, each law against its problem's posterior."""
        first, *others = self._posteriors
        if all(other is first for other in others):
            return scores.bias(marginals, first)
        each = enumerate(self._posteriors)
        return scores.stack_versions(
            [scores.bias(marginals.select(np.s_[:, v]), posterior) for v, posterior in each]
        )

    def _scores(
        self, marginals: Marginals, end: int, final: Levels
    ) -> Iterator[tuple[str, Levels]]:
        """Yield further metrics by level: ergodic b², distances, log density of held-out rows.

        end: the last iteration. final: b² there, by level.
        """
        targets = self._posteriors

        def mask_diverged(level: str, values: Sequence[np.ndarray], lost: float = np.inf) -> Levels:
            """Return a level's values, (versions,), with ``lost`` where final b² is infinite."""
            return {level: np.where(np.isposinf(final[level]), lost, np.array(values, float))}

        averaged = self._path.time_average(end)
        if averaged is not None:
            b2 = [scores.ergodic_b2(averaged.select(v), target) for v, target in enumerate(targets)]
            for level in scores.LEVELS:
                yield "ergodic_b2", mask_diverged(level, [one[level] for one in b2])
        ends = [marginals.select((-1, v)) for v in range(len(targets))]
        parts = [scores.compare_laws(*pair) for pair in zip(ends, targets, strict=True)]
        for level in ("worst", "average"):
            for metric in parts[0][level]:
                yield metric, mask_diverged(level, [one[level][metric] for one in parts])
        tested = [p for p in self._problems if isinstance(p, HeldOut) and p.test is not None]
        if len(tested) < len(targets):
            return
        for level, moments in (
            ("worst", [law[:2] for law in ends]),
            ("average", [law[2:] for law in ends]),
        ):
            yield "log_predictive", mask_diverged(level, _predict(tested, moments), -np.inf)
        exact = _predict(tested, [(target.mean, target.cov) for target in targets])
        yield "log_predictive", {"exact": np.array(exact)}


def _predict(problems: Sequence[HeldOut], laws: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Return the worst agent's mean log density of held-out rows under normal laws (mean, cov)."""
    with np.errstate(all="ignore"):
        return [
            problem.held_out_log_density(*moments).mean(axis=-1).min()
            for problem, moments in zip(problems, laws, strict=True)
        ]
