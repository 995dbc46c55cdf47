"""What an iteration costs: gradients and bytes of an agent, and simulated seconds.

Who is awake and which links are up counts by its probability. What a sampler or a clock draws, or
what repeats slowly, is a mean over many iterations. ``Info`` says what a step costs.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np

from concord.contracts import Problem, SizedSampler, dtype_of
from concord.networks.conditions import Conditions, Static
from concord.networks.edges import Edges
from concord.networks.moments import chances
from concord.networks.network import drawing
from concord.networks.network import turns as turns_of
from concord.networks.topology import Topology

# Iterations: of what is always the same, and of what is not; and what is close enough, relative to
# the mean of gradients, as its standard error over the chains.
CHAINS, STEPS, MANY, CLOSE = 8, 48, 4800, 0.002


class _Counts(NamedTuple):
    """Means of an iteration: of each agent, (agents,), and the seconds that all of them take."""

    gradients: np.ndarray
    unicasts: np.ndarray
    broadcasts: np.ndarray
    seconds: float


def per_iteration(
    sampler: Any, params: Any, problem: Problem, topology: Topology, rng: np.random.Generator
) -> dict[str, float]:
    """Return the expected price of an iteration, for the mean agent.

    gradients: of its potential (what ``Info`` says; otherwise one of each agent that moves). bytes:
    of the vectors that it sends, one for every neighbor that needs it; lost ones are paid. seconds:
    until the last agent has ended it, where the network has a clock; 0 otherwise.
    """
    size = problem.dim, dtype_of(problem).itemsize
    width: float = size[0] * size[1]
    if topology.conditions.eventful:
        width = topology.conditions.size(*size)
    if isinstance(sampler, SizedSampler):
        width = sampler.size(params, *size)
    always, awake, up = _always(topology)
    counts = _counted(sampler, params, problem, always, rng)
    seconds = counts.seconds
    if always is not topology and seconds:
        seconds = _counted(sampler, params, problem, topology, rng).seconds
    sent = float(np.mean(counts.unicasts * up))
    return {
        "gradients": float(np.mean(counts.gradients * awake)),
        "bytes": width * sent,
        "seconds": seconds,
    }


def begin(
    sampler: Any, params: Any, problem: Problem, topology: Topology, rng: np.random.Generator
) -> None:
    """Take one step: some samplers refuse unsuited input only then."""
    _counted(sampler, params, problem, topology, rng, most=1)


def releases(
    sampler: Any, params: Any, problem: Problem, topology: Topology, rng: np.random.Generator
) -> float:
    """Return how many vectors the agent that sends most sends to its neighbors, an iteration."""
    return float(_counted(sampler, params, problem, topology, rng).broadcasts.max())


def _counted(
    sampler: Any,
    params: Any,
    problem: Problem,
    topology: Topology,
    rng: np.random.Generator,
    most: int = MANY,
) -> _Counts:
    network = drawing(topology, *rng.spawn(2))
    x0 = np.tile(problem.posterior.mean if problem.posterior else 0.0, (CHAINS, problem.agents, 1))
    x0 = np.broadcast_to(x0, (CHAINS, problem.agents, problem.dim)).astype(dtype_of(problem))
    total = np.zeros((3, CHAINS, problem.agents))
    seen: set[tuple[float, ...]] = set()  # what iterations cost all agents together
    ends = np.zeros(CHAINS)
    with np.errstate(all="ignore"):
        state, step = sampler.init(problem.from_chain(0), network, params, x0, rng)
        for k in range(most):
            state, info = step(state, k, rng)
            moved = 1.0 if info.active is None else info.active
            gradients = moved if info.gradients is None else info.gradients
            parts = gradients, info.unicasts, info.broadcasts
            for sums, part in zip(total, parts, strict=True):
                sums += part
            if k < STEPS:
                every = [np.broadcast_to(part, total.shape[1:]).sum(axis=-1) for part in parts]
                seen |= set(zip(*(each.tolist() for each in every), strict=True))
            if info.clock is not None:
                ends = info.clock.seconds.max(axis=1)
            if k + 1 == STEPS and len(seen) == 1 and not np.ptp(ends):
                break
            looks = info.clock is None and (k + 1) % (10 * STEPS) == 0
            if looks and _steady(total, parts, k + 1):
                break
    gradients, unicasts, broadcasts = total.mean(axis=1) / (k + 1)
    return _Counts(gradients, unicasts, broadcasts, float(ends.mean()) / (k + 1))


def _steady(total: np.ndarray, parts: tuple[Any, ...], steps: int) -> bool:
    """Whether what is sent is always the same, and gradients are drawn and their mean is known.

    Of gradients that repeat slowly all chains are alike: there is no error to go by.
    """
    always = all(
        (sums == steps * part).all() for sums, part in zip(total[1:], parts[1:], strict=True)
    )
    each = total[0].sum(axis=-1)
    error = each.std(ddof=1) / CHAINS**0.5
    return bool(always and 0 < error < CLOSE * each.mean())


def _always(topology: Topology) -> tuple[Topology, np.ndarray | float, np.ndarray | float]:
    """Return the network on which all is up and awake, and shares of iterations, (agents,).

    The shares: in which an agent is awake, and of its vectors that it sends; with ``pair`` and
    schedules that take turns the mean over these.
    """
    options = topology.conditions
    if options.awake == 1 and options.schedule == Static():
        return topology, 1.0, 1.0
    edges = Edges(topology)
    scheduled = replace(topology, conditions=Conditions(schedule=options.schedule))
    drawn, table = chances(scheduled), turns_of(scheduled, edges)
    assert drawn is not None
    first = np.mean([drawn(k)[0] for k in range(1 if table is None else len(table))], axis=0)
    ends = np.zeros(topology.agents)
    np.add.at(ends, edges.senders, first[topology.agents :])
    calm = msgspec.structs.replace(options, awake=1.0, schedule=Static())
    up = options.awake * ends / np.maximum(topology.degrees, 1)
    return replace(topology, conditions=calm), options.awake * first[: topology.agents], up
