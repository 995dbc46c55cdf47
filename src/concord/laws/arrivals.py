r"""Moments of affine samplers on networks where not everything arrives.

The state t holds the agents' blocks s and, where receivers remember (``reuse_last``), what they
have of every way. With ``Arrivals`` (``concord.laws.exact``), z what was sent and y what a receiver
takes otherwise, one iteration is

.. math::
    s^* = A s + c + w + G_0 (h - S x), \qquad r = y + m \circ (z - y), \qquad
    s' = s + a \circ \bigl( s^* + G (r - z) - s \bigr), \qquad h' = r

where a is 1 for agents that are awake and m for ways over which a vector arrives. Since a vector
arrives only at agents that are awake, this is t' = t + K (b o (V t + v + w)) with b = (a, m), and

.. math::
    C' = C + C V^\top \beta K^\top + K \beta V C
         + K \bigl( \Pi \circ (V C V^\top + Q) + (\Pi - \beta \beta^\top) \circ g g^\top \bigr)
           K^\top, \qquad g = V m + v, \quad \beta = E b, \quad \Pi = E b b^\top.

With Pi = beta beta^T this is the law given a and m, which is Gaussian; averaged over draws that are
independent from iteration to iteration mean and covariance are exact, but the law is a mixture, and
the W2 of its moments a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from concord.laws.exact import Law, Update, follow

# First and second moments of b in iteration k, shapes (agents + edges,) and the square of it.
Chances = Callable[[int], tuple[np.ndarray, np.ndarray]]


def each(first: np.ndarray, second: np.ndarray) -> Chances:
    """Return moments that are the same in all iterations."""
    return lambda k: (first, second)


def given(awake: np.ndarray, arrived: np.ndarray) -> Chances:
    """Return the moments of a and m that are known: (iterations, agents) and (..., edges)."""
    drawn = np.concatenate([awake, arrived], axis=1).astype(float)
    return lambda k: (drawn[k], np.multiply.outer(drawn[k], drawn[k]))


def propagate(
    update: Update,
    chances: Chances,
    ways: tuple[np.ndarray, np.ndarray],
    remembers: bool,
    mean0: np.ndarray,
    cov0: np.ndarray,
    iterations: int,
    record: Sequence[int],
    agents: int,
    dim: int,
) -> Law:
    """Return the moments at the recorded iterations, as ``exact.propagate`` does.

    Parameters
    ----------
    update
        The sampler's, which states its ``arrivals``.
    chances
        Moments of what is drawn in each iteration.
    ways
        Receiver and sender of each way, in the order of ``arrivals``.
    remembers
        Whether a receiver takes what it has heard last for what does not arrive (at first the
        sender's start, which it knows), or what it has itself.
    mean0, cov0, iterations, record, agents, dim
        As of ``exact.propagate``.
    """
    arrivals_at = update.arrivals
    assert arrivals_at is not None
    positions, size = agents * dim, len(mean0)
    heard = np.kron(np.eye(agents)[ways[1]], np.eye(dim))  # what is sent over each way, of x
    taken = np.kron(np.eye(agents)[ways[0]], np.eye(dim))
    edge = len(heard)
    state = np.eye(size, size + edge * remembers)
    x, memory = state[:positions], np.eye(edge, size + edge, size) if remembers else None
    drawn = np.concatenate(
        [
            np.tile(np.repeat(np.arange(agents), dim), size // positions),
            agents + np.repeat(np.arange(len(ways[0])), dim),
        ]
    )

    def advance(k: int, mean: np.ndarray, cov: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step, (fresh, stale) = update.at(k), arrivals_at(k)
        moved, kick = step.matrix @ state, np.eye(size)
        late = stale is not None  # it sends where it has moved to
        if stale is not None and memory is not None:
            moved = moved + stale @ (memory - heard @ x)
        sent = heard @ (moved[:positions] if late else x)
        differs = sent - (taken @ x if memory is None else memory)
        told = heard @ kick[:positions] * late
        change = np.concatenate([moved - state - fresh @ differs, differs])
        kicks = np.concatenate([kick - fresh @ told, told])
        spread = np.block([[kick, fresh]])
        if memory is not None:
            spread = np.block([[spread], [np.zeros((edge, size)), np.eye(edge)]])
        first, second = (part[np.ix_(*[drawn] * part.ndim)] for part in chances(k))
        center = change @ mean + kicks @ step.offset
        reach = spread * first
        across = reach @ (change @ cov)
        both = second * (change @ cov @ change.T + kicks @ step.noise @ kicks.T)
        both += (second - np.multiply.outer(first, first)) * np.multiply.outer(center, center)
        cov = cov + 2 * across + spread @ both @ spread.T
        return mean + reach @ center, (cov + cov.T) / 2  # rounding that is not symmetric would grow

    start = np.concatenate([np.eye(size), heard @ np.eye(positions, size)][: 1 + remembers])
    return follow(advance, start @ mean0, start @ cov0 @ start.T, iterations, record, agents, dim)
