r"""Moments of affine samplers on networks where vectors may be lost or changed.

The state t holds the agents' blocks s and, where receivers remember (``reuse_last``), what they
received last over every arc of every channel, h. With ``LossEffect`` (``concord.laws.exact``), z
the sent vectors, y what receivers use in place of lost ones, d = z - y, and e the noise on what
arrives, one iteration is

.. math::
    s^* = A s + c + B w + F (h - x) - G' d, \qquad
    s' = s + a \circ (s^* - s) + G' (m \circ d) + G (m \circ e), \qquad
    h' = h + m \circ (d + e)

where a is 1 for agents that are awake and m for arcs over which a vector arrives. G' is G, and
with ``sender_keeps`` (y = 0) besides takes from the sender's own block what has come back to it.
Since a vector arrives only at agents that are awake, this is t' = t + K (b o (V t + v + w)) with b
one entry of a or m for each row of V, and

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
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from concord.laws.exact import Affine, LossEffect, Moments, Update

# First and second moments of b in iteration k, shapes (agents + arcs,) and the square of it.
Chances = Callable[[int], tuple[np.ndarray, np.ndarray]]

POWERS = 500  # of a map, by which its spectral radius is found where ARPACK does not converge


class Losses(NamedTuple):
    """The random losses of vectors, and what receivers use in place of lost vectors.

    chances: function of the iteration that returns the first and second moments of the indicators
    of awake agents and arriving vectors.
    arcs: receiver and sender of each arc.
    on_loss: what a receiver uses in place of a lost vector (``concord.networks.conditions``): with
    ``reuse_last`` the last one received (at first the sender's start, which it knows), with
    ``sender_keeps`` nothing, and the sender keeps the vector's weight; otherwise the receiver's own
    vector.
    noise: variance of the noise on each coordinate of a vector that arrives, independent over arcs.
    """

    chances: Chances
    arcs: tuple[np.ndarray, np.ndarray]
    on_loss: str
    noise: float = 0.0


@dataclass(frozen=True, eq=False)
class Move:
    """One iteration t' = t + K (b o (V t + v + w)) with a random vector b of zeros and ones.

    change, offset, noise: V, v and the covariance of w, shapes (..., D, T), (..., D) and (..., D,
    D).
    spread: K, shape (..., T, D).
    gradient_gain: what w has of the errors of mini-batch gradients, shape (..., D, agents * dim),
    or without columns; ``noise`` is without these errors.
    first, second: E b and E b b^T, shapes (D,) and (D, D).

    Versions of a sampler stand on the first axis of all but the last two.
    """

    STACKED: ClassVar = ("change", "offset", "noise", "spread", "gradient_gain")

    change: np.ndarray
    offset: np.ndarray
    noise: np.ndarray
    spread: np.ndarray
    gradient_gain: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @cached_property
    def lead(self) -> np.ndarray:
        """The matrix I + K diag(E b) V by which the mean moves, (..., T, T)."""
        return np.eye(self.change.shape[-1]) + (self.spread * self.first) @ self.change

    @cached_property
    def _covariance(self) -> np.ndarray:
        """The covariance of b, (D, D)."""
        return self.second - np.multiply.outer(self.first, self.first)

    def apply(self, mean: np.ndarray, cov: np.ndarray) -> Moments:
        """Return mean (..., T) and covariance (..., T, T) of the next iteration."""
        center = np.matvec(self.change, mean) + self.offset
        image = self.change @ cov
        both = image @ self.change.swapaxes(-1, -2) + self.noise
        both *= self.second
        both += self._covariance * (center[..., :, None] * center[..., None, :])
        image *= self.first[:, None]
        half = cov / 2 + self.spread @ (image + both @ (self.spread.swapaxes(-1, -2) / 2))
        # Rounding that is not symmetric would grow.
        return mean + np.matvec(self.spread, self.first * center), half + half.swapaxes(-1, -2)


def second_moment_radius(moves: Sequence[Move]) -> float:
    """Return the spectral radius of the linear map of second moments over some moves in turn.

    Below 1 mean and covariance settle. Where something is conserved it is at least 1.
    """
    from scipy.sparse.linalg import ArpackError, LinearOperator, eigs  # of few laws

    size = moves[0].change.shape[-1]
    linear = [
        replace(move, offset=np.zeros_like(move.offset), noise=np.zeros_like(move.noise))
        for move in moves
    ]

    def advance(second: np.ndarray) -> np.ndarray:
        """Return second moments after the moves, both (size * size,)."""
        mean, cov = np.zeros(size), second.reshape(size, size)
        for move in linear:
            mean, cov = move.apply(mean, cov)
        return cov.ravel()

    first = np.eye(size).ravel()
    if size < 2:
        return float(advance(first)[0])
    given = LinearOperator((size**2, size**2), matvec=advance, dtype=float)
    with suppress(ArpackError):
        values = eigs(given, 1, v0=first, tol=1e-6, maxiter=100, return_eigenvectors=False)
        return float(np.abs(values[0]))
    for _ in range(POWERS):
        first = advance(first / np.abs(first).max())
    return float(np.abs(first).max())


def build_moves(
    update: Update, losses: Losses, size: int, agents: int, dim: int
) -> tuple[Callable[[int], Move], np.ndarray, np.ndarray]:
    """Return the moves of a sampler on a network with losses, and the map from s to t.

    update: the sampler's update, with ``loss_effect``. losses: fate of vectors. size: S, the
    entries of the state s. agents, dim: number of agents and of entries of each.
    Returns a function from the iteration to its ``Move``, and a matrix (T, S) and an offset (T,)
    that map the state s at iteration 0 to t, which has also what receivers remember.
    """
    chances, arcs, on_loss, noise = losses
    effect_at, begin = update.loss_effect, update.start
    assert effect_at is not None and begin is not None and begin.heard is not None
    positions, carried = agents * dim, len(arcs[0]) * dim  # by a channel
    count = len(begin.heard[1]) // positions
    heard = count * carried
    receiver, sender = (np.kron(np.eye(agents)[ends], np.eye(dim)) for ends in arcs)
    of_receivers, of_senders = (np.kron(np.eye(count), one) for one in (receiver, sender))
    remembers, returns, noisy = on_loss == "reuse_last", on_loss == "sender_keeps", noise > 0
    total = size + heard * remembers  # T
    # Which agent or arc decides on a row of V: of the blocks s, of d, and of e.
    by_agent = np.tile(np.repeat(np.arange(agents), dim), size // positions)
    by_arc = agents + np.repeat(np.arange(len(arcs[0])), dim)
    drawn = np.concatenate([by_agent, np.tile(by_arc, count * (1 + noisy))])

    def widen(matrix: np.ndarray, offset: np.ndarray, *numbers: np.ndarray) -> np.ndarray:
        """Return a map of s, an offset and random numbers, side by side, as a map of t."""
        remembered = np.zeros((len(matrix), total - size))
        return np.hstack([matrix, remembered, offset[:, None], *numbers])

    @lru_cache(maxsize=8)
    def arrays_of(step: Affine, effect: LossEffect) -> tuple[np.ndarray, ...]:
        """Return V, v, the covariance of w, K, and the gain of gradient errors of one iteration."""
        kicks, errors = effect.noise, effect.error_gain
        after = widen(step.matrix, step.offset, kicks[:size], errors[:size])
        sent = widen(effect.sent_matrix, effect.sent_offset, kicks[size:], errors[size:])  # z
        state, memory = np.eye(size, after.shape[1]), np.eye(heard, after.shape[1], size)
        own_gain = returned = effect.difference_gain
        if remembers:
            beyond = memory[:carried] - sender @ state[:positions]  # h - x
            after, sent = (
                after + effect.memory_gain[:size] @ beyond,
                sent + effect.memory_gain[size:] @ beyond,
            )
            instead = memory
        elif returns:
            returned = own_gain - _move_to_senders(own_gain, arcs, agents, dim)
            instead = np.zeros_like(memory)
        else:
            instead = of_receivers @ sent
        differs = of_senders @ sent - instead
        rows = [
            after - state - returned @ differs,
            differs,
            np.zeros((heard * noisy, len(after.T))),
        ]
        change, shift, moved, gain = np.split(
            np.concatenate(rows), np.cumsum([total, 1, kicks.shape[1]]), axis=1
        )
        spread = np.hstack([np.eye(size), returned, own_gain[:, : heard * noisy]])
        if remembers:
            received = np.hstack([np.zeros((heard, size)), *[np.eye(heard)] * (1 + noisy)])
            spread = np.concatenate([spread, received])
        added = np.diag(np.repeat([0.0, noise], [size + heard, heard * noisy]))
        return change, shift[:, 0], moved @ moved.T + added, spread, gain

    def move_at(k: int) -> Move:
        """Return the move of iteration k."""
        first, second = (part[np.ix_(*[drawn] * part.ndim)] for part in chances(k))
        change, shift, cov, spread, gain = arrays_of(update.at(k), effect_at(k))
        return Move(change, shift, cov, spread, gain, first, second)

    start, offset = np.eye(size), np.zeros(size)
    if remembers:
        matrix, shift = begin.heard
        start = np.concatenate([start, of_senders @ matrix @ np.eye(positions, size)])
        offset = np.concatenate([offset, of_senders @ shift])
    return move_at, start, offset


def _move_to_senders(
    received: np.ndarray, arcs: tuple[np.ndarray, np.ndarray], agents: int, dim: int
) -> np.ndarray:
    """Move the effect of each received vector from its receiver's to its sender's rows.

    received: G, the state's response to received vectors, (S, channels * arcs * dim), as is the
    result. arcs: receiver and sender of each arc.
    """
    each = np.arange(len(arcs[0]))
    channels = received.shape[1] // (len(each) * dim)
    blocks = received.reshape(-1, agents, dim, channels, len(each), dim)
    moved = np.zeros_like(blocks)
    moved[:, arcs[1], :, :, each] = blocks[:, arcs[0], :, :, each]
    return moved.reshape(received.shape)
