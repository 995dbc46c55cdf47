"""Check a caller's arrays and divide their rows among agents."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concord import streams
from concord.contracts import Stream
from concord.errors import ConcordError, short
from concord.options import Count, build
from concord.sampling.partition import AgentData, Partition, PartitionLike
from concord.values import is_list, read_numbers

AgentsOfRows = int | ArrayLike | None  # their number, or the site of each row


def divide_rows(
    X: Any,
    y: Any,
    agents: AgentsOfRows,
    partition: PartitionLike,
    seed: int | None,
    classes: bool = False,
) -> AgentData:
    """Return the rows of features X and targets y, split over agents.

    ``concord.problems.linear_regression`` explains the parameters; ``classes``: y are labels, by
    which rows may be split. Columns of tables, and keys of mappings, are names in the result. A
    ConcordError if arrays are not numbers, or do not fit each other or the number of agents.
    """
    sites = None
    if is_list(agents):
        X, y, agents = *_group_by_site(X, y, [*agents]), None
    if isinstance(X, Mapping):
        if agents is not None or not isinstance(y, Mapping) or X.keys() != y.keys():
            raise ConcordError("X and y: give mappings with the same sites as keys, and no agents")
        sites, y = tuple(map(str, X)), [y[site] for site in X]
        X = [*X.values()]
    together = agents is not None
    if not together and not (isinstance(X, (list, tuple)) and isinstance(y, (list, tuple))):
        raise ConcordError(
            "agents is missing; give their number, or X and y as lists with an array of each "
            "agent, or as mappings from agents' names to arrays"
        )
    if not together and not len(X) == len(y) > 0:
        raise ConcordError(f"X of {len(X)} agents and y of {len(y)} do not fit; give one of each")
    pieces: list[tuple[np.ndarray, np.ndarray]] = []
    columns: list[object] = []
    for i, (rows, aims) in enumerate([(X, y)] if together else zip(X, y, strict=True)):
        place = "" if together else f"[{sites[i] if sites else i!r}]"
        features, targets = read_numbers(rows, f"X{place}"), read_numbers(aims, f"y{place}")
        if features.ndim != 2 or targets.shape != features.shape[:1] or not features.size:
            raise ConcordError(
                f"X{place} of shape {features.shape} and y{place} of shape {targets.shape} do not "
                "fit; give (rows, dim) and (rows,)"
            )
        own = [*getattr(rows, "columns", range(features.shape[1]))]  # of a table, or an array
        columns = columns or own
        if own != columns:
            raise ConcordError(
                f"X{place} has the columns {short(own)}, and others {short(columns)}; give all "
                "agents the same features in the same order"
            )
        pieces.append((features, targets))
    features, targets = (np.concatenate(column) for column in zip(*pieces, strict=True))
    if together:
        rng = streams.generator(streams.seed_of(seed), "partition")
        parts = choose_partition(partition).split(
            targets if classes else len(targets), build(Count, agents, "agents"), rng
        )
    else:
        counts = [len(aims) for _, aims in pieces]
        parts = np.split(np.arange(len(targets)), np.cumsum(counts)[:-1])
    is_named = len({*columns}) == len(columns) and {*columns} != {*range(len(columns))}
    names = tuple(map(str, columns)) if is_named else None
    return replace(AgentData.from_parts(features, targets, parts), columns=names, sites=sites)


def _group_by_site(X: Any, y: Any, labels: Sequence[Hashable]) -> tuple[Any, Any]:
    """Return mappings from sites, in their order among the labels of rows, to rows of X and y.

    Labels that are the numbers 0 to N - 1 are no names: the result are lists in their order.
    """
    if not len(X) == len(y) == len(labels):
        raise ConcordError(
            f"agents: {len(labels)} labels do not fit {len(X)} rows; give a number of agents, or "
            "the site of each row, as the column df['site']"
        )
    rows: dict[Hashable, list[int]] = {}
    for row, label in enumerate(labels):
        if label is None or label != label:  # not a number
            raise ConcordError(f"agents: row {row} has no site; drop it, or give it one")
        rows.setdefault(label, []).append(row)
    X, y = (of.iloc if hasattr(of, "iloc") else np.asarray(of) for of in (X, y))
    if {*rows} == {*range(len(rows))}:
        return [X[rows[n]] for n in range(len(rows))], [y[rows[n]] for n in range(len(rows))]
    return {site: X[part] for site, part in rows.items()}, {s: y[part] for s, part in rows.items()}


def choose_partition(way: PartitionLike) -> Partition:
    """Return the partition that a caller gives: by the name of its kind, or with options.

    way: the name, a mapping with ``kind`` and options, or a choice.
    """
    return Partition.parse({"kind": way} if isinstance(way, str) else way, "partition")


def partition_arguments(partition: Partition, stream: Stream) -> dict[str, Any]:
    """Return a run's partition as arguments ``partition`` and ``seed`` of problems in Python.

    stream: returns the run's generator of a name; it determines the seed.
    """
    return {"partition": partition.options, "seed": int(stream("partition").integers(2**32))}
