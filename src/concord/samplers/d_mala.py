r"""D-MALA: Langevin steps along tracked gradients, which each agent accepts or not.

.. math::
    \hat g_i^{(k)} &= \sum_j W_{ij} \bigl( \hat g_j^{(k-1)} + g_j^{(k)} - g_j^{(k-1)} \bigr),
        \qquad g_j^{(k)} = -\nabla f_j(x_j^{(k)}), \qquad \hat g^{(-1)} = g^{(-1)} = 0 \\
    x_i' &= x_i^{(k)} + \epsilon z_i + c\, \epsilon^2 \hat g_i^{(k)}, \qquad z_i \sim N(0, I) \\
    x_i^{(k+1)} &= \sum_j W_{ij} \tilde x_j, \qquad
        \tilde x_j = x_j' \text{ with probability } \min(1, e^{a_j}), \text{ else } x_j^{(k)}

with c = 1 (``drift: whole``) or 1/2 (``half``). Tracked like the gradients are the average
aleph_i of all agents' z_j^T H_j z_j, or v_i of all H_j (x_j' - x_j), with H_j the Hessian of f_j
at x_j, and ``correction`` is one of

``none``
    every move is accepted;
``released``
    :math:`a_i = -\tfrac12 \epsilon^2 (\aleph_i + \lVert \hat g_i \rVert^2)`, with the whole drift;
``energy``
    :math:`a_i = -\tfrac12 \epsilon^2 (\aleph_i - \lVert \hat g_i \rVert^2)`, less the change of the
    energy :math:`U(x) + \lVert z \rVert^2 / 2`, to second order, in the move with the whole drift;
``mala``
    :math:`a_i = \tfrac18 \epsilon^2 (2 \hat g_i^\top v_i - \lVert v_i \rVert^2)`, with half the
    drift: for one agent and quadratic f the acceptance of MALA, so that the posterior is sampled
    exactly, whatever epsilon.

The noise of a step has the variance epsilon^2, so that half the drift is that of Langevin for the
posterior: with the whole drift the posterior's square is sampled as epsilon gets small, corrected
or not, since rejections vanish with epsilon and depend on z^2 alone (derived here). With several
agents no correction is exact: each accepts by itself. Arrays have shape (chains, agents, dim).

Source: Kungurtsev, Cobb, Javidi and Jalaian, "Decentralized Bayesian learning with
Metropolis-adjusted Hamiltonian Monte Carlo" (2021, arXiv:2107.07211), from its authors' released
code: ``drift: whole, correction: released``. The print was not at hand, and whether it has the sign
of ``energy`` we do not know; ``half`` and ``mala`` are ours.
Price: a gradient of every agent, and with a correction a product with its Hessian (two gradients);
x and the gradients to every neighbor, with ``mala`` a third vector, with the others a number.
Needs: a connected network, or no edges, on which everything arrives; Hessians for corrections.
"""

from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.random import Generator

from concord.errors import ConcordError
from concord.needs import Needs, refuse_local, require
from concord.networks.network import Network
from concord.networks.weights import Weights
from concord.problem import CountedProblem, Problem
from concord.sampler import FullGradientSampler, track_average
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Positions x, and rests of tracked averages (``track_average``), (chains, agents, dim).

    rest: of the gradients. remainder: of what the correction tracks, which may be a number,
    (chains, agents, 1); empty without a correction.
    """

    x: np.ndarray
    rest: np.ndarray
    remainder: np.ndarray


class DMALA(FullGradientSampler[State]):
    """D-MALA with standard deviation epsilon of a step's noise, and mixing weights W."""

    name: ClassVar[str] = "D-MALA"
    needs: ClassVar[Needs] = Needs("mixing", arrival="tracks what all neighbors have")
    units: ClassVar[dict[str, int]] = {"step_size": 1}

    step_size: Annotated[Schedule, "epsilon_k, the standard deviation of a step's noise"]
    drift: Annotated[
        Literal["half", "whole"],
        "weight of the gradients over epsilon^2: 1/2, as in Langevin steps, or 1, as released code",
    ]
    correction: Annotated[
        Literal["none", "mala", "energy", "released"],
        "rule by which moves are accepted, mala with drift: half, and energy and released (the "
        "sign of released code) with drift: whole; without a rule all are",
    ]
    weights: Weights = "metropolis"

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse a correction that does not fit the drift, or that lacks Hessians."""
        super().check(problem, network)
        fitting = {"none": self.drift, "mala": "half"}.get(self.correction, "whole")
        if self.drift != fitting:
            raise ConcordError(
                f"correction: {self.correction} needs drift: {fitting}; use it, or correction: none"
            )
        if self.correction != "none":
            require(problem, "hessian_product", "use correction: none")
            refuse_local(
                problem, "D-MALA accepts moves of all coordinates by one number that is sent"
            )

    def init(self, x0: np.ndarray, problem: Problem, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim), with tracked averages zero."""
        width = {"none": 0, "mala": x0.shape[-1]}.get(self.correction, 1)
        return State(x0, np.zeros_like(x0), np.zeros_like(x0[..., :1].repeat(width, -1)))

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Track the average gradient, propose moves along it, accept or reject them, and mix."""
        (x, rest, remainder), epsilon = state, self.step_size(k)
        tracked, rest = track_average(network, self.weights, -problem.gradient(x), rest)
        z = rng.standard_normal(x.shape, dtype=x.dtype.type)
        move = epsilon * z + {"half": 0.5, "whole": 1.0}[self.drift] * epsilon**2 * tracked
        if self.correction == "mala":
            v, remainder = track_average(
                network, self.weights, problem.hessian_product(x, move), remainder
            )
            log_odds = epsilon**2 / 8 * ((2 * tracked - v) * v).sum(axis=-1)
        elif self.correction != "none":
            curvature = (z * problem.hessian_product(x, z)).sum(axis=-1, keepdims=True)
            aleph, remainder = track_average(network, self.weights, curvature, remainder)
            sign = 1 if self.correction == "energy" else -1
            log_odds = epsilon**2 / 2 * (sign * (tracked**2).sum(axis=-1) - aleph[..., 0])
        if self.correction != "none":
            accepted = rng.random(x.shape[:2]) < np.exp(np.minimum(log_odds, 0.0))
            move = np.where(accepted[..., None], move, 0.0)
        return State(network.mix(self.weights, x + move), rest, remainder)
