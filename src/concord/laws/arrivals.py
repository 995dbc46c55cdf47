r"""Moments of affine samplers on networks where vectors may be lost or changed.

A way is a directed edge of the graph, on one lane.

The state t holds the agents' blocks s and, where receivers remember (``reuse_last``), what they
received last over every way, h. With ``Arrivals`` (``concord.laws.exact``), z the sent vectors and
y those that receivers use in place of lost ones, one iteration is

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

_MoveArrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Losses(NamedTuple):
    """The random losses of vectors, and what receivers use in place of lost vectors.

    chances: function of the iteration that returns the first and second moments of the indicators
    of awake agents and arriving vectors.
    ways: receiver and sender of each directed edge, in the order of ``Arrivals``.
    on_loss: what a receiver uses in place of a lost vector (``concord.networks.conditions``): with
    ``reuse_last`` the last one received (at first the sender's start, which it knows), with
    ``sender_keeps`` nothing, and the sender keeps the vector's weight; otherwise the receiver's own
    vector.
    noise: variance that the channel adds to each coordinate of a vector that arrives, independently
    over directed edges.
    """

    chances: Chances
    ways: tuple[np.ndarray, np.ndarray]
    on_loss: str
    noise: float = 0.0


@dataclass(frozen=True, eq=False)
class Move:
    """One iteration t' = t + K (b o (V t + v + w)) with a random vector b of zeros and ones.

    change, offset, noise: V, v and the covariance of w, shapes (..., D, T), (..., D) and (..., D,
    D).
    spread: K, shape (..., T, D).
    gain: what w has of the errors of mini-batch gradients, shape (..., D, agents * dim), or without
    columns; ``noise`` is without these errors.
    first, second: E b and E b b^T, shapes (D,) and (D, D).

    Versions of a sampler stand on the first axis of all but the last two.
    """

    change: np.ndarray
    offset: np.ndarray
    noise: np.ndarray
    spread: np.ndarray
    gain: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @classmethod
    def stack_versions(cls, moves: Sequence[Move]) -> Move:
        """Stack the moves of versions; b has the same moments in all of them."""
        change, offset, noise, spread, gain = (
            np.stack([getattr(move, name) for move in moves])
            for name in ("change", "offset", "noise", "spread", "gain")
        )
        return cls(change, offset, noise, spread, gain, moves[0].first, moves[0].second)

    @cached_property
    def lead(self) -> np.ndarray:
        """The matrix I + K diag(E b) V by which the mean moves, (..., T, T)."""
        return np.eye(self.change.shape[-1]) + (self.spread * self.first) @ self.change

    def apply(self, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Return mean (..., T) and covariance (..., T, T) of the next iteration."""
        center = np.matvec(self.change, mean) + self.offset
        mean_spread = self.spread * self.first
        image = self.change @ cov
        both = image @ self.change.swapaxes(-1, -2) + self.noise
        both *= self.second
        indicator_cov = self.second - np.multiply.outer(self.first, self.first)
        both += indicator_cov * (center[..., :, None] * center[..., None, :])
        cov = cov + 2 * mean_spread @ image + self.spread @ both @ self.spread.swapaxes(-1, -2)
        # Rounding that is not symmetric would grow.
        return mean + np.matvec(mean_spread, center), (cov + cov.swapaxes(-1, -2)) / 2


def build_moves(
    update: Update, losses: Losses, size: int, agents: int, dim: int
) -> tuple[Callable[[int], Move], np.ndarray, np.ndarray]:
    """Return the moves of a sampler on a network with losses, and the map from s to t.

    update: the sampler's update, with ``arrivals``. losses: fate of vectors. size: S, the entries
    of the state s. agents, dim: number of agents and of entries of each.
    Returns a function from the iteration to its ``Move``, and a matrix (T, S) and an offset (T,)
    that map the state s at iteration 0 to t, which has also what receivers remember.
    """
    chances, ways, on_loss, noise = losses
    arrivals_at, begin = update.arrivals, update.start
    assert arrivals_at is not None and begin is not None and begin.lanes is not None
    positions, edge = agents * dim, len(ways[0]) * dim
    count = len(begin.lanes[1]) // positions
    lanes = np.eye(count)
    of_senders = np.kron(np.eye(agents)[ways[1]], np.eye(dim))
    from_senders = np.kron(lanes, of_senders)  # of what is sent
    from_receivers = np.kron(lanes, np.kron(np.eye(agents)[ways[0]], np.eye(dim)))
    edges = count * edge
    remembers, returns = on_loss == "reuse_last", on_loss == "sender_keeps"
    extra = edges * bool(returns and noise)  # what comes back to the sender is without noise
    added = np.zeros((size + edges + extra,) * 2)
    added[size + extra :, size + extra :] = noise * np.eye(edges)
    state = np.eye(size, size + edges * remembers)
    memory = np.eye(edges, size + edges, size) if remembers else None
    # What is sent over each way, beyond what the receiver takes otherwise of what is there.
    beyond = from_senders if remembers or returns else from_senders - from_receivers
    drawn = np.concatenate(
        [
            np.tile(np.repeat(np.arange(agents), dim), size // positions),
            np.tile(agents + np.repeat(np.arange(len(ways[0])), dim), count * (2 if extra else 1)),
        ]
    )

    def compute_arrays(step: Affine, arrivals: Arrivals) -> _MoveArrays:
        """Return V, v, the covariance of w, K, and the gain of gradient errors of one iteration."""
        received = arrivals.heard
        noisy = received[:, :extra]
        if returns:
            received = received - _move_to_senders(received, ways, agents, dim)
        next_state, sent = step.matrix @ state, arrivals.sent @ state
        if memory is not None:
            before = memory[:edge] - of_senders @ state[:positions]
            next_state = next_state + arrivals.late[:size] @ before
            sent = sent + arrivals.late[size:] @ before
        differs, constant = beyond @ sent, beyond @ arrivals.shift
        if memory is not None:
            differs = differs - memory

        def move_kicks(numbers: np.ndarray) -> np.ndarray:
            """Return what w has of random numbers, given what the next state and z have of them."""
            sent = beyond @ numbers[size:]
            moved = np.concatenate([numbers[:size] - received @ sent, sent])
            return np.pad(moved, ((0, extra), (0, 0)))

        kicks, gain = move_kicks(arrivals.noise), move_kicks(arrivals.errors)
        change = np.concatenate([next_state - state - received @ differs, differs])
        spread = np.concatenate([np.eye(size), received, noisy], axis=1)
        if memory is not None:
            spread = np.block([[spread], [np.zeros((edges, size)), np.eye(edges)]])
        shift = np.concatenate([step.offset - received @ constant, constant])
        if extra:
            change = np.pad(change, ((0, extra), (0, 0)))
            shift = np.pad(shift, (0, extra))
        return change, shift, kicks @ kicks.T + added, spread, gain

    cache: list[tuple[Affine, Arrivals, _MoveArrays]] = []

    def cached_arrays(step: Affine, arrivals: Arrivals) -> _MoveArrays:
        """Return the arrays of an iteration; those of the last eight iterations are cached."""
        for cached_step, cached_arrivals, arrays in cache:
            if cached_step is step and cached_arrivals is arrivals:
                return arrays
        cache[:] = [(step, arrivals, compute_arrays(step, arrivals)), *cache[:7]]
        return cache[0][2]

    def move_at(k: int) -> Move:
        """Return the move of iteration k."""
        first, second = (part[np.ix_(*[drawn] * part.ndim)] for part in chances(k))
        return Move(*cached_arrays(update.at(k), arrivals_at(k)), first, second)

    start, shift = np.eye(size), np.zeros(size)
    if remembers:
        first, offset = begin.lanes
        start = np.concatenate([start, from_senders @ first @ np.eye(positions, size)])
        shift = np.concatenate([shift, from_senders @ offset])
    return move_at, start, shift


def _move_to_senders(
    received: np.ndarray, ways: tuple[np.ndarray, np.ndarray], agents: int, dim: int
) -> np.ndarray:
    """Return G with each vector's effect in its sender's block instead of its receiver's.

    received: G, (S, lanes * edges * dim). ways: receiver and sender of each directed edge.
    """
    edges = np.arange(len(ways[0]))
    lanes = received.shape[1] // (len(edges) * dim)
    blocks = received.reshape(-1, agents, dim, lanes, len(edges), dim)
    moved = np.zeros_like(blocks)
    moved[:, ways[1], :, :, edges] = blocks[:, ways[0], :, :, edges]
    return moved.reshape(received.shape)
