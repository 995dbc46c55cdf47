"""Random parts whose sizes fall geometrically from the first agent to the last."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from concord.errors import ConcordError
from concord.options import Options
from concord.sampling.partition import Parts, check_rows


class Params(Options):
    """The option that says how much the agents' numbers of rows differ."""

    ratio: Annotated[float, Meta(ge=1), "rows of the first agent over those of the last, about"]


def split(
    params: Params, rows: int, labels: np.ndarray | None, agents: int, rng: np.random.Generator
) -> Parts:
    """Return each agent's row numbers. A ConcordError if the last agent would have none."""
    check_rows(rows, agents)
    sizes = params.ratio ** -np.linspace(0, 1, agents)
    ends = np.rint(rows * np.cumsum(sizes) / sizes.sum()).astype(int)
    parts = np.split(rng.permutation(rows), ends[:-1])
    if min(map(len, parts)) == 0:
        raise ConcordError(
            f"{rows} rows at ratio {params.ratio:g} leave an agent of {agents} without any; lower "
            "the ratio or use fewer agents"
        )
    return parts
