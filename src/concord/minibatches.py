r"""Mini-batches: a problem whose gradients are estimated from a few of each agent's points.

With b points drawn of the n_i that agent i has, the likelihood's part is scaled by n_i / b and the
prior's is exact, so that the estimate is unbiased (gurbuzbalaban2021, eq. 3.2).
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from concord.errors import ConcordError
from concord.options import Count, Options


class Batches(Options, kw_only=True):
    """Options of mini-batch gradients: their size, order, scale and pool of points."""

    batch_size: Annotated[
        Count | None, "points per mini-batch, at most as many as an agent has; none: full gradients"
    ] = None
    batch_order: Annotated[
        Literal["with_replacement", "epochs", "whole_batches"],
        "points of a mini-batch are drawn independently, or without replacement in epochs, or in "
        "epochs of whole batches, which leave out points that do not fill one",
    ] = "with_replacement"
    batch_scale: Annotated[
        Literal["data", "none", "mean"],
        "a mini-batch's gradient is scaled up to all of the agent's points; or it is the sum over "
        "the mini-batch, so that the data count as much as that; or its mean, as much as one point",
    ] = "data"
    batch_pool: Annotated[
        Literal["all", "all_but_last"],
        "points of an agent that mini-batches are drawn from: all, or all but the last",
    ] = "all"

    @property
    def points_stood_for(self) -> int | None:
        """The number of points that the likelihood's gradient is scaled to.

        None: the number of the agent's own points, so that the estimate is unbiased.
        """
        return {"data": None, "none": self.batch_size, "mean": 1}[self.batch_scale]

    def check_scale(self) -> None:
        """Refuse a scale or a pool of mini-batches that is given without a batch size."""
        scale, pool = self.batch_scale, self.batch_pool
        if self.batch_size is None and (scale, pool) != ("data", "all"):
            key, value = ("batch_scale", scale) if scale != "data" else ("batch_pool", pool)
            raise ConcordError(
                f"{key}: {value} is of mini-batches, but batch_size is not given; give one, or "
                f"remove {key}"
            )

    def check_points(self, counts: np.ndarray) -> None:
        """Refuse mini-batches of more points than any agent has.

        counts: number of points of each agent, (agents,). Where one has enough, an agent of fewer
        draws some of its own more than once.
        """
        if self.batch_size is not None and self.batch_size > counts.max():
            raise ConcordError(
                f"batch_size: {self.batch_size} is more points than any agent has, the most are "
                f"the {counts.max()} of agent {counts.argmax()}; take at most as many, or leave it "
                "out for full gradients"
            )


def batches_of(sampler: object) -> Batches | None:
    """Return a sampler's options of mini-batches. None where it takes full gradients."""
    return sampler if isinstance(sampler, Batches) and sampler.batch_size is not None else None
