"""Estimate the memory that a call will take, and refuse the call if there is less.

Estimates cover the recorded arrays with their copies, and the matrices of laws, within a factor of
two of measured peaks. Not covered are gradients of large problems, counts that differ between
chains, and averages of predictions.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from concord.errors import ConcordError
from concord.options import Positive, build
from concord.record import Record
from concord.streams import CHAINS_PER_BLOCK

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")  # of Linux
GIGABYTE = 1e9
BYTES = 8  # of a number
OF_DRAW, OF_LAW = 1000, 1200  # bytes of the objects that hold what is recorded of an iteration
SQUARES = 20  # matrices of a state's size that reading a law off a step holds


def require_memory(needed: float, memory: float | None, remedy: str) -> None:
    """Raise a ConcordError if a call needs more memory than there is, and say if it needs much.

    needed: bytes. memory: GB that it may take; None: what this process may still have. remedy: what
    to change so that less is needed.
    """
    if memory is None:
        limit, whose = max(available_memory(), 0), "are available"
    else:
        limit, whose = build(Positive, memory, "memory") * GIGABYTE, "are allowed"
    needs, has = (f"{float(f'{size / GIGABYTE:.3g}'):,g} GB" for size in (needed, limit))
    if needed > limit:
        raise ConcordError(
            f"memory: the call would take {needs}, and {has} {whose}; {remedy}, or set memory, in "
            "GB, if there is more"
        )
    if needed > GIGABYTE:
        print(f"concord: the call takes about {needs} of memory", file=sys.stderr)


def available_memory() -> float:
    """Return the bytes of memory that this process can still take; inf where no limit is known.

    That is the least of the machine's available memory (on other systems than Linux: all of it) and
    what the limits of the process and of its control groups leave.
    """
    return min(_read_limits(), default=float("inf"))


def _read_limits() -> Iterator[float]:
    """Yield the bytes that each of the system's limits of memory leaves to this process."""
    try:
        lines = (PROC / "meminfo").read_text().splitlines()
        yield from (1024 * int(line.split()[1]) for line in lines if "MemAvailable" in line)
        sizes = (PROC / "self" / "statm").read_text().split()
        groups = (PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        with suppress(AttributeError, ValueError, OSError):  # Windows has none
            yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return
    import resource  # not on Windows

    address_space, resident = (int(pages) * resource.getpagesize() for pages in sizes[:2])
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        yield soft - address_space
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root = CGROUPS / controllers
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        folder = root / path.lstrip("/")
        for level in (folder, *folder.parents):
            with suppress(OSError, ValueError):  # it is not to be seen from here, or has no limit
                yield int((level / name).read_text()) - resident


def estimate_trace_bytes(
    record: Record, chains: int, agents: int, dim: int, iterations: int
) -> float:
    """Estimate the bytes that a trace takes at the end of sampling, when chains are joined."""
    recorded = agents if record.agents is None else len(record.agents)
    numbers = recorded * dim * record.draws + dim * record.average
    numbers += sum(1 if probe == "consensus_error" else recorded for probe in record.probes)
    block = min(chains, CHAINS_PER_BLOCK)
    copies = 2 * chains + (block if chains > block else 0)
    total = record.count(iterations) * (numbers * copies * BYTES + OF_DRAW)
    return total + agents * dim * chains * BYTES


def estimate_law_bytes(count: int, agents: int, dim: int, largest: float) -> float:
    """Estimate the bytes that a law's moments at ``count`` iterations take.

    largest: the largest number of entries agents * dim for which a step is read.
    """
    numbers = 2 * count * (agents + 1) * dim * (1 + dim)
    matrices = SQUARES * min(agents * dim, largest) ** 2
    return (numbers + matrices) * BYTES + count * OF_LAW
