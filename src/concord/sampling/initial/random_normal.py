"""x_i^(0) ~ N(mean, A A^T), with entries of A drawn once from U(0, high).

Source: tzikas2024, section 6.2.4.
"""

from typing import Annotated

import numpy as np

from concord import streams
from concord.errors import ConcordError
from concord.options import Index, Options, Positive
from concord.problem import Problem
from concord.sampling.initial import Moments, Shape


class Params(Options):
    """Mean of the normal law, and the law of the random factor A of its covariance."""

    mean: Annotated[tuple[float, ...], "mean, one number per coordinate"]
    high: Annotated[Positive, "upper end of the law of A's entries"] = 10.0
    seed: Annotated[Index, "seed of A"] = 0


def draw(params: Params, problem: Problem, shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Return initial positions (chains, agents, dim) from N(mean, cov) with a random covariance."""
    factor = _draw_factor(params, shape[-1])
    return np.array(params.mean) + rng.standard_normal(shape) @ factor.T


def moments(params: Params, dim: int) -> Moments:
    """Return mean (dim,) and covariance (dim, dim) of one agent."""
    factor = _draw_factor(params, dim)
    return np.array(params.mean), factor @ factor.T


def _draw_factor(params: Params, dim: int) -> np.ndarray:
    """Draw a factor (dim, dim) of the covariance, with entries uniform on [0, high].

    A ConcordError for a mean that has not dim entries.
    """
    if len(params.mean) != dim:
        raise ConcordError(
            f"initial.mean: {list(params.mean)} has {len(params.mean)} entries for {dim} "
            "coordinates; give one for each coordinate"
        )
    return streams.generator(params.seed, "factor").uniform(0, params.high, (dim, dim))
