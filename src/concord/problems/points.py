"""What problems that draw their points share: their number, and draws as of released code."""

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from concord.sampling.partition import check_rows, consecutive_counts

Draw = Callable[[np.random.RandomState, np.ndarray, np.ndarray], np.ndarray]

LegacySeed = Annotated[
    Annotated[int, Meta(ge=0, le=2**32 - 1)] | None,
    "draw the data agent by agent from NumPy's legacy generator with this seed, as "
    "tzikas2024's authors do; none: from the paper's data stream",
]


def check_agents(params: Any, agents: int) -> None:
    """Raise a ConcordError if there are more agents than points."""
    check_rows(params.points, agents)


def draw_legacy_data(
    seed: int, points: int, agents: int, variances: tuple[float, float], dim: int, draw: Draw
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw a parameter and the agents' points in the order of the code released for tzikas2024.

    seed: of ``numpy.random.RandomState``. variances: of the entries of the parameter, and of the
    features. draw: ``draw(rng, features, parameter)`` returns an agent's targets. Return the
    parameter (dim,), features (points, dim) and targets (points,).
    """
    rng = np.random.RandomState(seed)
    origin, identity = np.zeros(dim), np.eye(dim)
    truth = rng.multivariate_normal(origin, variances[0] * identity)
    features, drawn = [], []
    for count in consecutive_counts(points, agents):
        block = rng.multivariate_normal(origin, variances[1] * identity, size=count)
        features.append(block)
        drawn.append(draw(rng, block, truth))
    return truth, np.concatenate(features), np.concatenate(drawn)
