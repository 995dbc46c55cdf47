"""Points of registered tables, which say who holds them, and rows for testing."""

from typing import Annotated, Any

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.sampling.partition import Partition, Parts

Table = Annotated[
    str | None,
    "registered table of points and who holds which (config/datasets.yaml), with columns agent "
    "(empty: nobody), perhaps place (their order within the agent), then features and, last, the "
    "target; none: no table",
]


def required_tables(params: Any) -> tuple[str, ...]:
    """Return the name of the options' registered table, in a tuple that is empty without one."""
    return () if params.table is None else (params.table,)


def read_points(
    table: str, data_sets: DataSets, agents: int, partition: Partition
) -> tuple[np.ndarray, np.ndarray, Parts]:
    """Read features (rows, d), targets (rows,) and each agent's rows from a registered table.

    The table's column agent says who holds which row. A table without points has features with no
    columns. A single agent holds all rows that any agent holds. A ConcordError if the table is for
    another number of agents, or the run chooses a partition of its own.
    """
    columns = data_sets.table(table)
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


def split_test_rows(rows: int, testing: int, stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of training rows and of test rows, split at random.

    rows: how many rows there are. testing: how many of them are for testing. Both results increase.
    """
    order = np.arange(rows)
    if testing:
        stream("test").shuffle(order)
    return np.sort(order[testing:]), np.sort(order[:testing])
