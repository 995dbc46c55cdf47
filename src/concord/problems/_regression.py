"""Parts of regression problems: the prior's share of an agent, and mini-batch gradients."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

from concord.sampling.partition import AgentData

PriorShare = Annotated[
    Literal["split", "omitted", "whole", "twice"],
    "prior in each agent's potential: 1/N of it (split), none (omitted), all of it (whole), or all "
    "of it twice, where a code has 2/lambda for 1/lambda",
]


def prior_share(share: str, agents: int) -> float:
    """Return how many log priors an agent's potential holds: 1 / N for ``split``, 0, 1 or 2."""
    return {"split": 1 / agents, "omitted": 0.0, "whole": 1.0, "twice": 2.0}[share]


def batch_slopes(
    data: AgentData,
    x: np.ndarray,
    rows: np.ndarray,
    link: Callable[[np.ndarray], np.ndarray],
    agents: Any = slice(None),
) -> np.ndarray:
    r"""Return the likelihood's mini-batch gradients in a generalized linear model.

    .. math:: \frac{n_i}{b} \sum_j (h(x_i^\top X_j) - y_j) X_j

    of the rows j, (chains, agents, b), with h the link. agents: a few, (chains, few).
    """
    features, targets = data.points_at(rows, agents)
    residual = link((features @ x[..., None])[..., 0]) - targets
    residual *= (data.counts / rows.shape[-1])[agents, None]
    return (residual[..., None, :] @ features)[..., 0, :]
