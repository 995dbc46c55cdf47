r"""The mean of points that 20 clients hold, drawn as the released code draws them.

.. math::
    y_j^i \sim N(m_i, I), \qquad m_i \sim N(0, s^2 I), \qquad
    f_i(x) = \tfrac12 \sum_j \lVert y_j^i - x \rVert^2

Clients hold 10 to 199 points each. numpy's old generator with the code's seed, 42, makes the code's
own points. A single agent holds all clients' points.
"""

from typing import Annotated

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Count, NonNegative, Options
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampling.partition import Partition
from concord_studies.contracts import ProblemDeclaration


class Params(Options):
    """Options of the clients' points."""

    clients: Annotated[Count, "number of clients"] = 20
    dim: Annotated[Count, "dimension d"] = 50
    spread: Annotated[NonNegative, "standard deviation s by which clients' means differ"] = 5.0
    seed: Annotated[Count, "seed of the draw; 42 is the code's"] = 42


DECLARES = ProblemDeclaration(name="Means of clients")


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError unless there is an agent for each client, or one for all."""
    if agents not in (1, params.clients):
        raise ConcordError(f"agents: give {params.clients}, one for each client, or 1 for all")


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> QuadraticProblem:
    """Draw the clients' points one after another, and keep their numbers and sums."""
    rng = np.random.RandomState(params.seed)
    counts = rng.randint(10, 200, params.clients)
    sums = np.empty((params.clients, params.dim))
    for client, count in enumerate(counts):
        mean = rng.normal(np.zeros(params.dim), params.spread)
        sums[client] = rng.normal(mean, 1.0, (count, params.dim)).sum(axis=0)
    if agents == 1:
        counts, sums = counts.sum(keepdims=True), sums.sum(axis=0, keepdims=True)
    return QuadraticProblem(counts[:, None, None] * np.eye(params.dim), sums)
