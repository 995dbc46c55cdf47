"""Problems: target posteriors split over agents, one module per kind.

A problem module holds ``Params`` (a frozen dataclass of ``parameters.param`` fields),
``check(params, agents)``, which refuses an impossible combination before anything runs, and
``build(params, agents, partition, stream, resources)``, which draws the data from
``stream("data")`` or loads them from the folder ``resources`` and returns a ``Problem``. If it
reads downloaded data, ``needs(params)`` names the data sets. Modules are found by their file name;
there is no other list of them.

What a problem may have beyond the protocol: ``gradient_at(chains, width)`` returns
``g(x, agents, out)``, the gradients of ``width`` chosen agents of each chain (x and out have shape
(chains, width, dim), agents (chains, width)), for samplers that move few agents at a time; and
``reference``, the exact posterior where it is not Gaussian, with ``sample(count, rng)`` and
``cdf(axis)`` (see ``concord.grid``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from concord.gaussian import Gaussian

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
