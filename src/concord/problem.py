r"""Problems: posteriors that are split over agents, and the protocols that samplers ask of them.

Agent i holds the potential :math:`f_i`: the negative log likelihood of its data and its share of
the negative log prior. The target is :math:`\pi \propto \exp(-\sum_i f_i)`. Arrays x have shape
(chains, agents, dim), and :math:`f_i` is evaluated at agent i's own position :math:`x_i`.

``Problem`` is the protocol of all problems. Further abilities are protocols of their own, or
methods that ``CountedProblem`` has, too; samplers refuse problems without those that they need
(``concord.needs``).
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from concord.errors import ConcordError, short

Agents = np.ndarray | slice  # numbers of agents, or all of them
ALL = slice(None)
Cost = np.ndarray | int  # in gradients, of each agent or of all alike


@runtime_checkable
class Problem(Protocol):
    """A posterior pi proportional to exp(-sum_i f_i(x)), where agent i alone knows f_i.

    agents, dim: how many agents there are, and how many coordinates each x_i has.

    A problem may have a mask ``local``, (dim,), of coordinates that belong to the agent who holds
    them (``concord.local_coordinates``).

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
        """Return the exact posterior if it is Gaussian (``laws.gaussian.Gaussian``), else None."""

    def from_chain(self, first: int) -> Problem:
        """Return the problem that a block of chains samples, which begins at chain ``first``.

        Chain 0 of the returned problem is chain ``first`` of this one. A problem whose chains all
        have the same data returns itself.
        """

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient grad f_i(x_i) of each agent i, (chains, agents, dim)."""


@runtime_checkable
class Quadratic(Protocol):
    r"""A problem with quadratic potentials :math:`f_i(x) = x^\top H_i x / 2 - b_i^\top x`.

    On it affine samplers have exact laws. gram: H_i, (agents, dim, dim). shift: b_i, (agents, dim).
    """

    agents: int
    dim: int
    gram: np.ndarray
    shift: np.ndarray


@runtime_checkable
class WithMiniBatches(Protocol):
    """A problem whose potentials are sums over points, so that mini-batches can be drawn.

    counts: how many points each agent has, (agents,).
    """

    counts: np.ndarray

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return unbiased estimates of grad f_i(x_i) from mini-batches, (chains, agents, dim).

        rows: the points of the mini-batches, (chains, agents, batch), as numbers from 0 to
        counts[i] - 1 among agent i's own points. The likelihood's gradient is scaled by counts[i] /
        batch, the prior's is exact.

        A problem may also have ``prior_gradient(x)``, the prior's gradient alone, and
        ``batch_gradient_of(agents, x, rows)``, the estimates of a few agents.
        """


@runtime_checkable
class WithPotential(Protocol):
    """A problem that evaluates its potentials, for samplers that accept or reject moves."""

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i) up to a constant that does not depend on x, (chains, agents)."""


def local_of(problem: object) -> np.ndarray | None:
    """Return the mask (dim,) of a problem's local coordinates; None where all are shared."""
    local: np.ndarray | None = getattr(problem, "local", None)
    return local


class CountedProblem:
    """A problem that counts the gradients that a sampler evaluates.

    gradients: how many each agent has evaluated in this iteration, a number or (chains, agents). A
    product with a Hessian counts as two gradients, a minimizer as those of its solver.

    total: how many each agent has evaluated in all iterations before, (agents,) or (chains,
    agents).
    """

    problem: Any = None  # of a copy that is not filled yet

    def __init__(self, problem: Any, chains: int) -> None:
        self.problem = problem
        self.gradients: Cost = 0
        self.total: np.ndarray = np.zeros(problem.agents, dtype=np.int64)
        self._chain = np.arange(chains)[:, None]
        # Of the class: mini-batches hand on what their problem has, but not its full gradients.
        self._chooses = hasattr(type(problem), "gradient_of")

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the problem whose gradients are counted."""
        return getattr(self.problem, name)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return grad f_i(x_i), (chains, agents, dim), and count one gradient of each agent."""
        self.pay(1)
        return self.problem.gradient(x)

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradients of chosen agents, (chains, few, dim), and count one of each.

        agents: numbers of the agents, (chains, few), or (few,) where all chains choose the same. x:
        their positions, (chains, few, dim).
        """
        counted = np.zeros((*agents.shape[:-1], self.problem.agents), dtype=np.int64)
        counted[agents if agents.ndim == 1 else (self._chain, agents)] = 1
        self.pay(counted)
        if self._chooses:
            return self.problem.gradient_of(agents, x)
        everyone = np.zeros((len(x), self.problem.agents, self.problem.dim))
        everyone[self._chain, agents] = x
        return self.problem.gradient(everyone)[self._chain, agents]

    def full_gradient(self, x: np.ndarray, chains: np.ndarray | None = None) -> np.ndarray:
        """Return gradients over all points, and count their cost; mini-batches are left out.

        x: positions, (chains, agents, dim). The cost is 1, or ``full_cost`` of the problem in units
        of a mini-batch. chains: which chains are charged, a mask (chains,); None: all.
        """
        cost = getattr(self.problem, "full_cost", 1)
        self.pay(cost if chains is None else chains[:, None] * cost)
        full = getattr(self.problem, "full_gradient", self.problem.gradient)
        return full(x)

    def difference(self, x: np.ndarray, reference: np.ndarray) -> np.ndarray:
        """Return grad f_i(x_i) - grad f_i(reference_i), and count two gradients of each agent.

        x, reference: (chains, agents, dim). Both gradients are of the same mini-batch.
        """
        self.pay(2)
        return self.problem.difference(x, reference)

    def reduced_gradient(
        self, x: np.ndarray, reference: np.ndarray, control: np.ndarray
    ) -> np.ndarray:
        """Return estimates of grad f_i(x_i) with control variates, and count what they take.

        x, reference, control: (chains, agents, dim). The estimate is the ``difference`` from the
        gradient at the reference, plus the control, which is mostly the full gradient there. With
        an empty reference it is the gradient plus the control, and an empty control adds nothing.
        """
        estimate = self.difference(x, reference) if reference.size else self.gradient(x)
        return estimate + control if control.size else estimate

    def minimize(
        self, linear: np.ndarray, curvature: np.ndarray, start: np.ndarray, agents: Agents = ALL
    ) -> tuple[np.ndarray, Cost]:
        r"""Return the x_i that solve :math:`\nabla f_i(x_i) + c_i x_i = b_i`, and count their cost.

        linear: b, (chains, few, dim). curvature: c of all agents, (agents,). start: a guess of the
        solution, (chains, few, dim), for solvers that iterate. agents: numbers of the few agents,
        (few,); by default all. The cost, which is returned too, is in gradients of an agent: 1 of a
        closed form, else (chains, few). Where b is not finite, x is not a number.
        """
        x, cost = self.problem.minimize(linear, curvature, start, agents)
        counted = np.zeros((*np.shape(cost)[:-1], self.problem.agents), dtype=np.int64)
        counted[..., agents] = cost
        self.pay(counted)
        return x, cost

    def hessian_product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the products of the Hessian of f_i at x_i with v_i, and count two gradients.

        x, v: positions and vectors, both (chains, agents, dim), as are the products.
        """
        self.pay(2)
        return self.problem.hessian_product(x, v)

    def pay(self, gradients: Cost) -> None:
        """Add a number of gradients to the count of each agent, as the price of other work.

        An exact draw from a law is such work. gradients: a number, or (chains, agents).
        """
        self.gradients = self.gradients + gradients

    def take(self) -> Cost:
        """Return the gradients counted in this iteration, and set the count to zero."""
        counted, self.gradients = self.gradients, 0
        return counted

    def close_count(self, awake: np.ndarray | None) -> Cost:
        """Add the numbers of gradients of this iteration to ``total``, and return those numbers.

        awake: which agents are charged, a mask (chains, agents); None: all. The count starts again
        at 0. The numbers are 0, where no agent computed any, (agents,) or (chains, agents).
        """
        counted = self.take()
        if awake is not None:
            counted = counted * awake
        self.total = self.total + counted
        return counted


def require_problem(problem: object) -> Problem:
    """Return a problem, and raise a ConcordError for an object that is none."""
    if not isinstance(problem, Problem):
        raise ConcordError(
            f"problem: {short(problem)} is no problem; make one with concord.Problem or "
            "concord.problems"
        )
    return problem
