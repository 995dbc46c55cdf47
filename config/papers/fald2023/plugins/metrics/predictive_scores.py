"""Scores of section 10.2: predictions of the clients' average beside the posterior's own."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from concord.laws.gaussian import Gaussian
from concord.laws.intervals import mean_interval
from concord.laws.reference_laws import Draws
from concord.laws.wasserstein import w2
from concord.predictions import calibration_error
from concord.problems.arithmetic import sigmoid
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields

BUCKETS, OTHER_BUCKETS = 10, (5, 15)  # of the calibration error; the print does not say how many
LEVELS = (0.2, 0.4, 0.6, 0.8)  # alpha of Figure 4
PREFIXES = 10  # of a chain, after which its W2 is measured
SCORES = ("accuracy", "agreement", "tv", "ece", "bs", "nnll", "hpd")


@yields(
    (*(f"score_{name}" for name in SCORES), "score_ece_*", "score_w2", "log_density"),
    averaged=("score_*", "log_density"),
    labels={
        "score_accuracy": Label("accuracy of predictions by the mean"),
        "score_agreement": Label("predictions that agree with the posterior's"),
        "score_tv": Label("total variation from the posterior's predictions"),
        "score_ece": Label("expected calibration error"),
        "score_bs": Label("Brier score"),
        "score_nnll": Label("normalized negative log likelihood"),
        "score_hpd": Label("relative error of highest posterior density regions"),
        "score_w2": Label("W2 of a chain's draws so far, of normal laws"),
        "log_density": Label("negative log posterior of a chain's draws, less that of the mean"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the scores of each chain's draws beyond burn-in, means over chains with intervals.

    They are of the clients' average. Reference predictions, regions and moments are those of the
    weighted points of the posterior (``problem.reference``). score_hpd: the mean over alpha of
    |eta/eta' - 1|, where pi(x) >= exp(-eta) has probability 1 - alpha. score_w2: after tenths of
    the draws. score_ece_<n>: score_ece with n buckets. log_density: along the draws, of the first
    chain.
    """
    problem: Any = m.problem
    test = getattr(problem, "test", None)
    truth = getattr(problem, "reference", None)
    if test is None or "x_average" not in m.trace or not isinstance(truth, Draws):
        raise unmet_need("predictive_scores", "test rows, draws as a reference, record.average")
    x, (Z, labels) = m.trace["x_average"][:, m.late], test
    weights = np.full(len(truth.values), 1 / len(truth.values))
    weights = weights if truth.weights is None else truth.weights
    expected = weights @ sigmoid(truth.values @ Z.T)
    chance = np.stack([sigmoid(chain @ Z.T).mean(axis=0) for chain in x])  # (chains, rows)
    surely = np.where(labels == 1, chance, 1 - chance)
    exact = _regions(_potential(problem, truth.values), weights)
    energies = np.stack([_potential(problem, chain) for chain in x])
    even = np.full(x.shape[1], 1 / x.shape[1])
    regions = np.stack([_regions(energy, even) for energy in energies])
    right, confidence = (chance > 0.5) == labels, np.maximum(chance, 1 - chance)
    numbers = {
        "accuracy": ((x.mean(axis=1) @ Z.T > 0) == labels).mean(axis=1),
        "agreement": ((chance > 0.5) == (expected > 0.5)).mean(axis=1),
        "tv": np.abs(chance - expected).mean(axis=1),
        "ece": calibration_error(right, confidence, BUCKETS)[0],
        "bs": 2 * ((1 - surely) ** 2).mean(axis=1),
        "nnll": -np.log(surely).mean(axis=1),
        "hpd": np.abs(regions / exact - 1).mean(axis=1),
        **{f"ece_{n}": calibration_error(right, confidence, n)[0] for n in OTHER_BUCKETS},
    }
    scores = {f"score_{name}": mean_interval(value) for name, value in numbers.items()}
    yield from series([m.last], "average", scores)
    target, ticks = Gaussian(*truth.moments()), m.trace.draw[m.late]
    for part in range(1, PREFIXES + 1):
        count = max(part * x.shape[1] // PREFIXES, 2)
        away = [w2(c[:count].mean(axis=0), np.cov(c[:count].T, bias=True), target) for c in x]
        distance = {"score_w2": mean_interval(np.array(away))}
        yield from series([ticks[count - 1]], "average", distance)
    least = _potential(problem, target.mean[None])[0]
    yield from series(ticks, "average", {"log_density": energies[0] - least}, chance=False)


def _potential(problem: Any, points: np.ndarray) -> np.ndarray:
    """Return the negative log posterior at points, (points, dim), up to a constant."""
    each = np.repeat(points[:, None], problem.agents, axis=1)
    total: np.ndarray = problem.potential(each).sum(axis=1)
    return total


def _regions(energies: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return eta of each alpha: the quantile 1 - alpha of weighted negative log densities."""
    order = np.argsort(energies)
    reached = np.cumsum(weights[order])
    found = np.searchsorted(reached, 1 - np.array(LEVELS))
    result: np.ndarray = energies[order][np.minimum(found, len(order) - 1)]
    return result
