"""Transports: one network over several processes, below the channel, by MPI.

The agents are divided over the processes, the *ranks*, in consecutive parts. A rank has the rows of
its own agents in all arrays. Where it needs others' it holds them among its own, ordered by number,
so that sums over neighbors are taken in the order of one process, to the last bit.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from traceback import print_exception
from typing import Any

import numpy as np

from concord.errors import ConcordError, tell

# Agents that are summed at once: smaller networks as in one process, by the first rank.
BLOCK = 1 << 16
# How many processes there are, as those say who start them.
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
PATIENCE = 1.0  # seconds until a rank that failed alone ends the others
FORWARDED = 0.2  # seconds for the launcher to show its error: what comes with the end may get lost

Sum = Callable[[np.ndarray], np.ndarray]


def world() -> Any:
    """Return MPI's communicator of all processes; a ConcordError without MPI."""
    try:
        from mpi4py import MPI  # type: ignore[import-not-found, unused-ignore]
    except (ImportError, RuntimeError):
        raise ConcordError(
            "transport: MPI is missing; in a clone, install the extra with "
            "`python -m pip install -e '.[mpi]'`"
        ) from None
    return MPI.COMM_WORLD


def launched() -> Any:
    """Return the communicator of the processes started with this one; None: it is alone.

    A ConcordError if MPI does not see those that were started: each would make the whole run.
    """
    said = next(((name, os.environ[name]) for name in SIZES if name in os.environ), ("", "1"))
    if (size := int(said[1])) <= 1:
        return None
    comm = world()
    if comm.size != size:
        raise ConcordError(
            f"transport: {said[0]} says {size} processes, and MPI sees {comm.size}; start them "
            "with the mpiexec of the MPI that mpi4py uses, or with another srun --mpi"
        )
    return comm


@contextmanager
def together(comm: Any) -> Iterator[None]:
    """End all ranks where one fails, which the others would wait for; None: there are none.

    What fails on all of them alike is raised on the first, and said once.
    """
    try:
        yield
    except BaseException as error:
        if comm is None:
            raise
        all_failed, begun = comm.Ibarrier(), time.monotonic()
        while not all_failed.Test():
            if time.monotonic() - begun > PATIENCE:
                if isinstance(error, ConcordError):
                    tell(str(error), 2)
                else:
                    print_exception(error)
                sys.stderr.flush()
                time.sleep(FORWARDED)
                comm.Abort(2)
            time.sleep(0.01)
        if comm.rank:
            raise SystemExit(2) from None
        raise


class Part:
    """The agents of this rank.

    agents: of the whole network. own: which are this rank's. rank, ranks: its number, of how many.
    sent: bytes that it has sent to others between steps.
    bytes: of what an agent sends to a neighbor in an iteration, as the price has it.
    """

    bytes: float

    def __init__(self, comm: Any, agents: int) -> None:
        self.comm, self.agents, self.rank, self.ranks = comm, agents, comm.rank, comm.size
        self.starts = np.arange(self.ranks + 1) * agents // self.ranks
        self.own = slice(*self.starts[self.rank : self.rank + 2].tolist())
        self.sent = 0
        self._requests: list[Any] = []

    def exchange(self, held: np.ndarray, axis: int, agents: np.ndarray) -> Callable[[], None]:
        """Return ``exchange()``, which fills the rows of others' agents in ``held``.

        Its rows along the axis are those of ``agents``, increasing, this rank's own among them. All
        ranks ask for the same exchanges in the same order.
        """
        ends = np.searchsorted(agents, self.starts)
        spans = [slice(first, last) for first, last in pairwise(ends)]
        nobody = agents[:0]
        wanted = [nobody if r == self.rank else agents[span] for r, span in enumerate(spans)]
        asked = self.comm.alltoall(wanted)
        tag, before = len(self._requests) % 30000, (slice(None),) * axis
        outgoing, incoming, requests = [], [], []
        for r in range(self.ranks):
            if len(wanted[r]):
                rows = held[(*before, spans[r])]
                into = rows if rows.flags.c_contiguous else np.empty_like(rows, order="C")
                requests.append(self.comm.Recv_init(into, r, tag))
                if into is not rows:
                    incoming.append((rows, into))
            if len(asked[r]):
                places = np.searchsorted(agents, asked[r])
                shape = list(held.shape)
                shape[axis] = len(places)
                outgoing.append((places, np.empty(shape, held.dtype)))
                requests.append(self.comm.Send_init(outgoing[-1][1], r, tag))
        self._requests.append(requests)
        size = sum(buffer.nbytes for _, buffer in outgoing)

        def exchange() -> None:
            for places, buffer in outgoing:
                held.take(places, axis, buffer, "clip")
            for request in requests:
                request.Start()
            for request in requests:
                request.Wait()
            for rows, into in incoming:
                np.copyto(rows, into)
            self.sent += size

        return exchange

    def close(self) -> None:
        """Free what its exchanges hold of MPI."""
        for requests in self._requests:
            for request in requests:
                request.Free()
        self._requests.clear()

    def here(self, agents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which of these agents are this rank's, and their rows."""
        places = np.flatnonzero((agents >= self.own.start) & (agents < self.own.stop))
        return places, agents[places] - self.own.start

    def collect(self, rows: np.ndarray, axis: int, agents: np.ndarray) -> np.ndarray | None:
        """Return the rows of these agents along the axis on the first rank; None on others.

        rows: those of the agents that are ``here``.
        """
        found = self.comm.gather((self.here(agents)[0], rows))
        if found is None:
            return None
        shape = list(rows.shape)
        shape[axis] = len(agents)
        whole = np.empty(shape, rows.dtype)
        for places, rows in found:
            whole[(*(slice(None),) * axis, places)] = rows
        return whole

    def total(self, summed: Sum, x: np.ndarray) -> np.ndarray | None:
        """Return the sum of ``summed(rows)`` over blocks of agents on the first rank.

        x: (chains, own agents, dim). Each block is summed by the first rank that has some of it.
        """
        found, own = [], self.own
        for first in range(own.start - own.start % BLOCK, own.stop, BLOCK):
            last = min(first + BLOCK, self.agents)
            rows = x[:, max(first - own.start, 0) : last - own.start]
            if first < own.start:
                self.comm.send(rows, int(np.searchsorted(self.starts, first, "right")) - 1, 1)
                continue
            if last > own.stop:
                others = range(self.rank + 1, int(np.searchsorted(self.starts, last)))
                rows = np.concatenate([rows, *(self.comm.recv(None, r, 1) for r in others)], 1)
            found.append(summed(np.ascontiguousarray(rows)))
        parts = self.comm.gather(found)
        return None if parts is None else sum_up([block for part in parts for block in part])

    def of_all(self, value: Any) -> tuple[Any, ...]:
        """Return the values of all ranks."""
        return tuple(self.comm.allgather(value))

    def first(self, at: np.ndarray) -> np.ndarray:
        """Return the least numbers of all ranks; -1 is none."""
        most = np.iinfo(at.dtype).max
        found = np.min(self.of_all(np.where(at < 0, most, at)), axis=0)
        return np.where(found == most, -1, found)


def blocks(summed: Sum, x: np.ndarray) -> np.ndarray:
    """Return what ``Part.total`` does where all agents are in this process."""
    ends = range(0, x.shape[1], BLOCK)
    return sum_up([summed(x[:, first : first + BLOCK]) for first in ends])


def sum_up(found: list[np.ndarray]) -> np.ndarray:
    """Return the sum, in this order."""
    total = found[0]
    for block in found[1:]:
        total = total + block
    return total
