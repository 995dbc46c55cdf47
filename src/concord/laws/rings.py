r"""Exact laws on long rings, by Fourier modes: their cost is that of a short ring.

Where all agents have the same curvature, and an agent hears only those around it, the matrices of
an affine update on a ring are circulant, and their blocks :math:`K_k` between agents k apart are
those of a short ring. With :math:`\theta_f = 2 \pi f / N` the mode :math:`\hat s_f = \sum_i
e^{-i \theta_f i} s_i` goes by itself,

.. math::
    \hat m_f' = \hat A_f \hat m_f + \hat c_f, \qquad \hat C_f' = \hat A_f \hat C_f \hat A_f^* +
    \hat Q_f, \qquad \hat A_f = \sum_k K_k e^{-i \theta_f k},

and what agents differ in, the shifts of their potentials, is in c alone. Blocks are read from rings
of two sizes and used only if both have the same: a sampler that knows how many agents there are, or
in which an update goes all around, has no law here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from concord.laws import exact
from concord.laws.exact import Affine, Moments, Seen, Update
from concord.laws.paths import Determined, Path, Turn, stacked, turn_of

SHORT = (24, 32)  # sizes of two rings, of which the blocks must be the same
FROM = 48  # agents

# The update on a short ring of agents with these shifts, (size, dim); None where it has none.
OnShort = Callable[[np.ndarray], Update | None]


class NoModes(Exception):
    """There is no law, or none that is the same on two short rings."""


class _Kernel(NamedTuple):
    """Blocks between agents that are k = -n/2, ..., n/2 - 1 apart.

    matrix and noise (n, q, q); offset (n, q, dim), for the shifts of potentials, with what does not
    depend on these, (q,).
    """

    matrix: np.ndarray
    offset: np.ndarray
    noise: np.ndarray
    constant: np.ndarray


def modes(affines: Sequence[OnShort], shifts: Sequence[np.ndarray], positions: Moments) -> Modes:
    """Return the laws of versions on a long ring; ``NoModes`` where they have none.

    affines, shifts: of each version the update on short rings of agents with its curvature, and the
    shifts of its potentials, (agents, dim). positions: the moments of an agent's start.
    """
    agents, dim = shifts[0].shape
    few, many = SHORT
    apart = np.arange(many) - many // 2
    waves = np.exp(-2j * np.pi / agents * np.multiply.outer(np.arange(agents // 2 + 1), apart))
    maps: list[list[Affine]] = []
    turns: set[Turn] = set()
    for affine, shift in zip(affines, shifts, strict=True):
        (turn, small), (other, large) = (_kernels(affine, dim, positions, n) for n in SHORT)
        turns |= {turn, other}
        if len(turns) > 1:
            raise NoModes
        for one, two in zip(small, large, strict=True):
            _check(one.constant, two.constant, 1)
            for part, whole in zip(one[:3], two[:3], strict=True):
                around = [((many - few) // 2,) * 2, *[(0, 0)] * (part.ndim - 1)]
                _check(np.pad(part, around), whole)
        own = np.fft.rfft(shift, axis=0)
        maps.append([_of_modes(kernel, waves, own, agents) for kernel in large])
    start = stacked([(of[-1].offset, of[-1].noise) for of in maps])
    return Modes(lambda k: Affine.stacked([of[k] for of in maps]), start, agents, dim, None, turn)


def _check(one: np.ndarray, other: np.ndarray, least: float = 1e-300) -> None:
    """Refuse arrays that are not the same but for rounding."""
    if np.abs(one - other).max() > 1e-11 * max(np.abs(other).max(), least):
        raise NoModes


def _of_modes(kernel: _Kernel, waves: np.ndarray, shift: np.ndarray, agents: int) -> Affine:
    matrix, offset, noise = (np.tensordot(waves, part, axes=1) for part in kernel[:3])
    moved = np.matvec(offset, shift)
    moved[0] += agents * kernel.constant
    return Affine(matrix, moved, noise)


def _kernels(
    affine: OnShort, dim: int, positions: Moments, size: int
) -> tuple[Turn, list[_Kernel]]:
    """Return the turn of the update on a short ring, its kernels until one's end, the start's."""
    # Shifts of nobody, and of one agent's coordinates one by one: offsets are linear in them.
    shifts = np.zeros((1 + dim, size, dim))
    shifts[1 + np.arange(dim), 0, np.arange(dim)] = 1
    updates = [update for update in map(affine, shifts) if update is not None]
    turn = turn_of(updates[0]) if len(updates) == len(shifts) else None
    if turn is None:
        raise NoModes
    starts = [exact.initial(size, dim, positions, *update.auxiliary) for update in updates]
    steps = [[update.at(k) for update in updates] for k in range(sum(turn))]
    whole = [
        *((step[0].matrix, np.stack([s.offset for s in step]), step[0].noise) for step in steps),
        (np.zeros_like(starts[0][1]), np.stack([mean for mean, _ in starts]), starts[0][1]),
    ]
    kernels = []
    for matrix, offsets, noise in whole:
        by_agent = np.moveaxis(offsets.reshape(1 + dim, -1, size, dim), 2, 1)
        each = by_agent.reshape(1 + dim, size, -1)  # (shifts, agents, blocks and coordinates)
        _check(np.broadcast_to(each[0, 0], each[0].shape), each[0])
        offset = np.roll(np.moveaxis(each[1:] - each[0], 0, -1), size // 2, axis=0)
        blocks, kicks = (_circulant(part, size, dim) for part in (matrix, noise))
        kernels.append(_Kernel(blocks, offset, kicks, each[0, 0]))
    return turn, kernels


def _circulant(matrix: np.ndarray, size: int, dim: int) -> np.ndarray:
    """Return the blocks between agents k apart, (size, q, q)."""
    count = len(matrix) // (size * dim)
    parts = matrix.reshape(count, size, dim, count, size, dim)
    _check(np.roll(parts, (1, 1), axis=(1, 4)), parts)  # agents' own are the same
    first = np.moveaxis(parts[..., 0, :], 1, 0)  # (agents, blocks, dim, blocks, dim), from agent 0
    return np.roll(first.reshape(size, count * dim, count * dim), size // 2, axis=0)


class Modes(Determined):
    """The laws of versions on a long ring, (versions, modes, ...) of all that is followed."""

    limit = Path.limit  # of modes, which are complex, by powers

    def _read(self, moments: Moments) -> np.ndarray:
        return np.eye(self._dim, moments[0].shape[-1])

    def _split(self, mean: np.ndarray, cov: np.ndarray) -> Seen:
        agents, dim = self._agents, self._dim
        mean, cov = mean[..., :dim], np.ascontiguousarray(cov[..., :dim, :dim])
        means = np.fft.irfft(mean, n=agents, axis=-2)
        share = np.full(agents // 2 + 1, 2.0)
        share[0] = 1
        if agents % 2 == 0:
            share[-1] = 1
        one = np.einsum("f,...fij->...ij", share, cov.real) / agents
        each = np.broadcast_to(one[..., None, :, :], (*means.shape, dim))
        return Seen(means, each, mean[..., 0, :].real / agents, cov[..., 0, :, :].real / agents)
