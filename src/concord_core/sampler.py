r"""Samplers: algorithms by which agents draw one posterior together.

A sampler is a frozen dataclass of its options with three methods. ``check`` refuses what it cannot
do; ``init`` makes the state at x^(0); ``step`` is one iteration, a pure function that returns new
arrays and reads like the equation in the module's docstring. The step sends through the network and
asks the problem for gradients, which count what that costs; it draws random numbers from ``rng``
alone. Gradients are taken before noise is drawn, since mini-batches share the generator.

A state is a ``NamedTuple`` of arrays, positions x of shape (chains, agents, dim) first. Whatever
lasts from step to step is in it, or in the network.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from concord_core.networks.network import Network


class Positions(NamedTuple):
    """The state of a sampler that keeps positions x alone, (chains, agents, dim)."""

    x: np.ndarray


@runtime_checkable
class Sampler(Protocol):
    """An algorithm of decentralized sampling.

    name: what readers call it, such as "DE-SGLD".
    """

    name: ClassVar[str]

    def check(self, problem: Any, network: Network) -> None:
        """Refuse an unsuited problem or network with a ConcordError."""

    def init(self, x0: np.ndarray, problem: Any, network: Network, rng: np.random.Generator) -> Any:
        """Return the state at x0, (chains, agents, dim)."""

    def step(
        self, state: Any, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> Any:
        """Return the state after iteration k, which begins at 0."""


@runtime_checkable
class ReadOut(Protocol):
    """A sampler whose answer is not the x of its state, but something made of the state."""

    def read(self, state: Any) -> np.ndarray:
        """Return the agents' answers, (chains, agents, dim)."""


def langevin_noise(rng: np.random.Generator, step_size: float, like: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sqrt{2 \eta}\, w` with w ~ N(0, I), an array of the shape and type of like."""
    return np.sqrt(2 * step_size) * rng.standard_normal(like.shape, dtype=like.dtype.type)
