r"""D-MALA as its authors' code computes it, with rounds of averaging and a burn-in.

.. math::
    \hat g_i \leftarrow \sum_j W_{ij} \bigl( \hat g_j + g_j^{(k)} - g_j^{(k-1)} \bigr), \qquad
    \aleph_i \leftarrow \sum_j W_{ij} \bigl( \aleph_j + q_j^{(k)} - q_j^{(k-1)} \bigr)
        \qquad \text{R times} \\
    x_i' = x_i^{(k)} + \epsilon z_i + \epsilon^2 \hat g_i, \qquad
    x^{(k+1)} = W^R \tilde x

with :math:`g_j = -\nabla f_j(x_j)`, :math:`q_j = z_j^\top H_j z_j` and H_j the Hessian of f_j at
x_j. Agent i accepts (x-tilde_i = x_i', else x_i) with the probability
:math:`\min(1, \exp(-\tfrac12 \epsilon^2 (\aleph_i + \lVert \hat g_i \rVert^2)))`; in the burn-in it
always does, and aleph is zero again after every step.

Each of the R rounds adds the difference anew, so that the average of the tracked gradients is R
times that of the gradients, if R never changes. As aleph starts from zero after the burn-in, and
q^(k-1) does not, what is tracked then is short by the average of q at the end of the burn-in. With
one round and no burn-in this is ``d_mala`` with ``drift: whole, correction: released``. Arrays have
shape (chains, agents, dim).

Source: the released code of kungurtsev2023.
Price: a gradient of every agent, and, to correct, a product with its Hessian (two gradients); R
times x and the gradients to every neighbor, and to correct R numbers.
Needs: a connected network, or no edges, on which everything arrives and nothing takes time, since
refused moves do not count as moves; to correct, Hessians of the potentials.
"""

from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from concord.errors import ConcordError
from concord.needs import Needs, require
from concord.networks.graph import Graph, Matrix
from concord.networks.network import Network, weighted_sum
from concord.networks.weights import Weights, mixing_matrix
from concord.options import Count, Index, Some
from concord.sampler import FullGradientSampler
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Positions, tracked and own gradients, (chains, agents, dim); the same of curvatures.

    aleph, curvature: the tracked average of z^T H z and the agent's own, (chains, agents, 1).
    """

    x: np.ndarray
    tracked: np.ndarray
    gradient: np.ndarray
    aleph: np.ndarray
    curvature: np.ndarray


class DMALAReleased(FullGradientSampler[State]):
    """D-MALA with standard deviation epsilon of a step's noise, and R rounds of averaging."""

    name: ClassVar[str] = "D-MALA as released"
    needs: ClassVar[Needs] = Needs(
        "mixing", arrival="does not say what arrives", local="moves by gradients of all agents"
    )
    biased: ClassVar[str] = "the square of the posterior, since a move takes the whole gradient"

    step_size: Annotated[Schedule, "epsilon_k, the standard deviation of a step's noise"]
    correct: Annotated[bool, "refuse moves by the odds; or accept all"] = True
    burn_in: Annotated[Index, "iterations in which all moves are accepted"] = 0
    rounds: Annotated[Some[Count], "numbers R of rounds, one for each stretch of iterations"] = (1,)
    milestones: Annotated[
        tuple[Index, ...], "last iterations of the stretches; the last one may go on"
    ] = ()
    weights: Weights = "metropolis"

    def check(self, problem: Any, network: Network) -> None:
        """Refuse networks with a clock, and problems without Hessians, too."""
        super().check(problem, network)
        if network.keeps_time:
            raise ConcordError("network: refused moves would take no time; remove compute and link")
        if self.correct:
            require(problem, "hessian_product", "use correct: false")

    def init(
        self, x0: np.ndarray, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Return the state at x0, (chains, agents, dim), with nothing tracked yet."""
        vectors, numbers = np.zeros_like(x0), np.zeros_like(x0[..., :1])
        return State(x0, vectors, vectors, numbers, numbers)

    def step(
        self, state: State, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Track gradients and curvatures, propose moves, accept or refuse them, and average."""
        (x, tracked, old_gradient, aleph, old_curvature), epsilon = state, self.step_size(k)
        place = sum(last < k for last in self.milestones)
        rounds = self.rounds[min(place, len(self.rounds) - 1)]
        gradient = -problem.gradient(x)
        z = rng.standard_normal(x.shape, dtype=x.dtype.type)
        curvature = old_curvature
        if self.correct:
            curvature = (z * problem.hessian_product(x, z)).sum(axis=-1, keepdims=True)
        change = gradient - old_gradient
        if self.correct:
            both = np.concatenate([tracked, aleph], axis=-1)
            change = np.concatenate([change, curvature - old_curvature], axis=-1)
            both = self.mix_rounds(network, rounds, both, change)
            tracked, aleph = both[..., :-1], both[..., -1:]
        else:
            tracked = self.mix_rounds(network, rounds, tracked, change)
        move = epsilon * z + epsilon**2 * tracked
        if self.correct:
            accepted = np.ones(x.shape[:2], dtype=bool)
            if k < self.burn_in:
                aleph = np.zeros_like(aleph)
            else:
                odds = -(epsilon**2) / 2 * (aleph[..., 0] + (tracked**2).sum(axis=-1))
                accepted = rng.random(x.shape[:2]) < np.exp(np.minimum(odds, 0.0))
            network.active = accepted
            move = np.where(accepted[..., None], move, 0.0)
        x = self.mix_rounds(network, rounds, x + move)
        return State(x, tracked, gradient, aleph, curvature)

    def mix_rounds(
        self, network: Network, rounds: int, x: np.ndarray, change: np.ndarray | None = None
    ) -> np.ndarray:
        """Return x, (chains, agents, any), after R rounds of x <- W (x + change), as one product.

        The messages of all rounds count.
        """
        power, total = sum_powers(network.graph, self.weights, rounds)
        width = x.shape[-1]
        more = (rounds - 1) * width
        network.meter.add_rounds(more / network.dim, more * x.itemsize)
        return network.mix(power, x, None if change is None else weighted_sum(total, change))


@cache
def sum_powers(graph: Graph, weights: str | float, rounds: int) -> tuple[Matrix, Matrix]:
    r"""Return :math:`W^R` and :math:`W + W^2 + \ldots + W^R` of a graph's mixing matrix."""
    matrix = mixing_matrix(graph, weights)
    power = total = matrix
    for _ in range(rounds - 1):
        power = matrix @ power
        total = total + power
    return power, total
