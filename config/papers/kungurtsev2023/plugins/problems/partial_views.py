r"""Linear regression of agents that see all rows, and some of the features each.

.. math::
    f_i(w) = \frac{\tau}{2} \lVert y - X_i w \rVert^2 + \frac{1}{2 N} \lVert w \rVert^2

X_i has the features of agent i and an intercept, and zeros in the other columns. The product of the
exp(-f_i) is another law than the posterior of the regression on all features: agents explain y
each by itself, features that different agents see are independent, and the intercept is counted N
times. ``posterior_of`` says which of both is the posterior.

Rows are those of scikit-learn's diabetes data (442 of 10 features), of which 30 % are for testing;
features and target are standardized over the others. ``partition`` divides features, not rows.
"""

from typing import Annotated, Literal

import numpy as np

from concord.contracts import DataSets, Stream
from concord.laws.gaussian import Gaussian
from concord.options import Options, Positive
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampling.partition import Partition, check_rows
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets import readers
from concord_studies.datasets.points import split_test_rows

DECLARES = ProblemDeclaration(name="partial views")
FEATURES = 10
TEST = 0.3  # of the rows


class Params(Options):
    """Options of the regression, and of the law that is its posterior."""

    precision: Annotated[Positive, "precision tau of the standardized target"] = 10.0
    posterior_of: Annotated[
        Literal["views", "all"],
        "the posterior: of the agents' potentials together, or of the regression on all features",
    ] = "views"


class PartialViews(QuadraticProblem):
    """The agents' potentials, and rows for testing (features with an intercept, target)."""

    test: tuple[np.ndarray, np.ndarray]


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for more agents than features."""
    check_rows(FEATURES, agents)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> PartialViews:
    """Standardize the rows, and give each agent the features that the partition says."""
    features, targets = readers.diabetes()
    count = round(TEST * len(targets))
    training, testing = split_test_rows(len(targets), count, stream)
    table = np.column_stack([features, targets])
    table = (table - table[training].mean(axis=0)) / table[training].std(axis=0)
    X, y = np.column_stack([table[:, :-1], np.ones(len(table))]), table[:, -1]
    views = np.zeros((agents, FEATURES + 1))
    views[:, -1] = 1.0
    for row, features_seen in zip(
        views, partition.split(FEATURES, agents, stream("partition")), strict=True
    ):
        row[features_seen] = 1.0
    gram = params.precision * X[training].T @ X[training]
    shift = params.precision * X[training].T @ y[training]
    prior = np.eye(FEATURES + 1)
    each = views[:, :, None] * views[:, None, :] * gram + prior / agents
    problem = PartialViews(each, views * shift)
    problem.test = X[testing], y[testing]
    if params.posterior_of == "all":
        cov = np.linalg.inv(gram + prior)
        problem.posterior = Gaussian(cov @ shift, cov)
    return problem
