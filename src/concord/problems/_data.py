"""What problems with data share: the same data in all chains, rows for testing, authors' draws."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from msgspec import Meta

from concord.contracts import Stream
from concord.datasets.tables import tabled
from concord.errors import ConcordError
from concord.sampling.partition import Partition, Parts, consecutive_counts, enough
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

Draw = Callable[[np.random.RandomState, np.ndarray, np.ndarray], np.ndarray]


class OneDataSet(Summarized):
    """A problem whose chains have the same data, and whose agents have data of their own."""

    agents: int
    dim: int

    def summary(self) -> dict[str, Any]:
        """Return the sizes, and what is known of the posterior."""
        posterior = getattr(self, "posterior", None)
        counts = getattr(self, "counts", None)
        return {
            "agents": self.agents,
            "dim": self.dim,
            "points": None if counts is None else int(np.sum(counts)),
            "posterior": "Gaussian" if posterior is not None else None,
        }

    def from_chain(self, first: int) -> Self:
        """Return the problem itself."""
        return self


def points_of(
    table: str, resources: Path, agents: int, partition: Partition
) -> tuple[np.ndarray, np.ndarray, Parts]:
    """Return features (rows, d), targets (rows,) and each agent's rows of a registered table.

    A table without points has features of no columns, and says only who holds which row. One agent
    holds all that anybody holds. A ConcordError if it is not for so many agents, or the run has a
    partition of its own.
    """
    columns = tabled(table, resources)
    if "agent" not in columns:
        raise ConcordError(f"table: {table} has no column agent; name a table of points")
    holder = columns.pop("agent")
    if agents == 1:
        holder = np.minimum(holder, 0)
    order = np.lexsort((columns.pop("place", np.arange(len(holder))), holder))
    parts = [order[holder[order] == agent] for agent in range(agents)]
    if np.nanmax(holder) != agents - 1 or not all(map(len, parts)):
        raise ConcordError(
            f"table: {table} is for {np.nanmax(holder) + 1:g} agents, not {agents}; set agents"
        )
    if partition.options.kind != "equal":
        raise ConcordError(f"{partition.where}: {table} says who holds what; remove it")
    features = np.array(list(columns.values())).reshape(len(columns), len(holder))
    return features[:-1].T, features[-1] if columns else np.empty(0), parts


def table_read(params: Any) -> tuple[str, ...]:
    """Return the name of the table that is read, if one is."""
    return () if params.table is None else (params.table,)


def check_agents(params: Any, agents: int) -> None:
    """Refuse more agents than points."""
    enough(params.points, agents)


def kept_apart(rows: int, testing: int, stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the rows to train on, and of those for testing, drawn at random."""
    order = np.arange(rows)
    if testing:
        stream("test").shuffle(order)
    return np.sort(order[testing:]), np.sort(order[:testing])


def legacy_data(
    seed: int, points: int, agents: int, variances: tuple[float, float], dim: int, draw: Draw
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw parameter, then each agent's points, in the order of tzikas2024's authors.

    ``variances`` are those of the parameter's and of the features' entries;
    ``draw(rng, features, parameter)`` returns what else an agent's points have. Returns parameter
    (dim,), features (points, dim), and what was drawn, (points,).
    """
    rng = np.random.RandomState(seed)
    origin, identity = np.zeros(dim), np.eye(dim)
    truth = rng.multivariate_normal(origin, variances[0] * identity)
    features, drawn = [], []
    for count in consecutive_counts(points, agents):
        own = rng.multivariate_normal(origin, variances[1] * identity, size=count)
        features.append(own)
        drawn.append(draw(rng, own, truth))
    return truth, np.concatenate(features), np.concatenate(drawn)
