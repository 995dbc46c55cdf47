"""Problems whose chains all have the same data."""

from collections.abc import Callable
from typing import Self

import numpy as np

from concord.summary import Summarized, count_named

BLOCK = 4096  # points at which potentials are evaluated together, so that they stay in cache


class OneDataSet(Summarized):
    """A base class of problems whose chains all have the same data.

    local: the mask (dim,) of coordinates that belong to the agent who holds them; None: none does.
    agent_names, coordinate_names: what a caller's data call them, in order; None: numbers.
    """

    agents: int
    dim: int
    local: np.ndarray | None = None
    agent_names: tuple[str, ...] | None = None
    coordinate_names: tuple[str, ...] | None = None

    def summary(self) -> dict[str, object]:
        """Return the numbers of agents, coordinates and points, and the posterior's form."""
        posterior = getattr(self, "posterior", None)
        counts = getattr(self, "counts", None)
        return {
            "agents": count_named(self.agents, self.agent_names),
            "dim": count_named(self.dim, self.coordinate_names),
            "local": None if self.local is None else int(self.local.sum()),
            "points": None if counts is None else int(np.sum(counts)),
            "posterior": "Gaussian" if posterior is not None else None,
        }

    def from_chain(self, first: int) -> Self:
        """Return the problem itself, since all chains have the same data."""
        return self


class TwoParameters:
    """A mixin that gives a problem of two parameters its log posterior, from agents' potentials.

    potential: takes (chains, agents, 2), returns (chains, agents); its sum over agents is minus the
    log posterior, up to a constant.
    """

    agents: int
    potential: Callable[[np.ndarray], np.ndarray]

    def log_posterior(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the log density at two parameters, up to a constant; arrays broadcast."""
        x = np.stack(np.broadcast_arrays(first, second), axis=-1)
        logs = np.empty(x.shape[:-1])
        for start in range(0, logs.size, BLOCK):
            points = x.reshape(-1, 1, 2)[start : start + BLOCK]
            everywhere = np.repeat(points, self.agents, axis=1)
            logs.flat[start : start + BLOCK] = -self.potential(everywhere).sum(axis=1)
        return logs
