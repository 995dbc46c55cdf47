"""The loop over iterations, in which all chains and agents advance together."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from concord.errors import ConcordError
from concord.networks.network import Network
from concord.problem import CountedProblem, Problem
from concord.sampler import Algorithm, ChainState, State, check_state

Callback = Callable[[int, ChainState], object]
# Takes (state, k, most, problem, network, rng); returns the state after some steps from iteration k
# on, at most so many, and their number, which may be zero.
MultiStep = Callable[
    [State, int, int, CountedProblem, Network, np.random.Generator], tuple[State, int]
]


def run(
    sampler: Algorithm[State],
    problem: Problem | CountedProblem,
    network: Network,
    x0: np.ndarray,
    steps: int,
    rng: np.random.Generator,
    callbacks: Sequence[Callback] = (),
    due: Callable[[], int] | None = None,
    multi_step: MultiStep[State] | None = None,
) -> State:
    """Run a sampler from x0, (chains, agents, dim), for ``steps`` iterations; return its state.

    network: as ``Network.start`` returns it.
    callbacks: functions called with each iteration and its state, from iteration 0 on.
    multi_step: function that takes several steps at once (``fast.CompiledSteps``). due: function
    that returns the next iteration at which callbacks must be called then. None: single steps.
    """
    counted = problem if isinstance(problem, CountedProblem) else CountedProblem(problem, len(x0))
    state: State = call_watched(sampler, "init", {"x0": x0}, x0, counted, network, rng)
    check_state(state, sampler, x0.shape)
    counted.take()  # starts are not charged
    for callback in callbacks:
        callback(0, state)
    with np.errstate(over="ignore", invalid="ignore"):
        k = 0
        while k < steps:
            count = 0
            if multi_step is not None and due is not None:
                state, count = multi_step(state, k, min(due(), steps) - k, counted, network, rng)
            if not count:
                network.begin(k)
                arguments = state, k, counted, network, rng
                if k:
                    after = sampler.step(*arguments)
                else:
                    after = call_watched(sampler, "step", state._asdict(), *arguments)
                check_state(after, sampler, x0.shape, state)
                state = keep_asleep(network, state, after)
                network.end(k, counted.close_count(network.awake))
            k += count or 1
            for callback in callbacks:
                callback(k, state)
    return state


def call_watched(
    sampler: Algorithm, method: str, arrays: Mapping[str, np.ndarray], *arguments: object
) -> Any:
    """Call a sampler's init or step; refuse it if it changes arguments or global generators.

    method: "init" or "step". arrays: those of its arguments that it must not change, by name. A
    ConcordError if one of them, or a global generator of random numbers, is another afterwards.
    """
    contents = {name: array.tobytes() for name, array in arrays.items()}
    generators = pickle_global_generators()
    result = getattr(sampler, method)(*arguments)
    who = f"{type(sampler).__name__}.{method}, or a gradient that it takes,"
    for name, array in arrays.items():
        if array.tobytes() != contents[name]:
            raise ConcordError(
                f"{who} wrote into {name}, which it must leave as it is; compute a new array, by "
                "x = x + move in place of x += move"
            )
    if pickle_global_generators() != generators:
        raise ConcordError(
            f"{who} drew from the global generator of numpy.random or random, which the seed of a "
            f"run does not set; draw from the rng that {method} is given"
        )
    return result


def pickle_global_generators() -> bytes:
    """Pickle the states of the global generators of numpy.random and random, to compare them."""
    return pickle.dumps((np.random.get_state(legacy=False), random.getstate()))  # noqa: NPY002


def keep_asleep(network: Network, before: State, after: State) -> State:
    """Undo a step for agents that sleep: return its state with their entries as before.

    before, after: states before and after the step. Arrays whose first axes are (chains, agents)
    are of agents; any other is of the whole network, which moves with every step.
    """
    awake = network.awake
    if awake is None:
        return after
    parts = [
        np.where(awake.reshape(awake.shape + (1,) * (new.ndim - 2)), new, old)
        if new.shape[:2] == awake.shape
        else new
        for old, new in zip(before, after, strict=True)
    ]
    kind: Any = type(after)
    return kind(*parts)
