r"""The mean of normal laws whose shards differ, with the constants of the theorems on a grid.

.. math::
    p(\theta | x) \propto N(\theta | 0, I) \prod_s \prod_{j = 1}^N N(x_{sj} | \theta, I), \qquad
    x_{sj} \sim N(\mu_s, I), \qquad \mu_s \sim U([-w, w]^2)

A shard's exact surrogate is its likelihood, N(mean(x_s), I/N). Agents' potentials have 1/S of the
prior besides, which cancels in conducive gradients.
"""

from typing import Annotated, Literal

import numpy as np

from concord.contracts import DataSets, Stream
from concord.options import Count, Options, Positive
from concord.sampling.partition import AgentData, Partition
from concord_studies.contracts import ProblemDeclaration
from concord_studies.problems import gaussian_location


class Params(Options):
    """Options of the shards, and of the grid."""

    points: Annotated[Count, "points N of each shard"] = 200
    width: Annotated[Positive, "half the side w of the square of the shards' means"] = 6.0
    grid: Annotated[Positive, "half the side of the square of the constants' grid"] = 6.0
    epsilon: Annotated[
        Literal["mean", "most"], "epsilon_s^2 is of the mean over points, or of the farthest one"
    ] = "mean"
    draws: Annotated[
        Literal["first", "last"], "the update of a visit after which draws are taken"
    ] = "first"


DECLARES = ProblemDeclaration(name="shards of means")
SIDE = 25  # points of the grid along each coordinate


class ShardsOfMeans(gaussian_location.GaussianLocation):
    """The posterior of the mean, with the gradients of points and surrogates.

    grid: places theta, (places, 2). params: the options, which metrics read.
    """

    def __init__(self, points: np.ndarray, params: Params) -> None:
        agents, count, _ = points.shape
        data = AgentData(points, np.zeros((agents, count)), np.full(agents, count))
        super().__init__(data, gaussian_location.Params(prior=1.0))
        axis = np.linspace(-params.grid, params.grid, SIDE)
        self.params = params
        self.grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)

    def point_gradients(self, theta: np.ndarray) -> np.ndarray:
        """Return gradients of the log likelihood of each point, (..., agents, points, 2)."""
        slopes: np.ndarray = self.data.features - theta[..., None, None, :]
        return slopes

    def surrogate_gradients(self, theta: np.ndarray) -> np.ndarray:
        """Return the gradients of the log q_s, exact surrogates, (..., agents, 2)."""
        centers = self.data.features.mean(axis=1)
        slopes: np.ndarray = self.counts[:, None] * (centers - theta[..., None, :])
        return slopes


def check(params: Params, agents: int) -> None:
    """Accept all: any number of agents can have shards."""


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> ShardsOfMeans:
    """Draw the shards' means, and the points of each."""
    means = stream("heterogeneity").uniform(-params.width, params.width, (agents, 2))
    noise = stream("data").standard_normal((agents, params.points, 2))
    return ShardsOfMeans(means[:, None] + noise, params)
