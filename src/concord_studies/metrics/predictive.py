"""Scores of averaged predictions: of classes accuracy, negative log likelihood, Brier, calibration.

Each chain's predictive distribution is the mean over its draws after burn-in (the Bayesian model
average). Agents have scores of their own, and the network those of the mean of the agents'
predictive distributions. ``concord.predictions`` has the equations, and ``concord.predictive``
scores traces in Python. Rows are those of the problem's first test set. Of a regression they are
the mean squared error, negative log likelihood and coverage; densities are averaged in single
precision, so that the likelihood of a target 13 standard deviations away is infinite.
"""

from collections.abc import Iterator

import numpy as np

from concord import predictions
from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label, WithTestSets
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields


@yields(
    ("accuracy", "nll", "brier", "ece", "mse", "coverage"),
    records=("predictive",),
    labels={
        "accuracy": Label("accuracy of averaged predictions"),
        "nll": Label("negative log likelihood of test labels, in nats"),
        "mse": Label("mean squared error of the mean prediction"),
        "coverage": Label("share of targets within central 95 % intervals"),
        "brier": Label("Brier score"),
        "ece": Label("expected calibration error"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield scores of each recorded agent, and of the network, at the last iteration.

    They are means over chains, with Student's intervals.
    """
    if not isinstance(m.problem, WithTestSets):
        raise unmet_need("predictive", "a problem with test sets")
    labels = np.asarray(next(iter(m.problem.tests.values())).labels)
    p = m.trace["predictive_mean"][:, :, : len(labels)].astype(float)
    for agents, of_agents in ((m.agents, p), ("network", p.mean(axis=1, keepdims=True))):
        scores = _score(m.problem, of_agents, labels)
        numbers = {name: mean_interval(scores[name]) for name in scores if name != "ece_floor"}
        yield from series([m.last], agents, numbers)


def _score(problem: object, p: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Return scores by name of class probabilities, or of a regression's predictions at labels.

    The latter are (..., rows, 3): mean, density and distribution function.
    """
    if getattr(problem, "noise_sd", None) is None:
        return predictions.score(p, labels)
    with np.errstate(divide="ignore"):
        p = np.stack([p[..., 0], np.log(p[..., 1]), p[..., 2]], axis=-1)
    return predictions.score_targets(p, labels)
