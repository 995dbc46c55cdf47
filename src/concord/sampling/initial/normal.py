"""x_i^(0) ~ N(mean, diag(sd^2)), independent over chains and agents."""

from typing import Annotated

import numpy as np

from concord.errors import ConcordError
from concord.options import NonNegative, Options
from concord.problem import Problem
from concord.sampling.initial import Moments, Shape


class Params(Options):
    """Mean and standard deviation of the normal law of each coordinate."""

    mean: Annotated[float, "mean of every coordinate"] = 0.0
    sd: Annotated[
        NonNegative | tuple[NonNegative, ...],
        "standard deviation of every coordinate, or a list with one for each",
    ] = 1.0


def draw(params: Params, problem: Problem, shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Return initial positions (chains, agents, dim) from independent normal laws."""
    return params.mean + _sd(params, shape[-1]) * rng.standard_normal(shape)


def moments(params: Params, dim: int) -> Moments:
    """Return mean (dim,) and covariance (dim, dim) of one agent."""
    return np.full(dim, params.mean), np.diag(_sd(params, dim) ** 2)


def _sd(params: Params, dim: int) -> np.ndarray:
    """Return each coordinate's standard deviation, (dim,); refuse another number of entries."""
    if not isinstance(params.sd, float) and len(params.sd) != dim:
        raise ConcordError(
            f"initial.sd: {list(params.sd)} has {len(params.sd)} entries for {dim} coordinates; "
            "give one number, or one for each coordinate"
        )
    return np.broadcast_to(np.asarray(params.sd, dtype=float), (dim,))
