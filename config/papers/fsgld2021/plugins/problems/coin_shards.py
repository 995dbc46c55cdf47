r"""Tosses of a coin with probability theta of heads, each shard with as many heads as is stated.

.. math:: f_s(\theta) = -k_s \log \theta - (n_s - k_s) \log(1 - \theta)

The prior is uniform. It has gradients for theta in (0, 1) alone.
"""

from typing import Annotated, Any

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Count, Index, Options, Some
from concord.problems.one_data_set import OneDataSet
from concord.sampling.partition import Partition
from concord_studies.contracts import ProblemDeclaration


class Params(Options):
    """Options of the tosses."""

    heads: Annotated[Some[Index], "heads k_s among the tosses of each shard"] = (1, 5, 9)
    tosses: Annotated[Count, "tosses of each shard"] = 10


DECLARES = ProblemDeclaration(name="tosses of a coin")


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for other than one number for each agent, or more heads than tosses."""
    if len(params.heads) != agents or max(params.heads) > params.tosses:
        raise ConcordError(
            f"heads: {len(params.heads)} shards with up to {max(params.heads)} heads are not of "
            f"{agents} agents with {params.tosses} tosses; give each agent at most as many"
        )


class CoinShards(OneDataSet):
    """Shards of tosses, one for each agent; heads: (agents, tosses), 1 or 0."""

    dim, posterior = 1, None

    def __init__(self, heads: np.ndarray) -> None:
        self.heads, (self.agents, tosses) = heads, heads.shape
        self.counts = np.full(self.agents, tosses)

    def point_gradients(self, theta: Any) -> np.ndarray:
        """Return gradients of the log likelihood of each toss, (..., agents, tosses, 1)."""
        theta = np.asarray(theta)[..., None, None, :]
        slopes: np.ndarray = (self.heads[..., None] - theta) / (theta * (1 - theta))
        return slopes

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of f_s at each agent's x, (chains, agents, 1)."""
        heads = self.heads.sum(axis=1)[:, None]
        return (self.counts[:, None] * x - heads) / (x * (1 - x))

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return unbiased estimates of the gradients from the tosses ``rows``."""
        share = self.heads[np.arange(self.agents)[:, None], rows].mean(axis=-1)[..., None]
        return self.counts[:, None] * (x - share) / (x * (1 - x))


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> CoinShards:
    """Give each agent its heads, and tails for the rest."""
    return CoinShards((np.arange(params.tosses) < np.array(params.heads)[:, None]).astype(float))
