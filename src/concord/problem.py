r"""Problems: posteriors that are split over agents.

Agent i holds the potential :math:`f_i`, its data's negative log likelihood and its share of the
prior's; together they want :math:`\exp(-\sum_i f_i)`. Arrays x have shape (chains, agents, dim),
and agent i is evaluated at its own :math:`x_i`.

What a problem may offer beyond ``Problem`` is a small protocol each: whoever needs it asks
``isinstance(problem, Quadratic)`` where it prepares, never within a step, and refuses in one
sentence. ``isinstance`` sees whether the members exist, not what they are.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Problem(Protocol):
    """A posterior split over agents.

    agents, dim: how many agents there are, and how many coordinates each x_i has.

    Examples
    --------
    >>> import concord, numpy as np
    >>> problem = concord.problems.gaussian(agents=4, dim=3)
    >>> x = np.zeros((100, 4, 3))
    >>> problem.gradient(x).shape
    (100, 4, 3)
    """

    agents: int
    dim: int

    @property
    def posterior(self) -> Any:
        """The exact posterior where it is Gaussian (``laws.gaussian.Gaussian``), else None."""

    def from_chain(self, first: int) -> Problem:
        """Return the problem whose chain 0 is this one's chain ``first``.

        Chains are sampled in blocks, of which each sees its own problem; one whose chains have the
        same data returns itself.
        """

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradients of f_i at x_i, (chains, agents, dim)."""


@runtime_checkable
class Quadratic(Protocol):
    r"""Potentials :math:`f_i(x) = x^\top H_i x / 2 - b_i^\top x`: affine samplers have laws.

    gram, shift: H_i, (agents, dim, dim), and b_i, (agents, dim).
    """

    agents: int
    dim: int
    gram: np.ndarray
    shift: np.ndarray


@runtime_checkable
class ChosenAgents(Protocol):
    """Gradients of a few agents, for samplers that move few at a time."""

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradients of these agents, (chains, few), at x, (chains, few, dim).

        agents: of each chain, or (few,), the same ones of all chains.
        """


@runtime_checkable
class Proximal(Protocol):
    """Minimizers of a potential plus a quadratic form.

    What depends on the curvature alone, such as an inverse, is kept for the last one.
    """

    def minimize(
        self, linear: np.ndarray, curvature: np.ndarray, start: np.ndarray
    ) -> tuple[np.ndarray, Any]:
        r"""Return the x_i at which :math:`\nabla f_i(x) + c_i x = b_i`, and what that has cost.

        linear: b, (chains, agents, dim). curvature: c, (agents,). start: a guess, for solvers that
        iterate. The cost is in gradients of an agent: 1 of a closed form, else (chains, agents).
        Where b is not finite, x is not a number.
        """

    def minimize_one(
        self, agent: int, linear: np.ndarray, curvature: np.ndarray, start: np.ndarray
    ) -> tuple[np.ndarray, Any]:
        """Return x and cost of one agent alone, (chains, dim) and 1 or (chains,).

        linear, start: of this agent, (chains, dim). curvature: of all agents, as of ``minimize``.
        """


@runtime_checkable
class Batched(Protocol):
    """Potentials that are sums over points, of which mini-batches can be drawn.

    counts: how many points each agent has, (agents,).
    """

    counts: np.ndarray

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return gradients estimated from the points ``rows``, (chains, agents, batch).

        Rows are numbers of an agent's own points. The likelihood's part is scaled by n_i / batch,
        the prior's is exact: a problem that knows it apart has ``prior_gradient(x)``, too. One that
        has ``batch_gradient_of(agents, x, rows)`` estimates those of a few agents alone.
        """


@runtime_checkable
class WithPotential(Protocol):
    """Values of the potentials, for samplers that accept or reject."""

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i) up to a constant, (chains, agents)."""


@runtime_checkable
class WithHessians(Protocol):
    """Products with the Hessians of the potentials."""

    def hessian_product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the Hessian of f_i at x_i times v_i, (chains, agents, dim)."""


class CountedProblem:
    """A problem that counts the gradients that are asked of it.

    gradients: how many each agent has evaluated in this iteration, a number or (chains, agents). A
    product with a Hessian counts as two, a minimizer as the gradients of its solver.
    total: those of all iterations before, (agents,) or (chains, agents).
    """

    def __init__(self, problem: Any, chains: int) -> None:
        self.problem: Any = problem
        self.gradients: Any = 0
        self.total: Any = np.zeros(problem.agents, dtype=np.int64)
        self._chain = np.arange(chains)[:, None]
        # Of the class: mini-batches hand on what their problem has, but not its full gradients.
        self._chooses = hasattr(type(problem), "gradient_of")

    def __getattr__(self, name: str) -> Any:
        """Return what the problem itself offers."""
        if name == "problem":  # of a copy that has none yet
            raise AttributeError(name)
        return getattr(self.problem, name)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradients of all agents, and count one of each."""
        self.gradients = self.gradients + 1
        gradient: np.ndarray = self.problem.gradient(x)
        return gradient

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradients of some agents, (chains, few, dim), and count one of each.

        agents: of each chain, (chains, few), or of all chains, (few,).
        """
        counted = np.zeros((*agents.shape[:-1], self.problem.agents), dtype=np.int64)
        counted[agents if agents.ndim == 1 else (self._chain, agents)] = 1
        self.gradients = self.gradients + counted
        if self._chooses:
            chosen: np.ndarray = self.problem.gradient_of(agents, x)
            return chosen
        everyone = np.zeros((len(x), self.problem.agents, self.problem.dim))
        everyone[self._chain, agents] = x
        gradient: np.ndarray = self.problem.gradient(everyone)[self._chain, agents]
        return gradient

    def full_gradient(self, x: np.ndarray, chains: np.ndarray | None = None) -> np.ndarray:
        """Return gradients of all points, and count them in mini-batches, if there are any.

        chains: which chains ask, (chains,); None: all.
        """
        cost = getattr(self.problem, "full_cost", 1)
        self.gradients = self.gradients + (cost if chains is None else chains[:, None] * cost)
        full = getattr(self.problem, "full_gradient", self.problem.gradient)
        gradient: np.ndarray = full(x)
        return gradient

    def difference(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Return the gradient at x less that at a reference, of the same points; it counts two."""
        self.gradients = self.gradients + 2
        apart: np.ndarray = self.problem.difference(x, reference)
        return apart

    def minimize(
        self, linear: np.ndarray, curvature: np.ndarray, start: np.ndarray
    ) -> tuple[np.ndarray, Any]:
        """Return what the problem's own ``minimize`` does, and count it."""
        x, cost = self.problem.minimize(linear, curvature, start)
        self.gradients = self.gradients + cost
        return x, cost

    def minimize_one(
        self, agent: int, linear: np.ndarray, curvature: np.ndarray, start: np.ndarray
    ) -> tuple[np.ndarray, Any]:
        """Return what the problem's own ``minimize_one`` does, and count it."""
        x, cost = self.problem.minimize_one(agent, linear, curvature, start)
        counted = np.zeros((*np.shape(cost), self.problem.agents), dtype=np.int64)
        counted[..., agent] = cost
        self.gradients = self.gradients + counted
        return x, cost

    def hessian_product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the Hessians' products with v, and count two gradients of each agent."""
        self.gradients = self.gradients + 2
        product: np.ndarray = self.problem.hessian_product(x, v)
        return product

    def pay(self, gradients: Any) -> None:
        """Count what is worth so many gradients of each agent, such as a draw from its law."""
        self.gradients = self.gradients + gradients

    def take(self) -> Any:
        """Return what has been counted in this iteration, and begin again."""
        counted, self.gradients = self.gradients, 0
        return counted

    def settle(self, awake: np.ndarray | None) -> Any:
        """Add this iteration's gradients of agents that are awake, (chains, agents), to the total.

        Returns them. None: all agents are awake.
        """
        counted = self.take()
        if awake is not None:
            counted = counted * awake
        self.total = self.total + counted
        return counted
