"""Data of problems: options of their points, and problems whose chains share one data set."""

from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta

from concord.sampling.partition import check_rows
from concord.summary import Summarized

LegacySeed = Annotated[
    Annotated[int, Meta(ge=0, le=2**32 - 1)] | None,
    "draw the data agent by agent from NumPy's legacy generator with this seed, as "
    "tzikas2024's authors do; none: from the paper's data stream",
]

Table = Annotated[
    str | None,
    "registered table of points and who holds which (config/datasets.yaml), with columns agent "
    "(empty: nobody), perhaps place (their order within the agent), then features and, last, the "
    "target; none: points are drawn",
]


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


def required_tables(params: Any) -> tuple[str, ...]:
    """Return the name of the registered table of the options, as a tuple; empty without one."""
    return () if params.table is None else (params.table,)


def check_agents(params: Any, agents: int) -> None:
    """Raise a ConcordError if there are more agents than points."""
    check_rows(params.points, agents)
