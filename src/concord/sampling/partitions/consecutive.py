"""Rows in their order, in parts of nearly equal size."""

import numpy as np

from concord.options import Options as Params
from concord.sampling.partition import Parts, consecutive_counts


def split(
    params: Params, rows: int, labels: np.ndarray | None, agents: int, rng: np.random.Generator
) -> Parts:
    """Return each agent's consecutive row numbers; sizes differ by at most one."""
    ends = np.cumsum(consecutive_counts(rows, agents))
    return np.split(np.arange(rows), ends[:-1])
