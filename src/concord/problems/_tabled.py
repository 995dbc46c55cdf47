"""Problems whose gradients need a few numbers of each agent."""

from collections.abc import Callable

import numpy as np

from concord.contracts import Gradient, GradientAt
from concord.problems._data import OneDataSet


class Tabled(OneDataSet):
    """Potentials whose gradients need a few numbers of each agent, not its points.

    ``tables`` are these numbers, each (agents, ...). A problem has ``slope(x, out, *tables)``,
    which writes gradients at x (..., dim) of the agents that the tables' leading axes name, and
    ``values(x, *tables)``, which returns their potentials (...).
    """

    agents: int
    dim: int
    posterior = None
    tables: tuple[np.ndarray, ...]
    slope: Callable[..., np.ndarray]
    values: Callable[..., np.ndarray]

    def gradient(self, chains: int) -> Gradient:
        """Return ``g(x, out)``, the gradient of every f_i at x_i."""
        return lambda x, out: self.slope(x, out, *self.tables)

    def gradient_at(self, chains: int, width: int) -> GradientAt:
        """Return ``g(x, agents, out)``: the gradients of ``width`` chosen agents of each chain."""
        return lambda x, agents, out: self.slope(x, out, *(table[agents] for table in self.tables))

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents)."""
        return self.values(x, *self.tables)
