"""Laws of the initial positions x^(0), the same draws for every sampler and topology."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from concord.contracts import Problem, WithInitial, dtype_of
from concord.errors import ConcordError
from concord.options import Index, Kind, NonNegative, Positive
from concord.sampling import streams


class Normal(Kind):
    """x_i^(0) ~ N(mean, diag(sd^2)), independent over chains and agents."""

    mean: Annotated[float, "mean of every coordinate"] = 0.0
    sd: Annotated[
        NonNegative | tuple[NonNegative, ...],
        "standard deviation of every coordinate, or a list with one for each",
    ] = 1.0

    def draw(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Return initial positions of shape (chains, agents, dim)."""
        return self.mean + self._sd(shape[-1]) * rng.standard_normal(shape)

    def moments(self, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (dim,) and covariance (dim, dim) of one agent."""
        return np.full(dim, self.mean), np.diag(self._sd(dim) ** 2)

    def _sd(self, dim: int) -> np.ndarray:
        if not isinstance(self.sd, float) and len(self.sd) != dim:
            raise ConcordError(
                f"initial.sd: {list(self.sd)} has {len(self.sd)} entries for {dim} coordinates; "
                "give one number, or one for each coordinate"
            )
        return np.broadcast_to(np.asarray(self.sd, dtype=float), (dim,))


class Laplace(Kind):
    """Every coordinate of x_i^(0) ~ Laplace(mean, scale), independent over chains and agents."""

    mean: Annotated[float, "mean of every coordinate"] = 0.0
    scale: Annotated[NonNegative, "scale b of the density exp(-|x - mean| / b) / 2b"] = 1.0

    def draw(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Return initial positions of shape (chains, agents, dim)."""
        return rng.laplace(self.mean, self.scale, shape)

    def moments(self, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (dim,) and covariance (dim, dim) of one agent."""
        return np.full(dim, self.mean), 2 * self.scale**2 * np.eye(dim)


class RandomNormal(Kind):
    """x_i^(0) ~ N(mean, A A^T), with entries of A drawn once from U(0, high).

    Source: tzikas2024, section 6.2.4.
    """

    mean: Annotated[tuple[float, ...], "mean, one number per coordinate"]
    high: Annotated[Positive, "upper end of the law of A's entries"] = 10.0
    seed: Annotated[Index, "seed of A"] = 0

    def draw(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Return initial positions of shape (chains, agents, dim)."""
        factor = self._factor(shape[-1])
        return np.array(self.mean) + rng.standard_normal(shape) @ factor.T

    def moments(self, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (dim,) and covariance (dim, dim) of one agent."""
        factor = self._factor(dim)
        return np.array(self.mean), factor @ factor.T

    def _factor(self, dim: int) -> np.ndarray:
        if len(self.mean) != dim:
            raise ConcordError(
                f"initial.mean: {list(self.mean)} has {len(self.mean)} entries for {dim} "
                "coordinates; give one for each coordinate"
            )
        return streams.generator(self.seed, "factor").uniform(0, self.high, (dim, dim))


class OfProblem(Kind, tag="problem"):
    """The law that the problem states, ``initial(shape, rng)``."""


Law = Normal | Laplace | RandomNormal | OfProblem


def positions(
    law: Law, problem: Problem, shape: tuple[int, int, int], rng: np.random.Generator
) -> np.ndarray:
    """Return x^(0), (chains, agents, dim), float64 unless the problem declares another dtype."""
    if not isinstance(law, OfProblem):
        x0 = law.draw(shape, rng)
    elif isinstance(problem, WithInitial):
        x0 = problem.initial(shape, rng)
    else:
        raise ConcordError(
            f"initial.kind: {type(problem).__name__} states no law of initial positions; "
            "choose kind normal"
        )
    return x0.astype(dtype_of(problem), copy=False)
