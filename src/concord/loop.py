"""The loop over iterations, in which all chains and agents advance together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from concord.networks.network import Network
from concord.problem import CountedProblem
from concord.sampler import check_state

Callback = Callable[[int, Any], object]


def run(
    sampler: Any,
    problem: Any,
    network: Network,
    x0: np.ndarray,
    steps: int,
    rng: np.random.Generator,
    callbacks: Sequence[Callback] = (),
    due: Callable[[], int] | None = None,
) -> Any:
    """Run a sampler from x0, (chains, agents, dim), for ``steps`` iterations; return its state.

    network: as ``Network.start`` returns it.
    callbacks: functions called with each iteration and its state, from iteration 0 on.
    due: function that returns the next iteration at which callbacks must be called, where a sampler
    takes several steps at once (``fast``); None: every iteration.
    """
    counted = problem if isinstance(problem, CountedProblem) else CountedProblem(problem, len(x0))
    state = sampler.init(x0, counted, network, rng)
    check_state(state, sampler, x0.shape)
    counted.take()  # starts are not charged
    for callback in callbacks:
        callback(0, state)
    multi_step = getattr(sampler, "multi_step", None)
    with np.errstate(over="ignore", invalid="ignore"):
        k = 0
        while k < steps:
            count = 0
            if multi_step is not None and due is not None:
                state, count = multi_step(state, k, min(due(), steps) - k, counted, network, rng)
            if not count:
                network.begin(k)
                after = sampler.step(state, k, counted, network, rng)
                check_state(after, sampler, x0.shape, state)
                state = keep_asleep(network, state, after)
                network.end(k, counted.close_count(network.awake))
            k += count or 1
            for callback in callbacks:
                callback(k, state)
    return state


def keep_asleep(network: Network, before: Any, after: Any) -> Any:
    """Return the state after a step, with the entries of sleeping agents as before it.

    before, after: states before and after the step, whose arrays have agents as their second axis.
    """
    awake = network.awake
    if awake is None:
        return after
    parts = [
        np.where(awake.reshape(awake.shape + (1,) * (new.ndim - 2)), new, old) if new.size else new
        for old, new in zip(before, after, strict=True)
    ]
    return type(after)(*parts)
