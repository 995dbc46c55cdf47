"""What regressions share: the prior's share of an agent, the link function, mini-batches."""

from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np

from concord.contracts import BatchGradient
from concord.sampling.partition import AgentData

PriorShare = Annotated[
    Literal["split", "omitted", "whole", "twice"],
    "prior in each agent's potential: 1/N of it (split), none (omitted), all of it (whole), or all "
    "of it twice, where a code has 2/lambda for 1/lambda",
]
Function = Callable[[np.ndarray, np.ndarray], object]


def prior_share(share: str, agents: int) -> float:
    """Return how many times each agent's potential holds the log prior."""
    return {"split": 1 / agents, "omitted": 0.0, "whole": 1.0, "twice": 2.0}[share]


def batch_gradient(
    data: AgentData,
    chains: int,
    batch_size: int,
    link: Function | None,
    precision: float,
    add_prior: Function,
) -> BatchGradient:
    r"""Return ``g(x, rows, out)``, the mini-batch gradient of a generalized linear model.

    .. math:: \frac{n_i p}{b} \sum_j (h(x_i^\top X_j) - y_j) X_j + \text{the prior's part}

    ``link(z, out)`` writes h (None: the identity), ``precision`` is p, and ``add_prior(x, out)``
    adds the prior's part.
    """
    agents, most, dim = data.features.shape
    shape = (chains, agents, batch_size)
    features = np.empty((*shape, dim))
    targets, residual = np.empty(shape), np.empty(shape)
    flat = np.empty(shape, dtype=np.intp)
    offset = (np.arange(agents) * most)[:, None]
    table, column = data.features.reshape(-1, dim), data.targets.reshape(-1)
    scale = (precision * data.counts / batch_size)[:, None]

    def gradient(x: np.ndarray, rows: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.add(rows, offset, out=flat)
        table.take(flat, 0, features, "clip")
        column.take(flat, None, targets, "clip")
        np.matmul(features, x[..., None], out=residual[..., None])
        if link is not None:
            link(residual, residual)
        np.subtract(residual, targets, out=residual)
        np.matmul(residual[..., None, :], features, out=out[..., None, :])
        np.multiply(out, scale, out=out)
        add_prior(x, out)
        return out

    return gradient


def sigmoid(z: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return 1 / (1 + exp(-z)) without overflow, as (1 + tanh(z / 2)) / 2."""
    out = np.multiply(z, 0.5, out=out)
    np.tanh(out, out=out)
    out += 1.0
    out *= 0.5
    return out
