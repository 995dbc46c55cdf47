"""Problems that a caller makes in Python: from arrays, or from a kind's options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from concord import streams
from concord.contracts import Stream
from concord.errors import ConcordError, short
from concord.options import Count, build
from concord.sampling.partition import AgentData, Partition
from concord.values import check_masks

# Of a caller's numbers: squares, and sums of very many of them, are finite.
LARGEST = 1e100


class NoDataSets:
    """In place of ``DataSets`` where a caller has none: a problem that needs one is refused."""

    folder = Path("resources")

    def table(self, name: str) -> dict[str, np.ndarray]:
        """Raise a ConcordError, since there is no table."""
        raise ConcordError(
            f"table: {name} is registered data, which studies read; pass the arrays, X and y"
        )

    def points(self, name: str) -> tuple[Any, np.ndarray]:
        """Raise a ConcordError, since there is no data set."""
        raise ConcordError(
            f"dataset: {name} is registered data, which studies read; pass the arrays, X and y"
        )


def numbers(values: Any, name: str) -> np.ndarray:
    """Convert a caller's values to an array of finite floats whose squares are finite, too.

    name: of the values, for errors.
    """
    check_masks(values, name)
    try:
        given = np.array(values)
        if given.dtype.kind == "c":
            raise ConcordError(f"{name}: its numbers are complex; give real ones")
        array = given.astype(float)
    except (TypeError, ValueError):
        raise ConcordError(f"{name}: {short(values)} is no array of numbers; give one") from None
    if not np.isfinite(array).all():
        raise ConcordError(f"{name}: some of its numbers are not finite; remove them")
    if (np.abs(array) > LARGEST).any():
        most = np.abs(array).argmax()
        place = [int(index) for index in np.unravel_index(most, array.shape)]
        raise ConcordError(
            f"{name}{place or ''}: {array.flat[most]:g} is beyond {LARGEST:g}, where sums of "
            "squares are not finite; use larger units"
        )
    return array


def own_data(
    X: Any, y: Any, agents: int | None, partition: Any, seed: int | None, classes: bool = False
) -> AgentData:
    """Return the rows of features X and targets y, split over agents.

    ``concord.problems.linear_regression`` explains the parameters; ``classes``: y are labels, by
    which rows may be split. A ConcordError if arrays are not numbers, or do not fit each other or
    the number of agents.
    """
    together = agents is not None
    if not together and not (isinstance(X, (list, tuple)) and isinstance(y, (list, tuple))):
        raise ConcordError(
            "agents is missing; give their number, or X and y as lists with an array of each agent"
        )
    if not together and not len(X) == len(y) > 0:
        raise ConcordError(f"X of {len(X)} agents and y of {len(y)} do not fit; give one of each")
    pieces: list[tuple[np.ndarray, np.ndarray]] = []
    for i, (rows, aims) in enumerate([(X, y)] if together else zip(X, y, strict=True)):
        place = "" if together else f"[{i}]"
        features, targets = numbers(rows, f"X{place}"), numbers(aims, f"y{place}")
        columns = pieces[0][0].shape[1:] if pieces else features.shape[1:]
        if features.ndim != 2 or targets.shape != features.shape[:1] or not features.size:
            raise ConcordError(
                f"X{place} of shape {features.shape} and y{place} of shape {targets.shape} do not "
                "fit; give (rows, dim) and (rows,)"
            )
        if features.shape[1:] != columns:
            raise ConcordError(
                f"X{place} has {features.shape[1]} columns and X[0] {columns[0]}; give all agents "
                "the same features"
            )
        pieces.append((features, targets))
    features, targets = (np.concatenate(column) for column in zip(*pieces, strict=True))
    if together:
        rng = streams.generator(streams.seed_of(seed), "partition")
        parts = parted(partition).split(
            targets if classes else len(targets), build(Count, agents, "agents"), rng
        )
    else:
        counts = [len(aims) for _, aims in pieces]
        parts = np.split(np.arange(len(targets)), np.cumsum(counts)[:-1])
    return AgentData.from_parts(features, targets, parts)


def parted(way: Any) -> Partition:
    """Return the partition that a caller names, or gives as a mapping with a kind."""
    return Partition.parse({"kind": way} if isinstance(way, str) else way, "partition")


def split(partition: Partition, stream: Stream) -> dict[str, Any]:
    """Return a run's partition as the arguments ``partition`` and ``seed`` of problems in Python.

    stream: the run's streams, from which the seed is drawn.
    """
    return {"partition": partition.options, "seed": int(stream("partition").integers(2**32))}


def from_options(kind: Any) -> Callable[..., Any]:
    """Return the function that builds a problem of a kind from ``agents`` and its options.

    kind: the kind's module.
    """

    def build_problem(
        agents: int,
        *,
        partition: Any = "equal",
        seed: int | None = streams.SEED,
        rng: streams.Rng = None,
        **options: Any,
    ) -> Any:
        split, master = parted(partition), streams.seed_of(seed, rng)
        params, count = build(kind.Params, options), build(Count, agents, "agents")
        kind.check(params, count)

        def stream(what: str) -> np.random.Generator:
            """Return the generator of a named stream of random numbers."""
            return streams.generator(master, what)

        return kind.build(params, count, split, stream, NoDataSets())

    build_problem.__doc__ = kind.__doc__
    return build_problem
