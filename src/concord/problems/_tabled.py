"""Problems whose gradients need a few numbers of each agent."""

from collections.abc import Callable

import numpy as np

from concord.problems._data import OneDataSet


class Tabled(OneDataSet):
    """Potentials whose gradients need a few numbers of each agent, not its points.

    ``tables`` are these numbers, each (agents, ...). A problem has ``slopes(x, *tables)``, which
    returns gradients at x (..., dim) of the agents that the tables' leading axes name, and
    ``values(x, *tables)``, which returns their potentials (...).
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
        """Return the gradients of these agents, (chains, few), at x, (chains, few, dim)."""
        return self.slopes(x, *(table[agents] for table in self.tables))

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents)."""
        return self.values(x, *self.tables)
