r"""The order in which agents move, implemented once for all synchronous samplers.

Agents respond to a weighted sum over their neighborhood, :math:`s_i = \sum_j C_{ij} x_j`:

``simultaneous``
    every agent responds to the old values, as in the papers' equations;
``in_place``
    agents 0, 1, ..., N-1 move one after another, and each sees the new values of those before it:
    :math:`s_i = \sum_{j<i} C_{ij} x'_j + \sum_{j \ge i} C_{ij} x_j` (Gauss-Seidel). Released codes
    do this.

Apart from that, an agent may average with its neighbors together, as in the equations, or with one
after another from the value it has moved to (``Neighbors``, ``diffuser_in_turn``).

``sweep`` takes any response; ``mixer`` and ``diffuser`` are the additive ones. Positions have
shape (chains, agents, dim); the arrays a function reads and writes must not overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

from concord.errors import ConcordError, nearest
from concord.networks.faults import Network
from concord.networks.matrix import AgentMatrix
from concord.networks.topology import Topology
from concord.options import choices

Order = Literal["simultaneous", "in_place"]
UpdateOrder = Annotated[
    Order, "agents move all at once, or one after another seeing neighbors that have moved"
]
Neighbors = Literal["together", "in_turn"]
Weights = Annotated[
    Literal[
        "metropolis",
        "lazy_metropolis",
        "max_degree",
        "best_constant",
        "row_stochastic",
        "column_stochastic",
        "pairwise",
        "next_two",
    ],
    "W: Metropolis weights; half of these, and half for the agent itself; one weight for all "
    "edges, 1/(1 + the largest degree) or the one that agrees fastest; equal weights for all that "
    "an agent hears and itself; or for all that hear an agent and itself; half for the one "
    "neighbor that an agent hears in an iteration; or on a ring a third each for an agent itself "
    "and the next two, one way around (not symmetric)",
]
ORDERS = choices(Order)
ROUNDING = 1e-9  # by which sums of weights may miss one

# respond(agent, total, out): agent is an index, or slice(None) for all agents at once; total and
# out have shape (chains, dim), or (chains, agents, dim). It writes out, and may overwrite total.
Respond = Callable[[Any, np.ndarray, np.ndarray], object]
Sweep = Callable[[np.ndarray, Respond, np.ndarray], np.ndarray]
Mixer = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Diffuser = Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]


def check_weights(topology: Topology, weights: str) -> None:
    """Refuse weights that the network has no meaning for."""
    if weights == "next_two" and (topology.name != "ring" or topology.agents < 3):
        raise ConcordError(
            f"weights: next_two goes around a ring of 3 agents or more, not {topology.name} of "
            f"{topology.agents}; use metropolis"
        )
    if topology.directed and weights not in ("row_stochastic", "column_stochastic", "pairwise"):
        raise ConcordError(
            f"weights: {weights} needs neighbors that hear each other, and {topology.name} is "
            "directed; use a sampler for directed networks (push_sum_sgld), or row_stochastic if "
            "all agents hear as many as they send to"
        )
    if weights == "pairwise" and not (isinstance(topology, Network) and topology.one_by_one):
        raise ConcordError(
            "weights: pairwise is for networks on which an agent hears at most one neighbor in an "
            "iteration; use another one, or a schedule such as matchings or one_peer"
        )
    matrix = weights_of(topology, weights)
    if np.abs(matrix.sums() - 1).max() > ROUNDING:
        raise ConcordError(
            f"weights: {weights} are not doubly stochastic on {topology.name} of "
            f"{topology.agents}, so averaging would not keep the average; use metropolis on an "
            "undirected topology, or a sampler for directed networks (push_sum_sgld)"
        )
    own = matrix.diagonal.min() if weights == "best_constant" else 0.0
    if own < -1e-12:  # rounding apart
        raise ConcordError(
            f"weights: best_constant gives an agent the weight {own:.3g} on itself, on "
            f"{topology.name} of {topology.agents}, but averages need weights that are not "
            "negative; use metropolis"
        )


def weights_of(topology: Topology, weights: str) -> AgentMatrix:
    r"""Return the matrix W that agents average with.

    ``metropolis``
        symmetric and doubly stochastic, on any network; where a network has weights of its own,
        these;
    ``lazy_metropolis``
        (I + W)/2 with these, whose eigenvalues are not negative;
    ``max_degree``, ``best_constant``
        :math:`I - \alpha L` with :math:`\alpha = 1 / (1 + \max_i \deg_i)`, or :math:`2 /
        (\lambda_{\max}(L) + \lambda_2(L))`, which makes the second largest modulus of an
        eigenvalue smallest (Xiao and Boyd, "Fast linear iterations for distributed averaging",
        2004);
    ``row_stochastic``, ``column_stochastic``
        :math:`W_{ij} = 1 / (1 + r_i)` or :math:`1 / (1 + s_j)` where i hears j, with r_i the
        number of neighbors that i hears, and s_j of those that j sends to; the other sums are one
        only where these numbers are equal;
    ``pairwise``
        :math:`W_{ij} = 1/2` where i hears j, of which one arrives in an iteration (or none);
    ``next_two``
        :math:`W_{ij} = 1/3` for j = i, i + 1 and i + 2 modulo N: doubly stochastic, but not
        symmetric, and i + 2 is no neighbor of i on the ring.

    Source: gurbuzbalaban2021, section 2, and what its released code computes.
    """
    if weights == "metropolis":
        return topology.weights or topology.metropolis()
    if weights == "lazy_metropolis":
        return (topology.weights or topology.metropolis()).and_identity(0.5, 0.5)
    if weights == "max_degree":
        return topology.laplacian().and_identity(-1 / (1 + topology.degrees.max()), 1.0)
    if weights == "best_constant":
        found = topology.spectral()
        most = found["laplacian_max"] + found["algebraic_connectivity"]
        return topology.laplacian().and_identity(-2 / most if most else 0.0, 1.0)
    if weights != "next_two":
        adjacency = topology.adjacency()
        hears = np.bincount(adjacency.rows, minlength=topology.agents)
        values = {
            "row_stochastic": 1 / (1 + hears[adjacency.rows]),
            "column_stochastic": 1 / (1 + topology.degrees[adjacency.columns]),
            "pairwise": np.full(len(adjacency.rows), 0.5),
        }[weights]
        sums = adjacency.columns if weights == "column_stochastic" else adjacency.rows
        kept = 1 - np.bincount(sums, values, topology.agents)
        return AgentMatrix.with_diagonal(adjacency.rows, adjacency.columns, values, kept)
    own = np.arange(topology.agents)
    seen = (own[:, None] + np.arange(3)) % topology.agents
    third = np.full(seen.size, 1 / 3)
    return AgentMatrix.from_entries(topology.agents, np.repeat(own, 3), seen.ravel(), third)


def sweep(coupling: AgentMatrix, chains: int, dim: int, order: str) -> Sweep:
    """Return ``move(x, respond, out)``, which moves every agent once, in the given order.

    ``respond(i, total, out_i)`` writes the new value of agent i into ``out_i``, from the sum
    ``total`` over its neighborhood. It is called once for all agents with ``i = slice(None)``, or
    once per agent; ``array[:, i]`` suits both. Before the call ``out_i`` holds nothing of use.

    coupling: the weights C; they need not be symmetric.
    chains, dim: shape of the positions the sweep will see.
    order: one of ``ORDERS``.
    """
    if order not in ORDERS:
        raise ConcordError(f"update order: {order!r} is unknown; {nearest(order, ORDERS)}")
    if order == "simultaneous":
        return _simultaneous(coupling, chains, dim)
    return _in_place(coupling, chains, dim)


def _simultaneous(coupling: AgentMatrix, chains: int, dim: int) -> Sweep:
    couple = coupling.operator(chains, dim)
    totals = np.empty((chains, coupling.agents, dim))
    everyone = slice(None)

    def move(x: np.ndarray, respond: Respond, out: np.ndarray) -> np.ndarray:
        couple(x, totals)
        respond(everyone, totals, out)
        return out

    return move


def _in_place(coupling: AgentMatrix, chains: int, dim: int) -> Sweep:
    rows = [coupling.row(agent) for agent in range(coupling.agents)]
    # Agents first: the neighbors of an agent are then whole rows, and no copy where they are
    # consecutive, as on the complete graph.
    current = np.empty((coupling.agents, chains, dim))
    flat = current.reshape(coupling.agents, chains * dim)
    total = np.empty((chains, dim))
    sweep_rows = [
        (agent, values, _consecutive(columns), current[agent])
        for agent, (columns, values) in enumerate(rows)
    ]
    flat_total = total.reshape(chains * dim)

    def move(x: np.ndarray, respond: Respond, out: np.ndarray) -> np.ndarray:
        np.copyto(current, x.transpose(1, 0, 2))
        for agent, values, columns, position in sweep_rows:
            np.matmul(values, flat[columns], out=flat_total)
            respond(agent, total, position)
        np.copyto(out, current.transpose(1, 0, 2))
        return out

    return move


def _consecutive(columns: np.ndarray) -> np.ndarray | slice:
    if columns.size and columns[-1] - columns[0] == columns.size - 1:
        return slice(int(columns[0]), int(columns[-1]) + 1)
    return columns


def mixer(matrix: AgentMatrix, chains: int, dim: int, order: str) -> Mixer:
    r"""Return ``mix(x, residual, out)``, which writes :math:`x'_i = \sum_j W_{ij} x_j + r_i`.

    In place, the sum runs over new values for j < i; the residual r is given beforehand.
    Source: gurbuzbalaban2021, eqs. (1.1) and (4.2).
    """
    if order == "simultaneous":
        couple = matrix.operator(chains, dim)

        def mix_at_once(x: np.ndarray, residual: np.ndarray, out: np.ndarray) -> np.ndarray:
            return np.add(couple(x, out), residual, out=out)

        return mix_at_once
    move = sweep(matrix, chains, dim, order)

    def mix(x: np.ndarray, residual: np.ndarray, out: np.ndarray) -> np.ndarray:
        def respond(agent: Any, total: np.ndarray, new: np.ndarray) -> None:
            np.add(total, residual[:, agent], out=new)

        return move(x, respond, out)

    return mix


def diffuser(laplacian: AgentMatrix, chains: int, dim: int, order: str) -> Diffuser:
    r"""Return ``diffuse(x, residual, out, coefficient)`` for weights that change with time.

    It writes :math:`x'_i = x_i - c \sum_j L_{ij} x_j + r_i`, which is mixing by
    :math:`W = I - c L`, with the same order of updates.
    Source: parayil2020, eq. (8); tzikas2024, eq. (25).
    """
    if order == "simultaneous":
        couple = laplacian.operator(chains, dim)

        def diffuse_at_once(
            x: np.ndarray, residual: np.ndarray, out: np.ndarray, coefficient: float
        ) -> np.ndarray:
            np.multiply(couple(x, out), coefficient, out=out)
            np.subtract(x, out, out=out)
            return np.add(out, residual, out=out)

        return diffuse_at_once
    move = sweep(laplacian, chains, dim, order)

    def diffuse(
        x: np.ndarray, residual: np.ndarray, out: np.ndarray, coefficient: float
    ) -> np.ndarray:
        def respond(agent: Any, total: np.ndarray, new: np.ndarray) -> None:
            np.multiply(total, coefficient, out=total)
            np.subtract(x[:, agent], total, out=new)
            np.add(new, residual[:, agent], out=new)

        return move(x, respond, out)

    return diffuse


def diffuser_in_turn(topology: Topology, chains: int, dim: int) -> Diffuser:
    r"""Return a ``diffuse`` in which an agent moves towards its neighbors one after another.

    From :math:`y = x_i`, for each neighbor j in increasing order
    :math:`y \leftarrow y - c (y - x_j)` with the old :math:`x_j`; then :math:`x'_i = y + r_i`.
    See ``in_turn_weights``.
    Source: what the released code of parayil2020 computes.
    """
    ranks = [
        (pick.operator(chains, dim), None if has.all() else has[:, None])
        for pick, has in _by_rank(topology)
    ]
    pull = np.empty((chains, topology.agents, dim))

    def diffuse(
        x: np.ndarray, residual: np.ndarray, out: np.ndarray, coefficient: float
    ) -> np.ndarray:
        np.copyto(out, x)
        for pick, has in ranks:
            pick(x, pull)
            np.subtract(pull, out, out=pull)
            np.multiply(pull, coefficient if has is None else coefficient * has, out=pull)
            np.add(out, pull, out=out)
        return np.add(out, residual, out=out)

    return diffuse


def in_turn_weights(topology: Topology, coefficient: float) -> np.ndarray:
    """Return the matrix W (agents, agents) of ``diffuser_in_turn``: its rows sum to one.

    Later neighbors weigh more than earlier ones, W is not symmetric, and where the numbering wraps
    around a ring its columns do not sum to one: the plain average of the agents is not kept.
    """
    weights = np.zeros((topology.agents, topology.agents))
    for agent, neighbors in enumerate(topology.neighbors):
        weights[agent, agent] = 1.0
        for neighbor in neighbors:
            weights[agent] *= 1 - coefficient
            weights[agent, neighbor] += coefficient
    return weights


def _by_rank(topology: Topology) -> list[tuple[AgentMatrix, np.ndarray]]:
    """For the m-th neighbor: the matrix that picks it, and one for each agent that has it."""
    found = []
    for rank in range(int(topology.degrees.max(initial=0))):
        has = topology.degrees > rank
        agents = np.flatnonzero(has)
        columns = np.array([topology.neighbors[agent][rank] for agent in agents])
        pick = AgentMatrix.from_entries(topology.agents, agents, columns, np.ones(len(agents)))
        found.append((pick, has.astype(float)))
    return found
