"""The samplers that are found, and with which options and problems they are tested."""

from typing import Any

import numpy as np

import concord
from concord import plugins
from concord.networks.matrix import AgentMatrix
from concord.testing.variants import (
    CONSTANT,
    DECAYING,
    GRAPHS,
    Quiet,
    Still,
    allowed,
    options,
    problem,
    variants,
)

__all__ = [
    "CONSTANT",
    "DECAYING",
    "GRAPHS",
    "Quiet",
    "Still",
    "allowed",
    "options",
    "problem",
    "variants",
]


def from_dense(matrix: np.ndarray) -> AgentMatrix:
    places = np.nonzero(matrix)
    return AgentMatrix.from_entries(len(matrix), *places, matrix[places])


def tilted(agents: int, dim: int, equal: bool = False) -> Any:
    """Return a quadratic problem with unequal agents; with equal Hessians if they should be."""
    rng = np.random.default_rng(8)
    root = rng.standard_normal((agents, dim, dim)) / 2
    gram = root @ root.swapaxes(1, 2) + 0.3 * np.eye(dim)
    shift = rng.standard_normal((agents, dim))
    return concord.problems.quadratic(gram[[0] * agents] if equal else gram, shift)


SAMPLERS = {kind: plugins.plugin("samplers", kind, "tests") for kind in plugins.kinds("samplers")}
EXACT = {kind: module for kind, module in SAMPLERS.items() if hasattr(module, "affine")}


class Scaled:
    """A generator whose normal numbers are too large by a factor."""

    def __init__(self, rng: np.random.Generator, factor: float) -> None:
        self._rng, self._factor = rng, factor

    def standard_normal(self, size: Any = None, dtype: Any = float, out: Any = None) -> np.ndarray:
        values = self._rng.standard_normal(size, dtype, out)
        values *= self._factor
        return values

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rng, name)
