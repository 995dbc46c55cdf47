r"""Agents that lie, and averages that withstand some of them.

A byzantine agent follows the sampler, but sends to all neighbors another vector than its own x:
:math:`-a x` (``TurnedSign``), normal numbers (``SentNoise``), or the same number in every
coordinate (``SentConstant``).

Robust mixing changes what an agent makes of the d vectors that it hears, coordinate by coordinate,
before it weighs them:

.. math::
    \sum_j M_{ij} x_j \to M_{ii} x_i + \sum_{j \ne i} M_{ij} \tilde x_j

With the trimmed mean, :math:`\tilde x_j` is the agent's own :math:`x_i` where :math:`x_j` is among
the t largest or the t smallest, and :math:`x_j` otherwise, so that t = 0 is the plain mixture. With
the median it is the median of all :math:`x_j, j \ne i`, whatever j. Both are continuous and not
linear: a sampler with robust mixing has no exact law, with lies alone it has.

Source: Yin, Chen, Ramchandran, Bartlett, "Byzantine-robust distributed learning", 2018, arXiv
1803.01498 (both rules at a server); Fang, Yang, Bajwa, "BRIDGE", 2022, arXiv 1908.08098 (between
neighbors). In our form: dropped vectors leave their weight to the agent's own.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from concord.errors import ConcordError
from concord.networks.graph import Graph
from concord.options import Index, Kind, NonNegative, Positive, Some

Liars = Annotated[Some[Index], "numbers of the agents that lie"]


class TurnedSign(Kind, tag="sign"):
    """A lie by which agents send their vector with its sign turned, -a x."""

    agents: Liars
    factor: Annotated[Positive, "a, how many times as long as the own vector it is"] = 1.0

    def lie(self, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return -a x for the liars' vectors x, (chains, liars, dim)."""
        return -self.factor * vectors


class SentNoise(Kind, tag="noise"):
    """A lie by which agents send normal numbers, drawn anew each time."""

    agents: Liars
    sd: Annotated[NonNegative, "standard deviation of each coordinate"]

    def lie(self, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return normal numbers of the shape of the liars' vectors, (chains, liars, dim)."""
        return self.sd * rng.standard_normal(vectors.shape, dtype=vectors.dtype.type)


class SentConstant(Kind, tag="constant"):
    """A lie by which agents send the same number in every coordinate."""

    agents: Liars
    value: Annotated[float, "the number that is sent"]

    def lie(self, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the constant in the shape of the liars' vectors, (chains, liars, dim)."""
        return np.full_like(vectors, self.value)


class TrimmedMean(Kind, tag="trimmed_mean"):
    """A mixture without the t largest and the t smallest of what an agent hears."""

    trim: Annotated[Index, "t, how many are dropped at either end, coordinate by coordinate"]

    def replace(self, received: np.ndarray, fallback: np.ndarray) -> np.ndarray:
        """Replace the t largest and t smallest of d vectors by the receiver's own, by coordinate.

        received, and the result: (receivers, d, chains, dim). fallback: the receiver's own vector,
        (receivers, 1, chains, dim).
        """
        rank = received.argsort(axis=1, kind="stable").argsort(axis=1)
        inside = (rank >= self.trim) & (rank < received.shape[1] - self.trim)
        return np.where(inside, received, fallback)


class Median(Kind, tag="median"):
    """A mixture with the median of what an agent hears, coordinate by coordinate."""

    def replace(self, received: np.ndarray, fallback: np.ndarray) -> np.ndarray:
        """Replace each of the d vectors that an agent receives by their median, by coordinate.

        received, and the result: (receivers, d, chains, dim). fallback: unused.
        """
        return np.broadcast_to(np.median(received, axis=1, keepdims=True), received.shape)


Lie = TurnedSign | SentNoise | SentConstant
RobustMixing = TrimmedMean | Median


def tell_lies(lie: Lie, vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Replace the liars' rows of vectors (agents, chains, dim) by lies; return all that is sent."""
    liars, sent = list(lie.agents), vectors.copy()
    sent[liars] = lie.lie(vectors[liars].swapaxes(0, 1), rng).swapaxes(0, 1)
    return sent


def replace_heard(
    rule: RobustMixing, graph: Graph, received: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """Replace the vectors that agents receive by a rule of robust mixing, for each receiver apart.

    received, and the result: (arcs, chains, dim). x: the agents' vectors, (chains, agents, dim).
    """
    weighed = np.empty_like(received)
    first = np.searchsorted(graph.receivers, np.arange(graph.agents))
    for count in set(graph.in_degrees.tolist()) - {0}:  # agents that hear equally many, together
        receivers = np.flatnonzero(graph.in_degrees == count)
        arcs = first[receivers, None] + np.arange(count)
        weighed[arcs] = rule.replace(received[arcs], x.transpose(1, 0, 2)[receivers, None])
    return weighed


def check_trim(rule: RobustMixing | None, graph: Graph, where: str) -> None:
    """Raise a ConcordError if trimming leaves nothing of what some agent hears."""
    least = int(graph.in_degrees.min())
    if isinstance(rule, TrimmedMean) and rule.trim and 2 * rule.trim >= least:
        raise ConcordError(
            f"{where}.robust.trim: {rule.trim} at either end leaves nothing of {least} vectors, "
            "the fewest that an agent hears; trim less"
        )
