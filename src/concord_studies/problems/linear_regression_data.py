"""Bayesian linear regression on a registered table of points, which says who holds which.

The model is that of ``linear_regression``.

Needs: the registered table.
"""

from typing import Annotated, Literal

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Options, Positive
from concord.problems._regression import PriorShare
from concord.problems.kinds import linear_regression
from concord.problems.kinds.linear_regression import LinearRegression
from concord.sampling.partition import AgentData, Partition
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets.points import Table, read_points, required_tables


class Params(Options):
    """Options of the table, of the noise, and of the prior."""

    table: Table = None
    noise_sd: Annotated[Positive, "standard deviation sigma of the observations"] = 1.0
    prior_variance: Annotated[Positive, "variance v of the prior N(0, v I)"] = 1.0
    prior_share: PriorShare = "split"
    posterior_of: Annotated[
        Literal["all", "held"], "points of the table that the posterior is of: all, or the agents'"
    ] = "all"


DECLARES = ProblemDeclaration(needs=required_tables)


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError without a table, whose points are not known before it is read."""
    if params.table is None:
        raise ConcordError("table: there is none; name a registered one, of points")


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> LinearRegression:
    """Read the points of all agents from the table."""
    features, targets, parts = read_points(str(params.table), data_sets, agents, partition)
    rest = np.setdiff1d(np.arange(len(targets)), np.concatenate(parts))
    beyond = (features[rest], targets[rest]) if params.posterior_of == "all" else None
    model = linear_regression.Params(
        noise_sd=params.noise_sd,
        prior_variance=params.prior_variance,
        prior_share=params.prior_share,
    )
    return LinearRegression(AgentData.from_parts(features, targets, parts), model, beyond)
