"""Predict the score of a setting by its law, at the iterations that a budget pays for.

The score is the error of a time average, the b2 of the last draw, or the least price to a target.
A *path* holds the laws of several settings of one sampler, its *versions*, along the iterations.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from concord.laws.exact import Marginals
from concord.laws.gaussian import monomials
from concord.laws.read_off import NoLaw
from concord_arena import scores
from concord_arena.question import Question

# Iterations at which a target is looked for: in an octave, between two, and in which it may always
# be reached for once.
EVERY, PARTS, FEW = 256, 16, 16
TIE = 1e-6  # of a price, by which settings at the same one differ
LATE = 8  # iterations of the second half at which the mean of x^2 is read
UNSOLVED = 1e30  # beyond all prices


class Score(NamedTuple):
    """The score of a setting with a read-out, by which settings rank; less is better.

    iterations: at which it is reached. b2: by level, with the ``error`` of a time average where
    that is the score.
    """

    value: float
    iterations: int
    b2: Mapping[str, float]


def predict_scores(
    question: Question, path: Any, read: str | int, price: Mapping[str, float], known: int = FEW
) -> list[Score]:
    """Score the versions of a path with a read-out; an empty list if the budget pays for nothing.

    The score of a version that does not reach a target is b2 times ``UNSOLVED``, beyond all prices.
    price: of an iteration, by unit. known: the fewest iterations in which another setting reaches
    the target.
    """
    wish, limit = question.wish, question.count_iterations(price, read)
    if limit < 1:
        return []
    if wish.target is not None:
        ks, b2, at = _find_target(question, path, read, limit, known)
        paid = np.array(ks) * question.price_with_read_out(price, read)[str(wish.price)]
        rows = np.minimum(at, len(ks) - 1)
        last = b2[wish.level][-1]
        before = b2[wish.level][np.maximum(rows - 1, 0), np.arange(len(rows))]
        # Of those at one price the one that nearly reached it before leads to a lower one.
        values = paid[rows] * (1 + TIE * np.minimum(before / wish.target, 100))
        values = np.where(at < len(ks), values, UNSOLVED * (1 + last))
    else:
        ks = [limit]
        b2 = predict_bias(question, path, read, ks)
        if wish.averages:
            b2["error"] = predict_average_errors(question, path, read, limit)[None]
        values = b2["error" if wish.averages else wish.level][0]
        rows = np.zeros(len(values), dtype=int)
    return [
        Score(value, ks[row], {level: float(of[row, v]) for level, of in b2.items()})
        for v, (value, row) in enumerate(zip(values.tolist(), rows.tolist(), strict=True))
    ]


def predict_bias(
    question: Question, path: Any, read: str | int, ks: Sequence[int]
) -> dict[str, np.ndarray]:
    """Return b2 by level at iterations ``ks``, (iterations, versions); infinite if not a number.

    Large values stay finite: agents that start far away have not diverged.
    """
    marginals: Marginals = _read_laws(question, path, read).marginals_at(ks)
    b2 = scores.compute_bias(marginals, question.fit.law)
    return dict.fromkeys(b2, b2["average"]) if read == "average" else b2


def _read_laws(question: Question, path: Any, read: str | int) -> Any:
    """Return a path of the laws after a read-out; every path has those of the network average."""
    return path if read == "average" else path.with_answers(question.reads[read][0])


def _find_target(
    question: Question, path: Any, read: str | int, limit: int, known: int
) -> tuple[list[int], dict[str, np.ndarray], np.ndarray]:
    """Find the first iteration at which each version reaches the target.

    Returns iterations; b2 by level there; and for each version the index of the first iteration
    that reaches it, or the number of iterations where none does. The iterations are powers of two,
    on small problems ``EVERY`` in an octave up to twice ``known`` and twice the first that reaches,
    and then ever more just before that one. limit: the last iteration.
    """
    level, target = question.wish.level, float(question.wish.target or 0)
    find = scores.find_reached if question.is_exact else scores.find_solved  # a dip may be an error
    dense = scores.grid(min(2 * known, limit), EVERY) if question.is_small else []
    ks: list[int] = []
    b2: dict[str, np.ndarray] = {}
    new = sorted({*scores.grid(limit, 1), *dense})
    while new:
        more = predict_bias(question, path, read, new)
        order = np.argsort(ks + new)
        b2 = {n: np.concatenate([b2[n], more[n]] if ks else [more[n]])[order] for n in more}
        ks, is_first = sorted(ks + new), not ks
        at = find(b2[level], target)
        if (first := at.min()) == len(ks):
            break
        begin, end = [0, *ks][first], ks[first]
        octave = scores.grid(min(2 * end, limit), EVERY) if is_first and question.is_small else []
        between = range(begin + 1, end, -(-(end - begin) // PARTS))
        new = sorted({*octave} - {*ks}) or [*between]
    return ks, b2, at


def predict_average_errors(question: Question, path: Any, read: str | int, end: int) -> np.ndarray:
    """Predict the errors of averages over the second half of ``end`` iterations, (versions,).

    An error is the larger of the expected squared error of the average of x_j and the squared bias
    of that of x_j^2, over the posterior's variances; infinite where it is not a number.
    """
    path = _read_laws(question, path, read)
    averaged = path.time_average(end)
    if averaged is None:
        raise NoLaw(
            f"the law of a time average is not computed over {end:,} iterations; use by='b2'"
        )
    late = np.unique(np.linspace(end // 2 + 1, end, LATE).round().astype(int)).tolist()
    marginals = path.marginals_at(late)
    level = "average" if read == "average" else question.wish.level
    law = marginals[:2] if level == "worst" else marginals[2:]
    target, dim = question.fit.law, question.problem.dim
    target_moments, variances = scores.select_target(target, level).monomials()
    off = monomials(*law)[0].mean(axis=0)[..., dim:] - target_moments[..., dim:]
    squares = (off**2 / variances[..., dim:]).max(axis=-1)
    squares = squares.max(axis=-1) if level == "worst" else squares
    both = np.maximum(scores.ergodic_b2(averaged, target)[level], squares)
    return np.nan_to_num(both, nan=np.inf)
