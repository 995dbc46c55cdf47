"""Random parts of nearly equal size."""

import numpy as np

from concord.options import Options as Params
from concord.sampling.partition import Parts, check_rows


def split(
    params: Params, rows: int, labels: np.ndarray | None, agents: int, rng: np.random.Generator
) -> Parts:
    """Return each agent's row numbers, divided at random; sizes differ by at most one."""
    check_rows(rows, agents)
    return np.array_split(rng.permutation(rows), agents)
