"""Problems whose chains all have the same data."""

from typing import Any, Self

import numpy as np

from concord.summary import Summarized


class OneDataSet(Summarized):
    """A base class of problems whose chains all have the same data."""

    agents: int
    dim: int

    def summary(self) -> dict[str, Any]:
        """Return the numbers of agents, coordinates and points, and the posterior's form."""
        posterior = getattr(self, "posterior", None)
        counts = getattr(self, "counts", None)
        return {
            "agents": self.agents,
            "dim": self.dim,
            "points": None if counts is None else int(np.sum(counts)),
            "posterior": "Gaussian" if posterior is not None else None,
        }

    def from_chain(self, first: int) -> Self:
        """Return the problem itself, since all chains have the same data."""
        return self
