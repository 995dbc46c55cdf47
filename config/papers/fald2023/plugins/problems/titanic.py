r"""Logistic regression of who survived the Titanic (section 10.2), by the counts of Dawson (1995).

.. math:: U^i(x) = \sum_j \bigl[ o_{ij} \log(1 + e^{-z_{ij}^\top x})
                   + (1 - o_{ij}) \log(1 + e^{z_{ij}^\top x}) \bigr]
                   + \frac{\lVert x \rVert^2}{2 v b}

The four covariates are not printed; ours are an intercept, the class (crew, third, second, first: 0
to 3), sex and age, standardized over the training rows. The 441 test rows are the same in every
run, so that the step has one value; clients get shares of either label by a Dirichlet law. They
start at the posterior's mean.
"""

from typing import Annotated

import numpy as np

from concord.contracts import DataSets, Stream
from concord.options import Count, Options, Positive
from concord.problems.kinds import logistic_regression
from concord.sampling.partition import AgentData, Partition, check_rows
from concord_studies.contracts import ProblemDeclaration

TESTING = 441
# Class (first, second, third, crew), whether adult, whether male: how many died and survived.
COUNTS = {
    (1, 0, 1): (0, 5), (2, 0, 1): (0, 11), (3, 0, 1): (35, 13), (4, 0, 1): (0, 0),
    (1, 0, 0): (0, 1), (2, 0, 0): (0, 13), (3, 0, 0): (17, 14), (4, 0, 0): (0, 0),
    (1, 1, 1): (118, 57), (2, 1, 1): (154, 14), (3, 1, 1): (387, 75), (4, 1, 1): (670, 192),
    (1, 1, 0): (4, 140), (2, 1, 0): (13, 80), (3, 1, 0): (89, 76), (4, 1, 0): (3, 20),
}  # fmt: skip


class Params(Options):
    """Options of the prior and of the division into training and test rows."""

    prior_scale: Annotated[Positive, "variance v of the prior, which counts once"] = 1.0
    draw: Annotated[Count, "seed of the choice of the test rows"] = 1


class Titanic(logistic_regression.LogisticRegression):
    """Logistic regression whose clients start at the posterior's mean."""

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Return the posterior's mean as initial positions, (chains, agents, dim)."""
        return np.broadcast_to(self.reference.moments()[0], shape)


DECLARES = ProblemDeclaration(name="Titanic")


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for more agents than training rows."""
    check_rows(sum(map(sum, COUNTS.values())) - TESTING, agents)


def people() -> tuple[np.ndarray, np.ndarray]:
    """Return class, age and sex of all people, (people, 3), and whether they survived."""
    features = [kind for kind, counts in COUNTS.items() for _ in range(sum(counts))]
    survived = [np.repeat([0.0, 1.0], counts) for counts in COUNTS.values()]
    rows = np.array(features, dtype=float)
    rows[:, 0] = 4 - rows[:, 0]
    return rows, np.concatenate(survived)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Titanic:
    """Choose the test rows, standardize, and split the others over the clients."""
    rows, survived = people()
    order = np.random.default_rng(params.draw).permutation(len(survived))
    testing, training = np.sort(order[:TESTING]), np.sort(order[TESTING:])
    rows = (rows - rows[training].mean(axis=0)) / rows[training].std(axis=0)
    Z = np.column_stack([np.ones(len(rows)), rows])
    parts = partition.split(survived[training], agents, stream("partition"))
    data = AgentData.from_parts(Z[training], survived[training], parts)
    prior = logistic_regression.Params(prior_scale=params.prior_scale)
    return Titanic(data, prior, test=(Z[testing], survived[testing]))
