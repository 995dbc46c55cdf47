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

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from concord.arena.laws import Path, Repeating, Seen, period_of
from concord.contracts import AffineSampler, Problem, Quadratic
from concord.laws import exact
from concord.laws.powers import Map, Moments
from concord.networks.topologies import ring
from concord.networks.topology import Topology, of_graph
from concord.problems._quadratic import QuadraticProblem

SHORT = (24, 32)  # two sizes, of which the blocks must be the same
FROM = 48  # agents


class _Kernel(NamedTuple):
    """Blocks between agents that are k = -n/2, ..., n/2 - 1 apart.

    matrix and noise (n, q, q); offset (n, q, dim), for the shifts of potentials, with what does not
    depend on these, (q,).
    """

    matrix: np.ndarray
    offset: np.ndarray
    constant: np.ndarray
    noise: np.ndarray


def applies(problem: Problem, topology: Topology) -> bool:
    """Whether agents are alike but for their shifts, on a long ring where everything arrives."""
    return (
        isinstance(problem, Quadratic)
        and not topology.conditions.eventful
        and topology.name == "ring"
        and topology.agents >= FROM
        and bool((problem.gram == problem.gram[0]).all())
    )


def short(problem: Problem | Quadratic, size: int = SHORT[1]) -> tuple[QuadraticProblem, Topology]:
    """Return some of the agents on a ring of their own, which is stable where the long one is."""
    assert isinstance(problem, Quadratic)
    graph = of_graph("ring", size, ring.graph(ring.Params(), size))
    return QuadraticProblem(problem.gram[:size], problem.shift[:size]), graph


def path(
    sampler: Any,
    problems: Sequence[Problem],
    topology: Topology,
    params: Sequence[Any],
    positions: Moments | None,
) -> Modes | None:
    """Return the laws of versions, each a problem and options; None where they have no modes.

    ``positions`` are the moments of an agent's start.
    """
    batches = any(getattr(p, "batch_size", None) is not None for p in params)
    if not isinstance(sampler, AffineSampler) or positions is None or batches:
        return None
    if not all(applies(problem, topology) for problem in problems):
        return None
    agents, dim = problems[0].agents, problems[0].dim
    turns = np.exp(
        -2j * np.pi / agents * np.multiply.outer(np.arange(agents // 2 + 1), _apart(SHORT[1]))
    )
    maps: list[list[Map]] = []
    starts: list[Moments] = []
    period = None
    for problem, options in zip(problems, params, strict=True):
        assert isinstance(problem, Quadratic)
        found = _kernels(sampler, problem, options, positions)
        if found is None or (period is not None and found[0] != period):
            return None
        period, kernels = found
        shift = np.fft.rfft(problem.shift, axis=0)
        *own, start = (_of_modes(kernel, turns, shift, agents) for kernel in kernels)
        maps.append(own)
        starts.append((start.offset, start.noise))
    assert period is not None
    stacked = [
        Map(*(np.stack([getattr(own[k], f) for own in maps]) for f in Map._fields))
        for k in range(sum(period))
    ]
    start_mean, start_cov = (np.stack(part) for part in zip(*starts, strict=True))
    return Modes(stacked, period, (start_mean, start_cov), agents, dim)


def _apart(size: int) -> np.ndarray:
    return np.arange(size) - size // 2


def _of_modes(kernel: _Kernel, turns: np.ndarray, shift: np.ndarray, agents: int) -> Map:
    matrix, offset, noise = (
        np.tensordot(turns, part, axes=1) for part in (kernel.matrix, kernel.offset, kernel.noise)
    )
    moved = np.matvec(offset, shift)
    moved[0] += agents * kernel.constant
    return Map(matrix, moved, noise)


def _kernels(
    sampler: Any, problem: Quadratic, params: Any, positions: Moments
) -> tuple[tuple[int, int], list[_Kernel]] | None:
    """Return from when on the update repeats, after how many, the kernels until then, the start's.

    None where there is no law, or none that is the same on two short rings.
    """
    both = []
    for size in SHORT:
        found = _of_short(sampler, problem, params, positions, size)
        if found is None:
            return None
        both.append(found)
    (period, few), (other, kernels) = both
    margin = (SHORT[1] - SHORT[0]) // 2
    inner = slice(margin, margin + SHORT[0])
    if period != other:
        return None
    for one, two in zip(few, kernels, strict=True):
        for name in ("matrix", "offset", "noise"):
            small, large = getattr(one, name), getattr(two, name).copy()
            least = 1e-11 * max(np.abs(large).max(), 1e-300)
            if np.abs(small - large[inner]).max() > least:
                return None
            large[inner] = 0
            if np.abs(large).max() > least:
                return None
        if np.abs(one.constant - two.constant).max() > 1e-11 * max(np.abs(two.constant).max(), 1):
            return None
    return period, kernels


def _of_short(
    sampler: Any, problem: Quadratic, params: Any, positions: Moments, size: int
) -> tuple[tuple[int, int], list[_Kernel]] | None:
    dim, middle = problem.dim, size // 2
    graph = short(problem, size)[1]
    gram = problem.gram[:size]
    # Shifts of nobody, and of one agent's coordinates one by one: offsets are linear in them.
    shifts = np.zeros((1 + dim, size, dim))
    shifts[1 + np.arange(dim), 0, np.arange(dim)] = 1
    updates = [sampler.affine(QuadraticProblem(gram, shift), graph, params) for shift in shifts]
    if any(update is None for update in updates):
        return None
    period = period_of(updates[0])
    if period is None:
        return None
    starts = [exact.initial(size, dim, positions, *update.auxiliary) for update in updates]
    steps = [[update.at(k) for update in updates] for k in range(sum(period))]
    whole = [
        *((step[0].matrix, np.stack([s.offset for s in step]), step[0].noise) for step in steps),
        (np.zeros_like(starts[0][1]), np.stack([mean for mean, _ in starts]), starts[0][1]),
    ]
    kernels = []
    for matrix, offsets, noise in whole:
        blocks = [_circulant(part, size, dim) for part in (matrix, noise)]
        by_agent = np.moveaxis(offsets.reshape(1 + dim, -1, size, dim), 2, 1)
        each = by_agent.reshape(1 + dim, size, -1)  # (shifts, agents, blocks and coordinates)
        alike = np.abs(each[0] - each[0, 0]).max() <= 1e-11 * max(np.abs(each[0]).max(), 1e-300)
        if blocks[0] is None or blocks[1] is None or not alike:
            return None
        offset = np.roll(np.moveaxis(each[1:] - each[0], 0, -1), middle, axis=0)
        kernels.append(_Kernel(blocks[0], offset, each[0, 0], blocks[1]))
    return period, kernels


def _circulant(matrix: np.ndarray, size: int, dim: int) -> np.ndarray | None:
    """Return the blocks between agents k apart, (size, q, q); None if agents' own differ."""
    count = len(matrix) // (size * dim)
    parts = matrix.reshape(count, size, dim, count, size, dim)
    turned = np.roll(parts, (1, 1), axis=(1, 4))
    if np.abs(turned - parts).max() > 1e-11 * max(np.abs(parts).max(), 1e-300):
        return None
    first = np.moveaxis(parts[..., 0, :], 1, 0)  # (agents, blocks, dim, blocks, dim), from agent 0
    return np.roll(first.reshape(size, count * dim, count * dim), size // 2, axis=0)


class Modes(Repeating):
    """The laws of versions on a long ring, (versions, modes, ...) of all that is followed."""

    def __init__(
        self,
        maps: Sequence[Map],
        period: tuple[int, int],
        start: Moments,
        agents: int,
        dim: int,
    ) -> None:
        super().__init__(maps.__getitem__, period, start, np.eye(dim, start[0].shape[-1]), agents)
        self._dim = dim

    limit = Path.limit  # of modes, which are complex, by powers

    def _split(self, mean: np.ndarray, cov: np.ndarray) -> Seen:
        agents = self._agents
        means = np.fft.irfft(mean, n=agents, axis=-2)
        share = np.full(agents // 2 + 1, 2.0)
        share[0] = 1
        if agents % 2 == 0:
            share[-1] = 1
        one = np.einsum("f,...fij->...ij", share, cov.real) / agents
        each = np.broadcast_to(one[..., None, :, :], (*means.shape, self._dim))
        return Seen(means, each, mean[..., 0, :].real / agents, cov[..., 0, :, :].real / agents)
