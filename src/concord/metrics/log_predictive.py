r"""Log predictive density of held-out data, of each agent's own draws.

.. math::
    \frac1T \sum_{t=1}^T \log \frac1K \sum_k p(y_t \mid x_k)

over the T held-out rows and the K draws of a chain beyond burn-in; larger is better. Source: A.
Gelman, J. Hwang and A. Vehtari, Statistics and Computing 24 (2014) 997-1016.
"""

from collections.abc import Iterator

import numpy as np

from concord.contracts import HeldOut, WithTests, reference_of
from concord.errors import ConcordError
from concord.laws.intervals import mean_interval
from concord.laws.transport import thinned
from concord.metrics import Measurement, Row, lacking, series

METRICS = ("log_predictive", "log_predictive_posterior")

DRAWS, MANY = 200, 2000


def rows(m: Measurement) -> Iterator[Row]:
    """Yield log_predictive per recorded agent: mean over chains with an interval.

    Of up to 200 draws a chain, evenly thinned; or of the mean probabilities that the recorder kept
    (``averages: [predictive]``), for the first test set. log_predictive_posterior: of 2000 draws of
    the posterior, where it is known.
    """
    problem = m.problem
    with np.errstate(divide="ignore"):
        if isinstance(problem, WithTests) and "predictive_mean" in m.trace:
            labels = next(iter(problem.tests.values())).labels
            chances = m.trace["predictive_mean"][:, :, np.arange(len(labels)), labels]
            values = np.log(chances.astype(float)).mean(axis=-1)
        elif isinstance(problem, HeldOut) and problem.test is not None and "x" in m.trace:
            x = m.trace["x"][:, thinned(m.late, DRAWS)]
            values = np.stack([_density(problem.held_out(each)) for each in x])
        else:
            raise lacking(
                "log_predictive", "data that are held out, and draws or averages of predictive"
            )
    values = np.nan_to_num(values, nan=-np.inf, neginf=-np.inf)  # a chain that diverged
    yield from series([m.last], m.agents, {"log_predictive": mean_interval(values)})
    if isinstance(problem, HeldOut) and problem.test is not None:
        try:
            draws = reference_of(problem).sample(MANY, m.stream("log predictive"))
        except ConcordError:  # it is not known
            return
        value = float(_density(problem.held_out(draws)))
        yield Row(m.last, "network", "log_predictive_posterior", value)


def _density(log: np.ndarray) -> np.ndarray:
    """Return the mean over rows of the log mean density over draws, of (draws, ..., rows)."""
    with np.errstate(invalid="ignore"):
        top = log.max(axis=0)
        return (np.log(np.exp(log - top).mean(axis=0)) + top).mean(axis=-1)
