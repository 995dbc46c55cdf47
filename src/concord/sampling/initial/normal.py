"""x_i^(0) ~ N(mean, diag(sd^2)), independent over chains and agents."""

from typing import Annotated

import numpy as np

from concord.errors import ConcordError
from concord.options import NonNegative, Options
from concord.problem import Problem
from concord.sampling.initial import Moments, Shape


class Params(Options):
    """Mean and standard deviation of the normal law of each coordinate."""

    mean: Annotated[
        float | tuple[float, ...], "mean of every coordinate, or a list with one for each"
    ] = 0.0
    sd: Annotated[
        NonNegative | tuple[NonNegative, ...],
        "standard deviation of every coordinate, or a list with one for each",
    ] = 1.0


def draw(params: Params, problem: Problem, shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Return initial positions (chains, agents, dim) from independent normal laws."""
    mean, sd = (_read(params, name, shape[-1]) for name in ("mean", "sd"))
    return mean + sd * rng.standard_normal(shape)


def moments(params: Params, dim: int) -> Moments:
    """Return mean (dim,) and covariance (dim, dim) of one agent."""
    return _read(params, "mean", dim), np.diag(_read(params, "sd", dim) ** 2)


def _read(params: Params, name: str, dim: int) -> np.ndarray:
    """Return an option's number for each coordinate, (dim,); refuse another number of entries."""
    stated = getattr(params, name)
    if not isinstance(stated, float) and len(stated) != dim:
        raise ConcordError(
            f"initial.{name}: {list(stated)} has {len(stated)} entries for {dim} coordinates; "
            "give one number, or one for each coordinate"
        )
    return np.broadcast_to(np.asarray(stated, dtype=float), (dim,))
