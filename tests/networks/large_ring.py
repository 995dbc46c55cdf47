"""A large ring under a limit of memory, ``large_ring.py <gigabytes> <agents>``, or by mpiexec."""

from __future__ import annotations

import resource
import sys

import numpy as np
import scipy.sparse  # noqa: F401  (before the limit)

import concord
from concord.networks.transports import launched
from concord.options import build
from concord.samplers import de_sgld
from concord.sampling import initial, loop
from concord.sampling.recorder import Record


class Quadratics:
    """Agents whose potentials are all x^2 / 2, of which nothing is held."""

    posterior = None

    def __init__(self, agents):
        self.agents, self.dim = agents, 1

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
try:
    trace = loop.sample(
        de_sgld,
        build(de_sgld.Params, {"step_size": 0.01}, "sampler"),
        Quadratics(agents),
        concord.network("ring", agents),
        law=initial.Law("normal"),
        record=Record(at=(5,), agents=(0, agents - 1)),
        chains=1,
        iterations=5,
        seed=1,
        labels=loop.Labels(),
        comm=comm,
        counter=True,
    )
except MemoryError:
    print("not enough memory")
    sys.exit(1) if comm is None else comm.Abort(1)
if trace.chains:
    print(*(trace[name].tobytes().hex() for name in ("x", "x_average")))
