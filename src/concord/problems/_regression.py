"""A base class of regression problems: an agent's share of the prior, and mini-batch gradients."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np

from concord.errors import ConcordError
from concord.problem import ALL, Agents
from concord.problems.one_data_set import OneDataSet
from concord.sampling.partition import AgentData

PriorShare = Annotated[
    Literal["split", "omitted", "whole", "twice"],
    "prior in each agent's potential: 1/N of it (split), none (omitted), all of it (whole), or all "
    "of it twice, where a code has 2/lambda for 1/lambda",
]


def prior_share(share: str, agents: int, local: np.ndarray | None = None) -> Any:
    """Return the number of log priors in an agent's potential: 1 / N, 0, 1 or 2.

    share: ``split``, ``omitted``, ``whole`` or ``twice``. Of local coordinates, a mask (dim,), a
    potential holds the whole prior. The result is then an array.
    """
    if local is not None and share != "split":
        raise ConcordError(f"prior_share: {share} does not go with local coordinates; use split")
    shares = {"split": 1 / agents, "omitted": 0.0, "whole": 1.0, "twice": 2.0}
    return shares[share] if local is None else np.where(local, 1.0, shares[share])


class GeneralizedLinearProblem(OneDataSet):
    """A base class of generalized linear models with mini-batch gradients.

    A subclass has ``data``, the agents' rows; ``link``, the mean h of a target given x^T X;
    ``precision``, a factor of the log likelihood; and ``prior_gradient``.
    """

    data: AgentData
    link: Callable[[np.ndarray], np.ndarray]
    prior_gradient: Callable[[np.ndarray], np.ndarray]
    precision: float = 1.0

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return mini-batch gradients (``WithMiniBatches``), (chains, agents, dim)."""
        return self.batch_gradient_of(ALL, x, rows)

    def batch_gradient_of(self, agents: Agents, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        r"""Return mini-batch gradients of chosen agents, (chains, few, dim).

        .. math:: \frac{n_i}{b} \sum_j (h(x_i^\top X_j) - y_j) X_j

        of the rows j, (chains, few, b), plus the prior's gradient. agents: their numbers, (chains,
        few). x: their positions, (chains, few, dim).
        """
        features, targets = self.data.points_at(rows, agents)
        residual = self.link((features @ x[..., None])[..., 0]) - targets
        residual *= (self.data.counts / rows.shape[-1])[agents, None]
        slopes = (residual[..., None, :] @ features)[..., 0, :]
        return self.precision * slopes + self.prior_gradient(x)
