r"""Moments of affine samplers on networks where not everything arrives.

The state t holds the agents' blocks s and, where receivers remember (``reuse_last``), what they
have of every way, h. With ``Arrivals`` (``concord.laws.exact``), z what was sent and y what a
receiver takes otherwise, one iteration is

.. math::
    s^* = A s + c + B w + F (h - x), \qquad r = y + m \circ (z + e - y), \qquad
    s' = s + a \circ \bigl( s^* + G (r - z) - s \bigr), \qquad h' = r

(with ``sender_keeps`` y = 0, and G has besides what comes back to the sender's own block; no noise
comes back, so that m o e then stands apart, behind a G without this), where a is 1 for agents that
are awake and m for ways over which a vector arrives, and e is the channel's noise, of covariance
``noise`` times the identity. Since a vector arrives only at agents that are
awake, this is t' = t + K (b o (V t + v + w)) with b = (a, m), w in its second part with e, and

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
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from concord.laws.exact import Affine, Arrivals, Moments, Update

# First and second moments of b in iteration k, shapes (agents + edges,) and the square of it.
Chances = Callable[[int], tuple[np.ndarray, np.ndarray]]

_Four = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Losses(NamedTuple):
    """What happens to vectors on their way.

    chances: moments of what is drawn in each iteration.
    ways: receiver and sender of each way, in the order of ``Arrivals``.
    on_loss: what is taken for what does not arrive (``concord.networks.conditions``): with
    ``reuse_last`` what the receiver has heard last (at first the sender's start, which it knows),
    with ``sender_keeps`` nothing, and what the vector would have been is the sender's; otherwise
    what the receiver has itself.
    noise: variance that the channel adds to each coordinate of a vector that arrives, on each way
    by itself.
    """

    chances: Chances
    ways: tuple[np.ndarray, np.ndarray]
    on_loss: str
    noise: float = 0.0


@dataclass(frozen=True, eq=False)
class Move:
    """One iteration t' = t + K (b o (V t + v + w)); versions of it are stacked before.

    change, offset, noise: V, v and the covariance of w, shapes (..., D, T), (..., D) and (..., D,
    D).
    spread: K, shape (..., T, D).
    first, second: moments of b, shapes (D,) and (D, D).
    """

    change: np.ndarray
    offset: np.ndarray
    noise: np.ndarray
    spread: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @classmethod
    def stacked(cls, moves: Sequence[Move]) -> Move:
        """Return moves of versions as one; what is drawn is the same for all."""
        change, offset, noise, spread = (
            np.stack([getattr(move, name) for move in moves])
            for name in ("change", "offset", "noise", "spread")
        )
        return cls(change, offset, noise, spread, moves[0].first, moves[0].second)

    @cached_property
    def lead(self) -> np.ndarray:
        """The mean matrix of the update, (..., T, T)."""
        return np.eye(self.change.shape[-1]) + (self.spread * self.first) @ self.change

    def of(self, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Return mean (..., T) and covariance (..., T, T) of the next iteration."""
        center = np.matvec(self.change, mean) + self.offset
        reach = self.spread * self.first
        seen = self.change @ cov
        both = seen @ self.change.swapaxes(-1, -2) + self.noise
        both *= self.second
        apart = self.second - np.multiply.outer(self.first, self.first)
        both += apart * (center[..., :, None] * center[..., None, :])
        cov = cov + 2 * reach @ seen + self.spread @ both @ self.spread.swapaxes(-1, -2)
        # Rounding that is not symmetric would grow.
        return mean + np.matvec(reach, center), (cov + cov.swapaxes(-1, -2)) / 2


def moves(
    update: Update, losses: Losses, size: int, agents: int, dim: int
) -> tuple[Callable[[int], Move], np.ndarray, np.ndarray]:
    """Return the move of iteration k, and what makes t of the state s: (T, S), and (T,) to add.

    ``update`` states its ``arrivals``; ``size`` is S.
    """
    chances, ways, on_loss, noise = losses
    arrivals_at, begin = update.arrivals, update.start
    assert arrivals_at is not None and begin is not None and begin.lanes is not None
    positions, edge = agents * dim, len(ways[0]) * dim
    count = len(begin.lanes[1]) // positions
    lanes = np.eye(count)
    of_senders = np.kron(np.eye(agents)[ways[1]], np.eye(dim))
    heard = np.kron(lanes, of_senders)  # of what is sent
    taken = np.kron(lanes, np.kron(np.eye(agents)[ways[0]], np.eye(dim)))
    edges = count * edge
    remembers, returns = on_loss == "reuse_last", on_loss == "sender_keeps"
    apart = edges * bool(returns and noise)  # what comes back to the sender is without noise
    added = np.zeros((size + edges + apart,) * 2)
    added[size + apart :, size + apart :] = noise * np.eye(edges)
    state = np.eye(size, size + edges * remembers)
    memory = np.eye(edges, size + edges, size) if remembers else None
    # What is sent over each way, beyond what the receiver takes otherwise of what is there.
    beyond = heard if remembers or returns else heard - taken
    drawn = np.concatenate(
        [
            np.tile(np.repeat(np.arange(agents), dim), size // positions),
            np.tile(agents + np.repeat(np.arange(len(ways[0])), dim), count * (2 if apart else 1)),
        ]
    )

    def made(step: Affine, arrivals: Arrivals) -> _Four:
        fresh = arrivals.heard
        noisy = fresh[:, :apart]
        if returns:
            fresh = fresh - _returned(fresh, ways, agents, dim)
        there, sent = step.matrix @ state, arrivals.sent @ state
        if memory is not None:
            before = memory[:edge] - of_senders @ state[:positions]
            there = there + arrivals.late[:size] @ before
            sent = sent + arrivals.late[size:] @ before
        differs, constant = beyond @ sent, beyond @ arrivals.shift
        if memory is not None:
            differs = differs - memory
        kicks = beyond @ arrivals.noise[size:]
        kicks = np.concatenate([arrivals.noise[:size] - fresh @ kicks, kicks])
        change = np.concatenate([there - state - fresh @ differs, differs])
        spread = np.concatenate([np.eye(size), fresh, noisy], axis=1)
        if memory is not None:
            spread = np.block([[spread], [np.zeros((edges, size)), np.eye(edges)]])
        shift = np.concatenate([step.offset - fresh @ constant, constant])
        if apart:
            change, kicks = (np.pad(part, ((0, apart), (0, 0))) for part in (change, kicks))
            shift = np.pad(shift, (0, apart))
        return change, shift, kicks @ kicks.T + added, spread

    kept: list[tuple[Affine, Arrivals, _Four]] = []

    def parts(step: Affine, arrivals: Arrivals) -> _Four:
        for known, same, found in kept:
            if known is step and same is arrivals:
                return found
        kept[:] = [(step, arrivals, made(step, arrivals)), *kept[:7]]
        return kept[0][2]

    def at(k: int) -> Move:
        first, second = (part[np.ix_(*[drawn] * part.ndim)] for part in chances(k))
        return Move(*parts(update.at(k), arrivals_at(k)), first, second)

    start, shift = np.eye(size), np.zeros(size)
    if remembers:
        first, offset = begin.lanes
        start = np.concatenate([start, heard @ first @ np.eye(positions, size)])
        shift = np.concatenate([shift, heard @ offset])
    return at, start, shift


def _returned(
    fresh: np.ndarray, ways: tuple[np.ndarray, np.ndarray], agents: int, dim: int
) -> np.ndarray:
    """Return what vectors would make of their senders' blocks, in place of the receivers'."""
    edges = np.arange(len(ways[0]))
    lanes = fresh.shape[1] // (len(edges) * dim)
    blocks = fresh.reshape(-1, agents, dim, lanes, len(edges), dim)
    moved = np.zeros_like(blocks)
    moved[:, ways[1], :, :, edges] = blocks[:, ways[0], :, :, edges]
    return moved.reshape(fresh.shape)
