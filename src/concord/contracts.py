"""The protocols: what samplers, problems and the loop may ask of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from concord.laws.gaussian import Gaussian

Gradient = Callable[[np.ndarray, np.ndarray], np.ndarray]
BatchGradient = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
GradientAt = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Prox = Callable[[Any, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Stream = Callable[[str], np.random.Generator]


class Problem(Protocol):
    """What samplers and metrics may ask of a problem; f = sum_i f_i is -log posterior + const.

    Arrays ``x`` have shape (chains, agents, dim); agent i is evaluated at its own x_i.
    """

    agents: int
    dim: int
    counts: np.ndarray  # (agents,) points of each agent
    posterior: Gaussian | None  # exact posterior where it is Gaussian

    def from_chain(self, first: int) -> Problem:
        """Return the problem whose chain 0 is this one's chain ``first``.

        Chains are sampled in blocks, of which each sees its own problem; one whose chains have the
        same data returns itself.
        """

    def gradient(self, chains: int) -> Gradient:
        """Return ``g(x, out)``: the full gradient of f_i at x_i, with buffers for ``chains``."""

    def batch_gradient(self, chains: int, batch_size: int) -> BatchGradient:
        """Return ``g(x, rows, out)``: the estimate from points ``rows`` (chains, agents, batch)."""

    def prox(self, chains: int, curvature: np.ndarray) -> Prox:
        r"""Return ``solve(agent, linear, start, out)``, for samplers with a proximal step.

        It writes the x with grad f_i(x) + c_i x = b: ``curvature`` is c, (agents,), and ``linear``
        is b, (chains, agents, dim) with ``agent = slice(None)``, or (chains, dim) for one agent.
        ``linear`` may be overwritten; ``start`` is a guess for iterative solvers.
        """

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents)."""


class Info(NamedTuple):
    """Diagnostics of one step.

    unicasts, broadcasts: vectors of length dim that each agent sends, (agents,) or (chains,
    agents), counted once for every neighbor that needs one (the price where links join pairs), or
    once for all neighbors that hear the same one (the price on the air). Both are what the
    equations need; an option that is some code's slip sends no more for it.
    active: one for agents that moved, zero for others, (chains, agents); None: all moved.
    """

    unicasts: np.ndarray
    broadcasts: np.ndarray
    active: np.ndarray | None = None


Step = Callable[[Any, int, np.random.Generator], tuple[Any, Info]]
