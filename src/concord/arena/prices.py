"""What an iteration costs: gradients and bytes of an agent, and simulated seconds.

``Info`` says it. Of a plug-in ``check`` does not believe it: what a step uses is found out by
trying (what is built in is tried by the tests).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from concord.contracts import Problem, SizedSampler, dtype_of
from concord.errors import ConcordError
from concord.networks import topology as topologies
from concord.networks.faults import Timed, drawing
from concord.networks.topology import Topology
from concord.sampling import spent

# Enough for the mean over what chance decides, and whole periods of what alternates.
CHAINS, STEPS = 8, 48


def check(sampler: Any, params: Any, problem: Problem, topology: Topology) -> None:
    """Refuse a sampler whose ``Info`` counts less than its steps use (``sampling.spent``).

    On the network as it is where everything arrives, and on a path of as many agents, on which the
    vectors that cross an edge are known.
    """
    own = Topology(
        topology.name, topology.agents, topology.edges, topology.weights, topology.directed,
        topology.messages,
    )  # fmt: skip
    graphs = [own]
    path = topologies.build("path", topology.agents) if topology.agents > 1 else own
    try:
        sampler.check(problem, path, params)
        graphs.append(path)
    except ConcordError:
        pass  # it wants a server, or directions
    for graph in graphs:
        found = spent.unpaid(sampler, params, problem, graph, 1, (1, 21))
        if found:
            raise ConcordError(
                f"{found}, on {graph.name}; let Info count what steps use (concord test says more)"
            )


def per_iteration(
    sampler: Any, params: Any, problem: Problem, topology: Topology, rng: np.random.Generator
) -> dict[str, float]:
    """Return the mean price of an iteration, for the mean agent.

    gradients: of its potential (what ``Info`` says; otherwise one of each agent that moves). bytes:
    of the vectors that it sends, one for every neighbor that needs it; lost ones are paid. seconds:
    until the last agent has ended it, where the network has a clock; 0 otherwise.
    """
    network = drawing(topology, *rng.spawn(2))
    x0 = np.tile(problem.posterior.mean if problem.posterior else 0.0, (CHAINS, problem.agents, 1))
    x0 = np.broadcast_to(x0, (CHAINS, problem.agents, problem.dim)).astype(dtype_of(problem))
    size = problem.dim, dtype_of(problem).itemsize
    width: float = size[0] * size[1]
    if isinstance(topology, Timed):
        width = topology.conditions.size(*size)
    if isinstance(sampler, SizedSampler):
        width = sampler.size(params, *size)
    gradients = sent = 0.0
    with np.errstate(all="ignore"):
        state, step = sampler.init(problem.from_chain(0), network, params, x0, rng)
        for k in range(STEPS):
            state, info = step(state, k, rng)
            moved = 1.0 if info.active is None else info.active
            gradients += float(np.mean(moved if info.gradients is None else info.gradients))
            sent += float(np.mean(info.unicasts))
    found = {"gradients": gradients / STEPS, "bytes": width * sent / STEPS, "seconds": 0.0}
    if info.clock is not None:
        found["seconds"] = float(info.clock.seconds.max(axis=1).mean()) / STEPS
    return found
