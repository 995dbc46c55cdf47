"""Random numbers of some agents: a share of a stream for all of them, or their own by counters.

Both are the same whoever draws them, alone or with others. A stream's numbers follow on each other,
so that all are drawn, and those of other agents dropped. By counters each block of agents has
numbers of its own, and nothing else is drawn (numpy's Philox; Salmon, Moraes, Dror and Shaw,
"Parallel random numbers: as easy as 1, 2, 3", 2011).
"""

from collections.abc import Iterable
from copy import copy
from typing import Any, Self

import numpy as np

from concord.errors import ConcordError

# Agents that draw together by counters: enough to repay the start of a generator, which takes as
# long as some hundred numbers.
TOGETHER = 2048


class _Rows:
    """Numbers of some agents, (chains, own agents, ...)."""

    whole: Any  # the generator of what all agents of a chain share

    def __getattr__(self, name: str) -> Any:
        """Refuse what is not drawn row by row."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise ConcordError(
            f"numbers of the kind {name!r} (an epoch's order, say) can neither be divided over "
            "ranks nor drawn by counters, because they are drawn for all agents together; use "
            "other options, or one process and no noise: counter"
        )

    def standard_normal(self, size: Any = None, dtype: Any = float, out: Any = None) -> Any:
        """Return normal numbers."""
        return self._drawn("standard_normal", np.empty(size, dtype) if out is None else out)

    def random(self, size: Any = None, dtype: Any = float, out: Any = None) -> Any:
        """Return uniform numbers, of the agents, or of the chains, (chains,)."""
        if out is None and not isinstance(size, tuple):
            return self.whole.random(size, dtype)
        return self._drawn("random", np.empty(size, dtype) if out is None else out)

    def _drawn(self, name: str, out: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class Share(_Rows):
    """A generator's numbers for this rank's agents, of a stream for all of them.

    All numbers are drawn, in the order of one process, and the own ones kept.

    whole: the generator, whose numbers all ranks share. many, own: rows along ``axis``, of all
    agents, and which are this rank's.
    """

    def __init__(self, whole: Any, many: int, own: slice, axis: int = 1) -> None:
        self.whole, self._many, self._own, self._axis = whole, many, own, axis
        self._every: dict[Any, np.ndarray] = {}

    def _drawn(self, name: str, out: np.ndarray) -> np.ndarray:
        shape = list(out.shape)
        shape[self._axis] = self._many
        key = (*shape, out.dtype)
        if key not in self._every:
            self._every[key] = np.empty(shape, out.dtype)
        every = self._every[key]
        getattr(self.whole, name)(out=every, dtype=out.dtype)
        out[...] = every[(*(slice(None),) * self._axis, self._own)]
        return out


class Counters(_Rows):
    """Numbers by counters: which number is asked for, and which block.

    key: two words, of seed and labels. many, own: agents of the whole network, and which are here.
    asked: how often numbers were asked for, which all processes do alike.
    """

    def __init__(self, key: np.ndarray, many: int, own: slice) -> None:
        first = own.start - own.start % TOGETHER
        self._blocks = [
            (block // TOGETHER, min(TOGETHER, many - block))
            for block in range(first, own.stop, TOGETHER)
        ]
        self._key, self._own = key, slice(own.start - first, own.stop - first)
        self._axis, self._stream, self._streams = 1, 0, 0  # the last one that began
        self.asked = np.zeros(1, dtype=np.int64)

    def of(self, agents: np.ndarray, own: slice = slice(None)) -> Self:
        """Return the same counters of rows that are agents', (rows, ...), and of these the own.

        agents: whose each is, increasing; all rows of the agents of a block are there.
        """
        other = copy(self)
        blocks, counts = np.unique(agents // TOGETHER, return_counts=True)
        other._blocks = list(zip(blocks.tolist(), counts.tolist(), strict=True))
        other._own, other._axis = slice(*own.indices(len(agents))[:2]), 0
        return other

    def spawn(self, count: int) -> list[Self]:
        """Return counters of their own."""
        found = [copy(self) for _ in range(count)]
        for other in found:
            self._streams += 2
            other._stream, other.asked = self._streams, np.zeros_like(self.asked)
        return found

    @property
    def whole(self) -> np.random.Generator:
        """The generator of the next numbers that all agents of a chain share."""
        return self._generator(1, 0)

    def _generator(self, shared: int, block: int) -> np.random.Generator:
        if shared:
            self.asked += 1
        counter = np.array([0, self._stream + shared, block, self.asked[0]], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=self._key, counter=counter))

    def _drawn(self, name: str, out: np.ndarray) -> np.ndarray:
        self.asked += 1
        own, axis, before = self._own, self._axis, (slice(None),) * self._axis
        first, rows = 0, list(out.shape)
        for block, rows[axis] in self._blocks:
            begin, end = max(first, own.start), min(first + rows[axis], own.stop)
            if begin < end:
                numbers = getattr(self._generator(0, block), name)(rows, dtype=out.dtype)
                here, drawn = (
                    slice(begin - own.start, end - own.start),
                    slice(begin - first, end - first),
                )
                out[(*before, here)] = numbers[(*before, drawn)]
            first += rows[axis]
        return out


def with_these(pieces: Iterable[np.ndarray], many: int) -> np.ndarray:
    """Return all of so many agents that draw together with one of these, in order."""
    blocks = np.unique(np.concatenate([np.unique(agents // TOGETHER) for agents in pieces]))
    agents = np.add.outer(blocks * TOGETHER, np.arange(TOGETHER)).ravel()
    return agents[agents < many]


def rows_of(rng: Any, agents: np.ndarray, own: slice = slice(None), divided: bool = False) -> Any:
    """Return what draws rows that are agents', (rows, ...), and of these the own.

    agents: whose each of all is, increasing. divided: whether there may be others than the own.
    """
    if isinstance(rng, Counters):
        return rng.of(agents, own)
    return Share(rng, len(agents), own, 0) if divided else rng


def lasting(rng: Any) -> Any:
    """Return what is to be kept of a source of numbers, as ``resume.keep`` takes it."""
    return rng.asked if isinstance(rng, Counters) else rng


def common(rng: Any) -> Any:
    """Return the generator of numbers that are the same for all agents of a chain."""
    return rng.whole if isinstance(rng, _Rows) else rng
