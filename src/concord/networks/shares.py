"""Random numbers of some agents: a share of a stream for all of them, or their own by counters.

Both are the same whoever draws them, alone or with others. A stream's numbers follow on each other,
so that all are drawn, and those of other agents dropped. By counters each block of agents has
numbers of its own, and nothing else is drawn (numpy's Philox; Salmon, Moraes, Dror and Shaw,
"Parallel random numbers: as easy as 1, 2, 3", 2011).
"""

from typing import Any

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
        raise ConcordError(
            f"transport: numbers of the kind {name!r} are drawn for all agents together (an "
            "epoch's order, say); use other options, one process, and no noise: counter"
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
        self._key, self._many, self._own = key, many, own
        self.asked = np.zeros(1, dtype=np.int64)

    @property
    def whole(self) -> np.random.Generator:
        """The generator of the next numbers that all agents of a chain share."""
        return self._generator(1, 0)

    def _generator(self, shared: int, block: int) -> np.random.Generator:
        if shared:
            self.asked += 1
        counter = np.array([0, shared, block, self.asked[0]], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=self._key, counter=counter))

    def _drawn(self, name: str, out: np.ndarray) -> np.ndarray:
        self.asked += 1
        own = self._own
        for first in range(own.start - own.start % TOGETHER, own.stop, TOGETHER):
            count = min(TOGETHER, self._many - first)
            begin, end = max(first, own.start), min(first + count, own.stop)
            rows = (out.shape[0], count, *out.shape[2:])
            numbers = getattr(self._generator(0, first // TOGETHER), name)(rows, dtype=out.dtype)
            out[:, begin - own.start : end - own.start] = numbers[:, begin - first : end - first]
        return out


def common(rng: Any) -> Any:
    """Return the generator of numbers that are the same for all agents of a chain."""
    return rng.whole if isinstance(rng, _Rows) else rng
