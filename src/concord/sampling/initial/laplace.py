"""Every coordinate of x_i^(0) ~ Laplace(mean, scale), independent over chains and agents."""

from typing import Annotated

import numpy as np

from concord.options import NonNegative, Options
from concord.problem import Problem
from concord.sampling.initial import Moments, Shape


class Params(Options):
    """Mean and scale of the Laplace law of each coordinate."""

    mean: Annotated[float, "mean of every coordinate"] = 0.0
    scale: Annotated[NonNegative, "scale b of the density exp(-|x - mean| / b) / 2b"] = 1.0


def draw(params: Params, problem: Problem, shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Return initial positions (chains, agents, dim) from independent Laplace laws."""
    return rng.laplace(params.mean, params.scale, shape)


def moments(params: Params, dim: int) -> Moments:
    """Return mean (dim,) and covariance (dim, dim) of one agent."""
    return np.full(dim, params.mean), 2 * params.scale**2 * np.eye(dim)
