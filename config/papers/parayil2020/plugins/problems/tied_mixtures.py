"""Mixtures of two Gaussians with tied means: several sets of points, and each chain has its own.

Chain c samples the posterior of set c mod ``data_sets``, so that replicates of an experiment
advance together like chains of one. The model is that of ``tied_mixture``.
"""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import numpy as np
from msgspec import Meta

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.problems.kinds import tied_mixture
from concord.problems.kinds.tied_mixture import TiedMixture
from concord.sampling.partition import Partition

check = tied_mixture.check


class Params(tied_mixture.Params):
    """Options of the mixture model, its prior, and the sets of points drawn from it."""

    data_sets: Annotated[int, Meta(ge=1, le=10000), "independent sets of points"] = 1


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> TiedMixtures:
    """Draw sets of points; the first ones are the same however many there are."""
    drawn = tied_mixture.draw_problems(params, agents, partition, stream)
    return TiedMixtures(list(islice(drawn, params.data_sets)), stream)


class TiedMixtures:
    """A problem with several data sets of the mixture: chain c has ``sets[c % len(sets)]``.

    All sets divide their points in the same numbers over the agents. They are sampled with full
    gradients.
    """

    dim = 2
    posterior = None

    def __init__(self, sets: list[TiedMixture], stream: Stream) -> None:
        self.sets, self._stream = sets, stream
        self.counts, self.agents = sets[0].counts, sets[0].agents
        self._of_chains = np.empty(0), np.empty(0)
        if any((one.counts != self.counts).any() for one in sets):
            raise ConcordError(
                "partition: data sets must divide their points in the same numbers; "
                "use kind equal or sizes"
            )

    def exact_pairs(self, counts: list[int]) -> list[np.ndarray]:
        """Draw counts[d] pairs of independent exact samples of each data set d, (2, counts[d], 2).

        The same at every call, and for every number of agents.
        """
        streams = self._stream("reference").spawn(len(self.sets))
        return [
            one.reference.sample(2 * count, rng).reshape(2, count, 2)
            for one, rng, count in zip(self.sets, streams, counts, strict=False)
        ]

    def from_chain(self, first: int) -> TiedMixtures:
        """Return the same problem with the chains counted from number ``first``."""
        start = first % len(self.sets)
        return TiedMixtures(self.sets[start:] + self.sets[:start], self._stream)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of every f_i at x_i, (chains, agents, 2)."""
        if len(self._of_chains[0]) != len(x):  # kept for the next call
            sets = [self.sets[chain % len(self.sets)] for chain in range(len(x))]
            self._of_chains = np.stack([s.points for s in sets]), np.stack([s.totals for s in sets])
        (points, totals), one = self._of_chains, self.sets[0]
        tilts = tied_mixture.component_contrasts(one.params, x, points)
        sums = np.stack([np.vecdot(tilts, one.mask), np.vecdot(tilts, points)], axis=-1)
        return one.gradients_from_sums(x, sums, totals)

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents), without constants of the normal densities."""
        values = np.empty(x.shape[:2])
        for number, one in enumerate(self.sets[: len(x)]):
            values[number :: len(self.sets)] = one.potential(x[number :: len(self.sets)])
        return values
