"""Problems in Python from the options of a kind, without arrays or data sets."""

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np

from concord import streams
from concord.contracts import ProblemKind
from concord.errors import ConcordError
from concord.options import Count, build
from concord.problem import Problem
from concord.problems.arrays import choose_partition
from concord.sampling.partition import PartitionLike


class NoDataSets:
    """Stands in for ``DataSets`` without registered data: any request for a table is refused."""

    folder = Path("resources")

    def table(self, name: str) -> NoReturn:
        """Refuse a registered table or data set with a ConcordError."""
        raise ConcordError(
            f"{name} is registered data, which studies read; pass the arrays, X and y"
        )

    points = table


def from_options(kind: ProblemKind) -> Callable[..., Problem]:
    """Return a function that builds problems of a kind from ``agents`` and the kind's options.

    kind: the kind's module.
    """

    def build_problem(
        agents: int,
        *,
        partition: PartitionLike = "equal",
        seed: int | None = streams.SEED,
        rng: streams.Rng = None,
        **options: object,
    ) -> Problem:
        """Return the problem of this kind, split over ``agents``; ``options`` are the kind's."""
        split, master = choose_partition(partition), streams.seed_of(seed, rng)
        params, count = build(kind.Params, options), build(Count, agents, "agents")
        kind.check(params, count)

        def stream(what: str) -> np.random.Generator:
            """Return the generator of a named stream of random numbers."""
            return streams.generator(master, what)

        return kind.build(params, count, split, stream, NoDataSets())

    build_problem.__doc__ = kind.__doc__
    return build_problem
