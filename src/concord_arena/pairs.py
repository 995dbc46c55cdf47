"""Pairs of entries: on how many data sets one is better than another, and by how much.

A pair meets on every task that both have a score of, data set by data set; a score within 5 % of
the other's is a tie. What diverged loses against what did not; where both did, it is a tie.
"""

from collections.abc import Sequence

import numpy as np

from concord.laws.intervals import REPLICATES
from concord_studies import selection
from concord_studies.intervals import percentile_interval
from concord_studies.results import Measured
from concord_studies.scores import TIE, read_scores, task_of


def scores_of_tasks(
    runs: Sequence[Measured], metric: str
) -> dict[str, dict[tuple[str, ...], np.ndarray]]:
    """Return the scores of the worst agent, (data sets,), {entry: {task: scores}}."""
    scores: dict[str, dict[tuple[str, ...], np.ndarray]] = {}
    for run in runs:
        values = read_scores(run, metric, "worst")
        tasks = scores.setdefault(str(selection.lookup(run.run, "entry")), {})
        if len(values) and not np.isnan(values).all():
            tasks[task_of(run, ["entry"])] = values
    return scores


def log_ratios(
    scores: dict[str, dict[tuple[str, ...], np.ndarray]], one: str, other: str
) -> list[np.ndarray]:
    """Return log(score of ``other`` / score of ``one``), (data sets,), on each task that both have.

    Positive where the entry ``one`` is better; 0 where undefined. scores: of ``scores_of_tasks``.
    """
    logs = []
    for task in scores[one]:
        if task in scores[other]:
            first, second = scores[one][task], scores[other][task]
            with np.errstate(all="ignore"):
                log = np.log(np.maximum(second, 1e-300)) - np.log(np.maximum(first, 1e-300))
            logs.append(np.where(np.isnan(log), 0.0, log))
    return logs


def count_wins(logs: Sequence[np.ndarray]) -> tuple[int, int, int]:
    """Count the data sets that the entry ``one`` of ``log_ratios`` wins, ties and loses."""
    joined = np.concatenate(logs) if logs else np.empty(0)
    won, lost = (joined > np.log(TIE)).sum(), (joined < -np.log(TIE)).sum()
    return int(won), int(len(joined) - won - lost), int(lost)


def median_ratio(logs: Sequence[np.ndarray]) -> tuple[float, float, float]:
    """Return the median of other's score / one's, with its 95 % interval by resampling tasks.

    logs: from ``log_ratios``.
    """
    joined = np.concatenate(logs)
    middle = np.median(joined)
    drawn = np.random.default_rng(1).integers(0, len(logs), (REPLICATES, len(logs)))
    medians = np.array([np.median(np.concatenate([logs[i] for i in row])) for row in drawn])
    lo, hi = percentile_interval(medians)
    with np.errstate(over="ignore"):
        return float(np.exp(middle)), float(np.exp(min(lo, middle))), float(np.exp(max(hi, middle)))


def describe_ratio(logs: Sequence[np.ndarray], digits: int) -> str:
    """Return ``median_ratio`` as text, with its interval if there are several tasks.

    logs: from ``log_ratios``. digits: significant digits.
    """
    ratio, lo, hi = (f"{value:.{digits}g}" for value in median_ratio(logs))
    return ratio if len(logs) == 1 else f"{ratio} [{lo}, {hi}]"
