"""Problems whose gradients need a few numbers of each agent."""

from collections.abc import Callable

import numpy as np

from concord.problems.data import OneDataSet


class TableProblem(OneDataSet):
    """A base class of problems whose gradients need a few numbers of each agent, not its points.

    ``tables`` are these numbers, each (agents, ...). A subclass has ``slopes(x, *tables)``, the
    gradients at x (..., dim) of the agents to which rows of the tables belong, and ``values(x,
    *tables)``, their potentials (...).
    """

    agents: int
    dim: int
    posterior = None
    tables: tuple[np.ndarray, ...]
    slopes: Callable[..., np.ndarray]
    values: Callable[..., np.ndarray]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of every f_i at x_i, (chains, agents, dim)."""
        return self.slopes(x, *self.tables)

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradients of chosen agents, (chains, few, dim).

        agents: their numbers, (chains, few). x: their positions, (chains, few, dim).
        """
        return self.slopes(x, *(table[agents] for table in self.tables))

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents)."""
        return self.values(x, *self.tables)
