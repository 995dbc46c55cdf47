"""Run chains of candidates: to score those without a law, and to verify a recommendation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pandas

from concord.calls import sample
from concord.distances import squared_bias
from concord.errors import ConcordError, DivergenceWarning
from concord.laws.gaussian import monomials
from concord.laws.intervals import mean_interval
from concord.laws.law import laws_of_versions
from concord.laws.read_off import NoLaw
from concord.problem import Problem
from concord.reference import Reference, reference_of
from concord.sampling.trace import Trace
from concord_arena.entries import Entry
from concord_arena.lattices import Candidate
from concord_arena.question import Question
from concord_arena.scores import select_rows
from concord_arena.screen import list_unscored

LATE = 400  # most draws of a chain's second half, evenly spaced, of which averages are measured

Interval = tuple[float, float, float]  # a number, and the ends of its 95 % interval


class TrialRunner(NamedTuple):
    """Runs a number of chains of a candidate on a question's problem, and measures their errors.

    initial, memory: the arguments of ``concord.sample``.
    """

    question: Question
    chains: int
    seed: int
    initial: Mapping[str, Any]
    memory: float | None = None

    def run(self, row: Candidate, problem: Problem, iterations: Sequence[int]) -> Trace:
        """Run a candidate on a problem and return its trace, recorded at the given iterations."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", DivergenceWarning)
            return sample(
                row.entry.kind,
                problem,
                self.question.network,
                iterations=iterations[-1],
                record={"at": iterations},
                progress=False,
                chains=self.chains,
                seed=self.seed,
                initial=self.initial,
                memory=self.memory,
                **row.nondefault_options(self.question.wish),
            )

    def bias(self, row: Candidate) -> Interval:
        """Measure the squared bias of a candidate's last draw, with a 95 % interval.

        On a problem that is not Gaussian, chains with the same noise on the fitted Gaussian are a
        control variate, whose expectation is exact.
        """
        question = self.question
        k, gaussian = row.iterations, question.quadratic
        f, center = self._means(row, question.problem, [k]), np.zeros(1)
        if not question.is_exact and question.wish.batch_size is None:
            with suppress(NoLaw):
                arguments = [row.sampler], [gaussian], question.network, question.positions
                law = laws_of_versions(*arguments, question.reads[row.read][0], np.inf)
                marginals = law.marginals_at([k]).select((0, 0))
                control = self._means(row, gaussian, [k])
                if np.isfinite(control).all():
                    is_worst = question.wish.level == "worst"
                    law_of_level = marginals[:2] if is_worst else marginals[2:]
                    f, center = f - control, monomials(*law_of_level)[0]
        if not np.isfinite(f).all():
            return np.inf, np.inf, np.inf
        b2, lo, hi = squared_bias(f + center, *self._target_monomials())
        return float(b2.max()), float(lo.max()), float(hi.max())

    def error(self, row: Candidate) -> Interval:
        """Measure the error of a chain's average over its second half, with a 95 % interval.

        At most ``LATE`` draws of a chain are averaged.
        """
        target, variances = self._target_monomials()
        k, dim = row.iterations, self.question.problem.dim
        late = np.unique(np.linspace(k // 2 + 1, k, LATE).round().astype(int)).tolist()
        f = self._means(row, self.question.problem, late)
        if not np.isfinite(f).all():
            return np.inf, np.inf, np.inf
        means = mean_interval((f - target)[..., :dim] ** 2 / variances[..., :dim])
        seconds = squared_bias(f[..., dim:], target[..., dim:], variances[..., dim:])
        error, lo, hi = (float(max(m.max(), s.max())) for m, s in zip(means, seconds, strict=True))
        return error, lo, hi

    def verify(self, rows: Sequence[Candidate]) -> pandas.DataFrame:
        """Run candidates and return the table of their predicted and measured scores."""
        wish, lines = self.question.wish, []
        for row in rows:
            line: dict[str, Any] = {"sampler": row.entry.name, "read": str(row.read)}
            if wish.averages:
                numbers = row.b2["error"], *self.error(row)
                names = "error", "measured_error", "error_lo", "error_hi"
                line |= dict(zip(names, numbers, strict=True))
            numbers = row.b2[wish.level], *self.bias(row)
            line |= dict(zip(("predicted", "measured", "lo", "hi"), numbers, strict=True))
            lines.append(line)
        return pandas.DataFrame(lines)

    def best_of(self, entry: Entry) -> list[Candidate]:
        """Return the best of an entry's settings, an octave apart; an empty list if all diverge.

        Its score is measured on other chains than those it was chosen by, since the least of noisy
        scores is biased downwards.
        """
        level, averages = self.question.wish.level, self.question.wish.averages

        def score_by_chains(row: Candidate, seed: int, best: bool) -> Candidate:
            """Return a copy of a candidate with the score of chains with this seed.

            best: whether to measure b² even if the score is the error of averages.
            """
            run = self._replace(seed=seed)
            b2 = {"worst": np.nan, "average": np.nan}  # of one level nothing is measured
            if best or not averages:
                b2[level] = run.bias(row)[0]
            if averages:
                b2["error"] = run.error(row)[0]
            return row._replace(b2=b2, score=b2["error" if averages else level])

        rows = [
            score_by_chains(row, self.seed + 1, False)
            for row in list_unscored(self.question, entry)
        ]
        finite = [row for row in rows if np.isfinite(row.score)]
        best = sorted(finite, key=lambda row: row.score)[:1]
        return [score_by_chains(row, self.seed + 2, True) for row in best]

    @property
    def _posterior(self) -> Reference:
        """The problem's reference, or the fitted Gaussian where there is none."""
        try:
            return reference_of(self.question.problem)
        except ConcordError:
            return self.question.fit.law

    def _target_monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x and x^2 of the posterior that a level is compared with."""
        rows = select_rows(self._posterior, self.question.wish.level)
        mean, variance = self._posterior.monomials()
        return mean[rows], variance[rows]

    def _means(self, row: Candidate, problem: Problem, iterations: Sequence[int]) -> np.ndarray:
        """Run a candidate; return means of x and x^2 over iterations, (chains, agents, 2 dim).

        x: the positions after the candidate's read-out, or their network average.
        """
        mix = self.question.reads[row.read][0]
        x = self.run(row, problem, iterations)["x"]
        with np.errstate(all="ignore"):
            x = x if mix is None else mix @ x
            x = x if self.question.wish.level == "worst" else x.mean(axis=2, keepdims=True)
            return np.concatenate([x, x**2], axis=-1).mean(axis=1)
