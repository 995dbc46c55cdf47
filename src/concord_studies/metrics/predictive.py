"""Scores of averaged predictions: accuracy, negative log likelihood, Brier score, calibration.

Each chain's predictive distribution is the mean over its draws after burn-in (the Bayesian model
average). Agents have scores of their own, and the network those of the mean of the agents'
predictive distributions. ``concord.predictions`` has the equations, and ``concord.predictive``
scores traces in Python. Rows are those of the problem's first test set.
"""

from collections.abc import Iterator

import numpy as np

from concord import predictions
from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label, WithTestSets
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields


@yields(
    ("accuracy", "nll", "brier", "ece"),
    records=("predictive",),
    labels={
        "accuracy": Label("accuracy of averaged predictions"),
        "nll": Label("negative log likelihood of test labels, in nats"),
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
        scores = predictions.score(of_agents, labels)
        numbers = {
            name: mean_interval(scores[name]) for name in ("accuracy", "nll", "brier", "ece")
        }
        yield from series([m.last], agents, numbers)
