r"""Linear regression on the diabetes data of scikit-learn, 442 rows of 10 features.

The potentials are those of ``linear_regression``, with N(0, v I) as prior, shared; features and the
target are standardized over all rows that are not for testing, so that there is no intercept. The
posterior is Gaussian and known. Source of the data: B. Efron, T. Hastie, I. Johnstone and R.
Tibshirani, Annals of Statistics 32 (2004) 407-499; they are in scikit-learn's own files.
"""

from typing import Annotated

import numpy as np
from msgspec import Meta

from concord.contracts import DataSets, Stream
from concord.options import Options, Positive
from concord.problems.kinds import linear_regression
from concord.problems.kinds.linear_regression import LinearRegression
from concord.sampling.partition import AgentData, Partition, check_rows
from concord_studies.datasets import readers
from concord_studies.datasets.points import split_test_rows

ROWS = 442


class Params(Options):
    """Options of the regression, and the number of test rows."""

    noise_sd: Annotated[
        Positive, "standard deviation sigma of the standardized target; least squares leave 0.70"
    ] = 0.7
    prior_variance: Annotated[Positive, "variance v of the prior N(0, v I)"] = 1.0
    test_fraction: Annotated[
        float, Meta(ge=0, le=0.9), "fraction of the rows, chosen at random, kept for testing"
    ] = 0.0


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError if there are more agents than rows."""
    check_rows(ROWS - round(params.test_fraction * ROWS), agents)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> LinearRegression:
    """Standardize the data set, and split its training rows over the agents."""
    features, targets = readers.diabetes()
    count = round(params.test_fraction * ROWS)
    training, testing = split_test_rows(ROWS, count, stream)
    table = np.column_stack([features, targets])
    table = (table - table[training].mean(axis=0)) / table[training].std(axis=0)
    features, targets = table[:, :-1], table[:, -1]
    parts = partition.split(len(training), agents, stream("partition"))
    data = AgentData.from_parts(features[training], targets[training], parts)
    model = linear_regression.Params(noise_sd=params.noise_sd, prior_variance=params.prior_variance)
    problem = LinearRegression(data, model)
    problem.test = (features[testing], targets[testing]) if count else None
    return problem
