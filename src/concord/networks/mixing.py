r"""Weighted sums over what agents have and hear, and the order in which agents move by them.

A mixer writes :math:`x'_i = \sum_j M_{ij} x_j + r_i`, where the agents move in one of two orders:

``simultaneous``
    every agent sees the old values, as in the papers' equations;
``in_place``
    agents 0, 1, ..., N-1 move one after another, and each sees the new values of those before it:
    :math:`x'_i = \sum_{j<i} M_{ij} x'_j + \sum_{j \ge i} M_{ij} x_j + r_i` (Gauss-Seidel). Released
    codes do this. The residual r is given beforehand.

Sources: gurbuzbalaban2021, eqs. (1.1) and (4.2); parayil2020, eq. (8). Positions have shape
(chains, agents, dim); the arrays that a mixer reads and writes must not overlap.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import numpy as np

from concord.networks.matrix import AgentMatrix, Apply, copy_vectors
from concord.options import choices

Order = Literal["simultaneous", "in_place"]
UpdateOrder = Annotated[
    Order, "agents move all at once, or one after another seeing neighbors that have moved"
]
ORDERS = choices(Order)

# respond(agent, total, new) writes the new value of an agent, of which others may hear then, from
# the sum. agent is an index, or slice(None) for all at once: array[:, agent] suits both. total and
# new have shape (chains, dim), or (chains, agents, dim), and may be one array; total is overwritten
# at will.
Respond = Callable[[Any, np.ndarray, np.ndarray], object]


class Kick(NamedTuple):
    """A Langevin kick sd w - eta g that is to be added; g and w are used up.

    Where it is ``fused`` the sums S are what agents are apart, and x - beta S is what it is added
    to; all agents move at once.
    """

    eta: Any
    g: np.ndarray
    sd: Any
    w: np.ndarray
    fused: bool = False
    beta: float = 0.0

    def array(self) -> np.ndarray:
        """Return it, in place of w."""
        np.multiply(self.w, self.sd, out=self.w)
        np.multiply(self.g, self.eta, out=self.g)
        return np.subtract(self.w, self.g, out=self.w)


Plus = np.ndarray | Kick | Respond | None


class Mixer(Protocol):
    """What weighs and adds up."""

    def __call__(self, x: np.ndarray, plus: Plus, out: np.ndarray) -> np.ndarray:
        """Write the sums over x plus something, or what a response makes of them; return out."""


def mixer(matrix: AgentMatrix, chains: int, dim: int, order: Order) -> Mixer:
    """Return ``mix(x, plus, out)`` for weights M, which may be any.

    chains, dim: shape of the positions that it will see.
    """
    if order == "simultaneous":
        return at_once(matrix.operator(chains, dim), matrix.kicked(dim))
    return _one_by_one(matrix, chains, dim)


def at_once(weigh: Apply, kicked: Callable[..., bool] | None = None) -> Mixer:
    """Return the mixer of all agents at once, by ``weigh(x, out)``, which writes their sums.

    ``kicked(x, *kick, out)`` writes them with a kick, if it can.
    """
    everyone = slice(None)

    def mix(x: np.ndarray, plus: Plus, out: np.ndarray) -> np.ndarray:
        if isinstance(plus, Kick):
            if kicked is not None and kicked(x, *plus, out):
                return out
            fused, beta, plus = plus.fused, plus.beta, plus.array()
            weigh(x, out)
            if fused:
                np.subtract(x, np.multiply(out, beta, out=out), out=out)
            return np.add(out, plus, out=out)
        weigh(x, out)
        if callable(plus):
            plus(everyone, out, out)
        elif plus is not None:
            np.add(out, plus, out=out)
        return out

    return mix


def _one_by_one(matrix: AgentMatrix, chains: int, dim: int) -> Mixer:
    # Agents first: the neighbors of an agent are then whole rows, and no copy where they are
    # consecutive, as on the complete graph.
    current = np.empty((matrix.agents, chains, dim))
    flat = current.reshape(matrix.agents, chains * dim)
    total = np.empty((chains, dim))
    flat_total = total.reshape(chains * dim)
    rows = [
        (agent, values, _consecutive(columns), current[agent])
        for agent in range(matrix.agents)
        for columns, values in [matrix.row(agent)]
    ]

    def mix(x: np.ndarray, plus: Plus, out: np.ndarray) -> np.ndarray:
        if isinstance(plus, Kick):
            plus = plus.array()
        copy_vectors(x.transpose(1, 0, 2), current)
        for agent, values, columns, position in rows:
            np.matmul(values, flat[columns], out=flat_total)
            if callable(plus):
                plus(agent, total, position)
            else:
                np.add(total, 0.0 if plus is None else plus[:, agent], out=position)
        copy_vectors(current.transpose(1, 0, 2), out)
        return out

    return mix


def _consecutive(columns: np.ndarray) -> np.ndarray | slice:
    if columns.size and columns[-1] - columns[0] == columns.size - 1:
        return slice(int(columns[0]), int(columns[-1]) + 1)
    return columns
