"""Checkpoints: a run that was killed continues, with the bytes of an uninterrupted one.

A sampler's state is not all: a channel knows what was sent, a mini-batch which points an epoch has
used. Whatever lasts from step to step says so where it is made (``keep``), as arrays and
generators, which are written and read back in place. Closures are never written.
"""

import json
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from concord.io import whole

Arrays = dict[str, np.ndarray]

SECONDS = 600.0  # between two checkpoints
LOOKS = 1000  # how often in a run the first process looks at the clock

_kept: ContextVar[list[Any] | None] = ContextVar("kept", default=None)


def keep(*things: np.ndarray | np.random.Generator | None) -> None:
    """Have these arrays and generators written with a checkpoint, if there will be one."""
    if (found := _kept.get()) is not None:
        found += [thing for thing in things if thing is not None]


@contextmanager
def keeping() -> Iterator[list[Any]]:
    """Gather what is said to be kept meanwhile."""
    found: list[Any] = []
    token = _kept.set(found)
    try:
        yield found
    finally:
        _kept.reset(token)


def written(things: list[Any]) -> Arrays:
    """Return what is to be written of arrays and generators, by number."""
    return {
        str(i): thing if isinstance(thing, np.ndarray) else _state(thing)
        for i, thing in enumerate(things)
    }


def read_back(things: list[Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Put into arrays and generators what was written of them."""
    for i, thing in enumerate(things):
        if isinstance(thing, np.ndarray):
            np.copyto(thing, arrays[str(i)])
        else:
            thing.bit_generator.state = json.loads(str(arrays[str(i)]), object_hook=_number)


def _state(rng: np.random.Generator) -> np.ndarray:
    def plain(value: Any) -> Any:
        return {"array": value.tolist()} if isinstance(value, np.ndarray) else value.item()

    return np.array(json.dumps(rng.bit_generator.state, default=plain))


def _number(found: dict[str, Any]) -> Any:
    return np.array(found["array"], dtype=np.uint64) if set(found) == {"array"} else found


class Checkpoint:
    """The checkpoints of a run, two in turn, since a process may be killed while it writes one.

    beside: the file that the run will write. identity: what that is made from; checkpoints of
    anything else are not looked at. comm: of the processes that divide the run, or None.
    """

    def __init__(
        self, beside: Path, identity: str, seconds: float = SECONDS, comm: Any = None
    ) -> None:
        self._comm, self._seconds = comm, seconds
        rank, ranks = (0, 1) if comm is None else (comm.rank, comm.size)
        self._identity = f"{identity} {rank} of {ranks}"
        name = f".{beside.name}.{rank}-{ranks}"
        self._files = [beside.with_name(f"{name}.{turn}.checkpoint") for turn in (0, 1)]
        self._turn, self._last, self._look = 0, time.monotonic(), 0

    def of_all(self, value: Any) -> list[Any]:
        """Return the values of all processes."""
        return [value] if self._comm is None else self._comm.allgather(value)

    def found(self) -> Arrays | None:
        """Return the last checkpoint that all processes have written; None: there is none."""
        there = {}
        for turn, path in enumerate(self._files):
            arrays = self._read(path)
            if arrays is not None:
                there[tuple(arrays["at"].tolist())] = turn, arrays
        common = set.intersection(*map(set, self.of_all(list(there))))
        if not common:
            return None
        turn, arrays = there[max(common)]
        self._turn = 1 - turn
        return arrays

    def _read(self, path: Path) -> Arrays | None:
        try:
            with np.load(path, allow_pickle=False) as file:
                if str(file["identity"]) == self._identity:
                    return dict(file)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            pass  # there is none, or it was cut off
        return None

    def due(self, k: int, iterations: int) -> bool:
        """Tell whether a checkpoint is to be written after iteration k, on all processes alike."""
        look = k // max(1, iterations // LOOKS)
        if look == self._look:
            return False
        self._look = look
        late = time.monotonic() - self._last >= self._seconds
        return bool(self.of_all(late)[0])

    def write(self, at: tuple[int, int], made: Callable[[], Arrays]) -> None:
        """Write one, of a block of chains and an iteration, when all have written the last."""
        self.of_all(at)
        with whole(self._files[self._turn]) as path, open(path, "wb") as file:
            arrays: dict[str, Any] = {"identity": np.array(self._identity), "at": np.array(at)}
            np.savez(file, **arrays | made())
        self._turn, self._last = 1 - self._turn, time.monotonic()


def forget(beside: Path) -> None:
    """Remove the checkpoints of a run, which is done."""
    for path in beside.parent.glob(f".{beside.name}.*.checkpoint"):
        path.unlink(missing_ok=True)
