r"""Graph Gibbs: every agent draws from its law given its neighbors, color by color.

The agents' copies are tied to those of their neighbors by a tolerance rho,

.. math::
    \pi(x_1, \dots, x_N) \propto \exp \Bigl( -\sum_i f_i(x_i)
        - \frac{1}{2 \rho} \sum_{\{i, j\} \in E} \lVert x_i - x_j \rVert^2 \Bigr),

and each is drawn given the others. Where :math:`f_i(x) = x^\top H_i x / 2 - b_i^\top x`, with
deg_i neighbors,

.. math::
    x_i \mid x_{-i} \sim N \Bigl( S_i \bigl( b_i + \tfrac{1}{\rho} \sum_{j \in N_i} x_j \bigr),
        S_i \Bigr), \qquad S_i = \bigl( H_i + \tfrac{\deg_i}{\rho} I \bigr)^{-1};

with a ``step_size`` gamma, and on problems that are not quadratic, a Langevin step in its place,

.. math::
    x_i \leftarrow x_i - \gamma_k \Bigl( \nabla f_i(x_i)
        + \tfrac{1}{\rho} \sum_{j \in N_i} (x_i - x_j) \Bigr) + \sqrt{2 \gamma_k}\, w_i.

Agents of one color are no neighbors and move at once, colors take turns (colors are given greedily,
in the order of the agents). Draws have pi as their law in the limit, whose precision is
blockdiag(H_i) + L/rho with L the Laplacian; as rho falls all x_i become one, with the posterior's
law, but the smaller rho, the smaller are the moves. It is what D-ADMMS does with another noise.

Source: the graph-coupled target as in "Client-only distributed Markov chain Monte Carlo sampling
over a network" (Transactions on Machine Learning Research, 2025) and Yuan et al. (2023,
arXiv:2306.13801); neither was at hand, colors and equations are our form. Arrays have shape
(chains, agents, dim).

Price: a draw from a Gaussian (counts as one gradient) or a gradient of every agent, and a vector to
every neighbor, per step.
Needs: a connected network, or no edges at all, on which everything arrives.
"""

from typing import Annotated

import numpy as np

from concord.contracts import Info, Problem, Quadratic, Step
from concord.errors import ConcordError
from concord.laws.exact import Affine, Update, block_diagonal, compose
from concord.networks.channel import connect
from concord.networks.topology import Topology
from concord.options import Options, Positive
from concord.samplers._checks import check_connected, check_neighbors, check_perfect, first_flat
from concord.samplers._parts import State, by_step, to_all_neighbors
from concord.sampling.kick import kick
from concord.sampling.schedules import Schedule

NAME = "Graph Gibbs"
TURNS = 4  # at most, on a tree of less than 16 agents
UNITS = {"step_size": 2, "tolerance": 2}


class Params(Options):
    """Options of graph Gibbs."""

    tolerance: Annotated[Positive, "rho of every edge"]
    step_size: Annotated[
        Schedule | None,
        "step size gamma_k of a Langevin step; none: a draw, which quadratic problems have",
    ] = None


BIASED = "agents tied by a tolerance, which is the posterior's only where that is 0"


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network on which not all is heard, or in parts, and what cannot be drawn."""
    check_connected(topology)
    check_neighbors(topology, "graph_gibbs")
    check_perfect(
        topology,
        "graph_gibbs draws an agent given what its neighbors have, color by color in an iteration, "
        "and needs all of it",
    )
    if problem is None or params.step_size is not None:
        return
    if not isinstance(problem, Quadratic):
        raise ConcordError(
            f"step_size: it is missing, and {type(problem).__name__} has no draws given the "
            "neighbors, which quadratic problems have; give one"
        )
    if (flat := first_flat(_precision(problem, topology, params))) is not None:
        raise ConcordError(
            f"agent {flat} has too few points, no prior and no neighbors, so it has no law to "
            "draw from; give it a share of the prior"
        )


def _precision(problem: Quadratic, topology: Topology, params: Params) -> np.ndarray:
    """Return H_i + deg_i/rho, (agents, dim, dim)."""
    pull = topology.degrees / params.tolerance
    return problem.gram + pull[:, None, None] * np.eye(problem.dim)


def colors(topology: Topology) -> list[np.ndarray]:
    """Return which agents have each color, (agents,): none has that of a neighbor."""
    found = np.full(topology.agents, -1)
    for agent, neighbors in enumerate(topology.neighbors):
        taken = set(found[neighbors])
        found[agent] = next(color for color in range(topology.agents) if color not in taken)
    return [found == color for color in range(found.max() + 1)]


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    channel, schedule = connect(topology, x0), params.step_size
    disagree, info = channel.mixer(topology.laplacian()), to_all_neighbors(channel)
    classes = [own[:, None] for own in colors(topology)]
    move, apart, new = np.empty_like(x0), np.empty_like(x0), np.empty_like(x0)
    if schedule is None:
        assert isinstance(problem, Quadratic)  # see check
        degrees, shift = topology.degrees[:, None], problem.shift
        ties = degrees[:, None] / params.tolerance * np.eye(problem.dim)
        cov = np.linalg.inv(problem.gram + ties)
        roots = np.linalg.cholesky(cov).swapaxes(1, 2)
        noise, heard = np.empty_like(x0), np.empty_like(x0)
    else:
        gradient, grad = problem.gradient(len(x0)), np.empty_like(x0)

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        x = state.x
        # Noise and gradients are those of all colors: an agent is where it was until its turn.
        if schedule is None:
            rng.standard_normal(out=noise, dtype=noise.dtype)
            np.matmul(noise.swapaxes(0, 1), roots, out=move.swapaxes(0, 1))
        else:
            gamma = schedule(k)
            gradient(x, grad)
            kick(rng, gamma, grad, out=move)
        for own in classes:
            disagree(x, plus=None, out=apart)
            if schedule is None:
                np.multiply(x, degrees, out=heard)
                np.subtract(heard, apart, out=heard)
                np.divide(heard, params.tolerance, out=heard)
                np.add(heard, shift, out=heard)
                np.matmul(heard.swapaxes(0, 1), cov, out=new.swapaxes(0, 1))
            else:
                np.multiply(apart, -gamma / params.tolerance, out=apart)
                np.add(x, apart, out=new)
            np.add(new, move, out=new)
            np.copyto(x, new, where=own)
        return State(x), info

    return State(x0.copy()), channel.through(step)


def affine(problem: Quadratic, topology: Topology, params: Params) -> Update:
    """Return the law: colors in turn, each of which moves given all others."""
    size = problem.agents * problem.dim
    gram, shift = block_diagonal(problem.gram), problem.shift.ravel()
    identity, tie = np.eye(size), np.eye(problem.dim) / params.tolerance
    own = [np.repeat(mine, problem.dim)[:, None] for mine in colors(topology)]

    def turns(matrix: np.ndarray, offset: np.ndarray, noise: np.ndarray) -> Affine:
        stages = [
            Affine(np.where(m, matrix, identity), m[:, 0] * offset, noise * (m & m.T)) for m in own
        ]
        return compose(*stages)

    if params.step_size is None:
        cov = block_diagonal(np.linalg.inv(_precision(problem, topology, params)))
        drawn = turns(cov @ np.kron(topology.adjacency().dense(), tie), cov @ shift, cov)
        return Update(lambda k: drawn)
    precision = gram + np.kron(topology.laplacian().dense(), tie)

    def update(gamma: float) -> Affine:
        return turns(identity - gamma * precision, gamma * shift, 2 * gamma * identity)

    return by_step(update, params.step_size)
