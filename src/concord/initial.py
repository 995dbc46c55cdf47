"""Laws of the initial positions x^(0), the same draws for every sampler and topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from concord.errors import ConcordError, nearest
from concord.parameters import build, param


@dataclass(frozen=True)
class Normal:
    """x_i^(0) ~ N(mean, diag(sd^2)), independent over chains and agents."""

    mean: float = param("mean of every coordinate", default=0.0)
    sd: float | tuple[float, ...] = param(
        "standard deviation of every coordinate, or a list with one for each",
        default=1.0,
        minimum=0,
    )

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


@dataclass(frozen=True)
class Laplace:
    """Every coordinate of x_i^(0) ~ Laplace(mean, scale), independent over chains and agents."""

    mean: float = param("mean of every coordinate", default=0.0)
    scale: float = param("scale b of the density exp(-|x - mean| / b) / 2b", default=1.0, minimum=0)

    def draw(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Return initial positions of shape (chains, agents, dim)."""
        return rng.laplace(self.mean, self.scale, shape)

    def moments(self, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (dim,) and covariance (dim, dim) of one agent."""
        return np.full(dim, self.mean), 2 * self.scale**2 * np.eye(dim)


@dataclass(frozen=True)
class OfProblem:
    """The law that the problem states, ``initial(shape, rng)``."""


Law = Normal | Laplace | OfProblem
KINDS: dict[str, type[Normal] | type[Laplace] | type[OfProblem]] = {
    "normal": Normal,
    "laplace": Laplace,
    "problem": OfProblem,
}


def positions(
    law: Law, problem: Any, shape: tuple[int, int, int], rng: np.random.Generator
) -> np.ndarray:
    """Return x^(0), (chains, agents, dim), float64 unless the problem declares another dtype."""
    if not isinstance(law, OfProblem):
        x0 = law.draw(shape, rng)
    elif hasattr(problem, "initial"):
        x0 = problem.initial(shape, rng)
    else:
        raise ConcordError(
            f"initial.kind: {type(problem).__name__} states no law of initial positions; "
            "choose kind normal"
        )
    return x0.astype(getattr(problem, "dtype", np.float64), copy=False)


def parse(mapping: Mapping[str, Any], where: str) -> Law:
    """Return the law that ``{kind: ..., options}`` describes."""
    options = dict(mapping) if isinstance(mapping, Mapping) else {}
    kind = options.pop("kind", None)
    if kind not in KINDS:
        raise ConcordError(f"{where}.kind: there is no law {kind!r}; {nearest(kind, KINDS)}")
    return build(KINDS[kind], options, where)
