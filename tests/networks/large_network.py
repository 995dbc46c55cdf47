"""A large network under a limit of memory: ``large_network.py <gigabytes> <agents>``; by mpiexec.

``--graph torus``; ``--loss 0.2``; with ``--seconds DIM`` it tells the seconds of a step of so many
dimensions, with ``--memory`` the most memory of each process.
"""

import argparse
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

parser = argparse.ArgumentParser()
parser.add_argument("gigabytes", type=float)
parser.add_argument("agents", type=int)
parser.add_argument("--graph", default="ring")
parser.add_argument("--loss", type=float)
parser.add_argument("--seconds", type=int)
parser.add_argument("--memory", action="store_true")
given = parser.parse_args()
LOSS = {"kind": "bernoulli", "rate": given.loss, "direction": "one_way"}
HAPPENS = {} if given.loss is None else {"loss": LOSS}


class Quadratics:
    """Agents whose potentials are all x^2 / 2, of which nothing is held."""

    posterior = None

    def __init__(self, agents):
        self.agents, self.dim = agents, given.seconds or 1

    def from_chain(self, first):
        return self

    def part(self, agents):
        return Quadratics(agents.stop - agents.start)

    def gradient(self, chains):
        def gradient(x, out):
            np.copyto(out, x)
            return out

        return gradient


comm, agents = launched(), given.agents
resource.setrlimit(resource.RLIMIT_DATA, (int(given.gigabytes * 1e9),) * 2)


def trace(iterations):
    return loop.sample(
        de_sgld,
        build(de_sgld.Params, {"step_size": 0.01}, "sampler"),
        Quadratics(agents),
        concord.network(given.graph, agents, **HAPPENS),
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
    if made.chains and not given.seconds:
        print(*(made[name].tobytes().hex() for name in ("x", "x_average")))
    if given.seconds:
        took = [(seconds(12) - seconds(2)) / 10 for _ in range(3)]
        if comm is None or comm.rank == 0:
            print(f"{np.median(took):.3f}")
    if given.memory:
        print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB", file=sys.stderr)
except MemoryError:
    print("not enough memory")
    sys.exit(1) if comm is None else comm.Abort(1)
