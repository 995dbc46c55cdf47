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
    """x_i^(0) ~ N(mean, sd^2 I), independent over chains and agents."""

    mean: float = param("mean of every coordinate", default=0.0)
    sd: float = param("standard deviation of every coordinate", default=1.0, minimum=0)

    def draw(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Return initial positions of shape (chains, agents, dim)."""
        return self.mean + self.sd * rng.standard_normal(shape)

    def moments(self, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (dim,) and covariance (dim, dim) of one agent."""
        return np.full(dim, self.mean), self.sd**2 * np.eye(dim)


KINDS = {"normal": Normal}


def parse(mapping: Mapping[str, Any], where: str) -> Normal:
    """Return the law that ``{kind: ..., options}`` describes."""
    options = dict(mapping) if isinstance(mapping, Mapping) else {}
    kind = options.pop("kind", None)
    if kind not in KINDS:
        raise ConcordError(f"{where}.kind: there is no law {kind!r}; {nearest(kind, KINDS)}")
    return build(KINDS[kind], options, where)
