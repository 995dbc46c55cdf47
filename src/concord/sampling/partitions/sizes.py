"""Random parts of given sizes."""

from typing import Annotated

import numpy as np

from concord.errors import ConcordError
from concord.options import Count, Options
from concord.sampling.partition import Parts


class Params(Options):
    """The number of rows of each agent."""

    sizes: Annotated[tuple[Count, ...], "number of rows of each agent, in agent order"]


def split(
    params: Params, rows: int, labels: np.ndarray | None, agents: int, rng: np.random.Generator
) -> Parts:
    """Return each agent's row numbers; agent i gets ``sizes[i]`` rows."""
    counts = params.sizes
    if len(counts) != agents:
        raise ConcordError(f"{len(counts)} sizes for {agents} agents; give one per agent")
    if sum(counts) != rows:
        raise ConcordError(
            f"sizes add up to {sum(counts)} but there are {rows} rows; make them equal"
        )
    return np.split(rng.permutation(rows), np.cumsum(counts)[:-1])
