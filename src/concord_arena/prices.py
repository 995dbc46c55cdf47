"""What an iteration costs: gradients and bytes of an agent, and simulated seconds.

Gradients and messages are counted over some iterations of a trial run. Awake agents and links that
are up count by their probabilities. Costs that are random, or repeat slowly, are means over many
iterations. The *unit* of a cost is gradients, bytes or seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np

from concord.batch_gradients import MiniBatches
from concord.contracts import dtype_of
from concord.loop import keep_asleep
from concord.minibatches import batches_of
from concord.networks.conditions import Conditions
from concord.networks.effects import Static
from concord.networks.moments import mask_moments
from concord.networks.network import Network
from concord.problem import CountedProblem, Problem, local_of
from concord.sampler import Algorithm

# Iterations: of what is always the same, and of what is not; and the standard error of the mean of
# gradients or bytes over chains, relative to it, at which that is known: a budget then pays for one
# iteration in 500 more or less.
CHAINS, STEPS, MOST_STEPS, KNOWN_MEAN = 8, 48, 4800, 0.002


class _Counts(NamedTuple):
    """Mean counts of an iteration: for each agent, (agents,), and the seconds for all agents."""

    gradients: np.ndarray
    bytes: np.ndarray
    broadcasts: np.ndarray
    seconds: float


def price_per_iteration(
    sampler: Algorithm, problem: Problem, network: Network, rng: np.random.Generator
) -> dict[str, float]:
    """Return the expected price of an iteration for the mean agent, by unit.

    gradients: of its potential. bytes: of the vectors that it sends, one for every neighbor that
    needs it; lost ones are paid. seconds: until the last agent has ended it, where the network has
    a clock; 0 otherwise.
    """
    always, awake, up = _always_on(network)
    counts = _count(sampler, problem, always, rng)
    seconds = counts.seconds
    if always is not network and seconds:
        seconds = _count(sampler, problem, network, rng).seconds
    return {
        "gradients": float(np.mean(counts.gradients * awake)),
        "bytes": float(np.mean(counts.bytes * up)),
        "seconds": seconds,
    }


def count_iterations(budget: Mapping[str, float], price: Mapping[str, float], cap: float) -> int:
    """Return the number of iterations that a budget pays for, at most ``cap``.

    budget: amounts by unit, each of which has to suffice. price: of an iteration, by unit.
    """
    counts = (amount / price[name] for name, amount in budget.items() if price[name] > 0)
    return int(min([cap, *counts]))


def try_step(
    sampler: Algorithm, problem: Problem, network: Network, rng: np.random.Generator
) -> None:
    """Take one step, so that a sampler that refuses problem or network only in a step raises."""
    _count(sampler, problem, network, rng, cap=1)


def max_broadcasts(
    sampler: Algorithm, problem: Problem, network: Network, rng: np.random.Generator
) -> float:
    """Return the mean number of broadcasts per iteration of the agent that sends the most."""
    return float(_count(sampler, problem, network, rng).broadcasts.max())


def _count(
    sampler: Algorithm,
    problem: Problem,
    network: Network,
    rng: np.random.Generator,
    cap: int = MOST_STEPS,
) -> _Counts:
    """Count a sampler's gradients, messages and seconds per iteration, the means of a trial run.

    cap: the largest number of steps; fewer are taken once the means are known.
    """
    masks, times = rng.spawn(2)
    mean: Any = np.zeros(problem.dim)
    if problem.posterior and local_of(problem) is None:
        mean = problem.posterior.mean
    shape = CHAINS, problem.agents, problem.dim
    x0 = np.broadcast_to(mean, shape).astype(dtype_of(problem))
    running = network.start(x0, masks, times, local_of(problem))
    block: Any = problem.from_chain(0)
    if (batches := batches_of(sampler)) is not None:
        block = MiniBatches(block, batches, CHAINS, rng)
    counted = CountedProblem(block, CHAINS)
    patterns: set[tuple[Any, ...]] = set()  # what iterations cost each chain
    ends, before = np.zeros(CHAINS), np.zeros((3, CHAINS))
    with np.errstate(all="ignore"):
        state = sampler.init(x0, counted, running, rng)
        counted.take()
        for k in range(cap):
            running.begin(k)
            state = keep_asleep(running, state, sampler.step(state, k, counted, running, rng))
            running.end(k, counted.close_count(running.awake))
            totals = counted.total, running.meter.unicast_bytes, running.meter.broadcasts
            every = [np.broadcast_to(t, shape[:2]).sum(axis=-1) for t in totals]
            if not np.isfinite(every[1]).all():  # of a diverged chain
                break
            if k < STEPS:
                # Vectors of another size than positions are no whole number of these.
                patterns |= set(zip(*(np.array(every) - before).round(6).tolist(), strict=True))
                before = np.array(every)
            if running.clock is not None:
                ends = running.clock.seconds.max(axis=0)
            if k + 1 == STEPS and len(patterns) == 1 and not np.ptp(ends):
                break
            looks = running.clock is None and (k + 1) % (10 * STEPS) == 0
            if looks and _are_means_known(patterns, every, k + 1):
                break
    gradients, sent, broadcasts = (
        np.broadcast_to(total, shape[:2]).mean(axis=0) / (k + 1) for total in totals
    )
    return _Counts(gradients, sent, broadcasts, float(ends.mean()) / (k + 1))


def _are_means_known(patterns: set[tuple[Any, ...]], totals: list[np.ndarray], steps: int) -> bool:
    """Return whether messages are as many in every iteration, and means of random costs precise.

    patterns: gradients, bytes and broadcasts of each single step of a chain. totals: the same three
    over all steps, (chains,).
    """
    regular = [
        len(set(each)) == 1 and np.allclose(total, steps * each[0], rtol=1e-12, atol=0.0)
        for each, total in zip(zip(*patterns, strict=True), totals, strict=True)
    ]
    return regular[2] and all(
        same or _is_mean_precise(total) for same, total in zip(regular[:2], totals[:2], strict=True)
    )


def _is_mean_precise(totals: np.ndarray) -> bool:
    """Return whether chains (chains,) give the mean of a random cost precisely enough.

    Chains whose costs repeat slowly are alike, so that no error can be estimated.
    """
    error = totals.std(ddof=1) / CHAINS**0.5
    return bool(0 < error < KNOWN_MEAN * totals.mean())


def _always_on(network: Network) -> tuple[Network, np.ndarray | float, np.ndarray | float]:
    """Return the network with all edges up and agents awake, and two shares by which costs shrink.

    The shares, (agents,) or 1, are the share of iterations in which an agent is awake, and the
    share of its vectors that it sends; means over the graphs of a periodic schedule.
    """
    options, graph = network.conditions, network.graph
    if options.awake == 1 and options.schedule == Static():
        return network, 1.0, 1.0
    drawn = mask_moments(Network(graph, Conditions(schedule=options.schedule)))
    assert drawn is not None
    turns = len(options.schedule.tables(graph)) or 1
    first = np.mean([drawn(k)[0] for k in range(turns)], axis=0)
    ends = np.bincount(graph.senders, first[graph.agents :], graph.agents)
    always = msgspec.structs.replace(options, awake=1.0, schedule=Static())
    up = options.awake * ends / np.maximum(graph.degrees, 1)
    return Network(graph, always), options.awake * first[: graph.agents], up
