r"""The order in which agents move, implemented once for all synchronous samplers.

Agents respond to a weighted sum over their neighborhood, :math:`s_i = \sum_j C_{ij} x_j`:

``simultaneous``
    every agent responds to the old values, as the papers' equations say;
``in_place``
    agents 0, 1, ..., N-1 move one after another, and each sees the new values of those before it:
    :math:`s_i = \sum_{j<i} C_{ij} x'_j + \sum_{j \ge i} C_{ij} x_j` (Gauss-Seidel). Released codes
    do this.

``sweep`` takes any response; ``mixer`` and ``diffuser`` are the additive ones. Positions have
shape (chains, agents, dim); the arrays a function reads and writes must not overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from concord.errors import ConcordError, nearest
from concord.topology import AgentMatrix

ORDERS = ("simultaneous", "in_place")

# respond(agent, total, out): agent is an index, or slice(None) for all agents at once; total and
# out have shape (chains, dim), or (chains, agents, dim). It writes out, and may overwrite total.
Respond = Callable[[Any, np.ndarray, np.ndarray], object]
Sweep = Callable[[np.ndarray, Respond, np.ndarray], np.ndarray]
Mixer = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
Diffuser = Callable[[np.ndarray, np.ndarray, np.ndarray, float], np.ndarray]


def sweep(coupling: AgentMatrix, chains: int, dim: int, order: str) -> Sweep:
    """Return ``move(x, respond, out)``, which moves every agent once, in the given order.

    ``respond(i, total, out_i)`` writes the new value of agent i into ``out_i``, from the sum
    ``total`` over its neighborhood. It is called once for all agents with ``i = slice(None)``, or
    once per agent; ``array[:, i]`` suits both. Before the call ``out_i`` holds nothing of use.

    Parameters
    ----------
    coupling
        The weights C; they need not be symmetric.
    chains, dim
        Shape of the positions the sweep will see.
    order
        One of ``ORDERS``.
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
