"""A large ring under a limit of memory, ``large_ring.py <gigabytes> <agents>``, or by mpiexec.

With a third argument, of how many dimensions it is, it tells the seconds of a step.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
import scipy.sparse  # noqa: F401  (before the limit)

import concord
from concord.networks.transports import launched
from concord.options import build
from concord.samplers import de_sgld
from concord.sampling import initial, loop
from concord.sampling.recorder import Record

DIM = int([*sys.argv, 1][3])


class Quadratics:
    """Agents whose potentials are all x^2 / 2, of which nothing is held."""

    posterior = None

    def __init__(self, agents):
        self.agents, self.dim = agents, DIM

    def from_chain(self, first):
        return self

    def part(self, agents):
        return Quadratics(agents.stop - agents.start)

    def gradient(self, chains):
        def gradient(x, out):
            np.copyto(out, x)
            return out

        return gradient


comm, agents = launched(), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (int(float(sys.argv[1]) * 1e9),) * 2)


def trace(iterations):
    return loop.sample(
        de_sgld,
        build(de_sgld.Params, {"step_size": 0.01}, "sampler"),
        Quadratics(agents),
        concord.network("ring", agents),
        law=initial.Law("normal"),
        record=Record(at=(iterations,), agents=(0, agents - 1)),
        chains=1,
        iterations=iterations,
        seed=1,
        labels=loop.Labels(),
        comm=comm,
        counter=True,
    )


def seconds(iterations):
    begun = time.monotonic()
    trace(iterations)
    return time.monotonic() - begun


try:
    made = trace(5)
    if made.chains and len(sys.argv) < 4:
        print(*(made[name].tobytes().hex() for name in ("x", "x_average")))
    if len(sys.argv) == 4:
        took = [(seconds(12) - seconds(2)) / 10 for _ in range(3)]
        if comm is None or comm.rank == 0:
            print(f"{np.median(took):.3f}")
except MemoryError:
    print("not enough memory")
    sys.exit(1) if comm is None else comm.Abort(1)
