"""Random choices of samplers.

They are drawn by a generator, or enumerated where an exact law is read off a sampler's step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from concord.networks.graph import Graph

# Ticks are drawn together until they take so many normal numbers: a draw of few numbers takes
# longer than the rest of a tick.
NORMALS_PER_DRAW = 1 << 17


def is_enumerating(rng: object) -> bool:
    """Return whether ``rng`` is no generator, but goes through all outcomes of random choices.

    Exact laws are computed by one that does (``laws.read_off``).
    """
    return hasattr(rng, "choose")


def draw_choice(rng: Any, probability: Sequence[float] | np.ndarray, chains: int) -> np.ndarray:
    """Draw one of several outcomes for each chain; return their numbers, (chains,).

    A sampler that makes its random choices by this function has an exact law if its step is affine
    given the choices.

    probability: probabilities of outcomes 0, 1, .... Each chain takes one uniform number.
    """
    if is_enumerating(rng):
        return rng.choose(np.asarray(probability, dtype=float), chains)
    numbers: np.ndarray = rng.random(chains)
    return (numbers[:, None] >= np.cumsum(probability)[:-1]).sum(axis=1)


def draw_bool(rng: np.random.Generator, probability: float, chains: int) -> np.ndarray:
    """Draw whether an event of a given probability happens in each chain, (chains,).

    Nothing is drawn for a sure event.
    """
    if probability == 1:
        return np.ones(chains, dtype=bool)
    if is_enumerating(rng):
        return draw_choice(rng, [probability, 1 - probability], chains) == 0
    return rng.random(chains) < probability


def draw_subsets(rng: np.random.Generator, count: int, shape: tuple[int, int]) -> np.ndarray:
    """Draw ``count`` of the agents in each chain without replacement, a mask of a shape.

    shape: (chains, agents). Nothing is drawn where all agents are taken.
    """
    if count == shape[1]:
        return np.ones(shape, dtype=bool)
    numbers = rng.random(shape)
    return numbers <= np.sort(numbers, axis=1)[:, count - 1, None]


def draw_pairs(graph: Graph, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Draw pairs that gossip, each an agent and one of its neighbors, (ticks, chains, 2).

    The agent is uniform over all, the neighbor uniform over the agent's. shape: (ticks, chains).
    """
    if is_enumerating(rng):  # the law of a pair is that of the same two the other way round
        chance = (1 / graph.degrees)[graph.edges].sum(axis=1) / graph.agents
        return graph.edges[draw_choice(rng, chance, shape[1])][None]
    arcs = graph.draw_arcs(shape, rng)
    return np.stack([graph.receivers[arcs], graph.senders[arcs]], axis=-1)


@lru_cache(maxsize=32)
def activity(graph: Graph) -> np.ndarray:
    """Return the probability that each agent is one of a pair of ``draw_pairs``, (agents,)."""
    inverse = 1 / graph.degrees
    shares = np.bincount(graph.receivers, inverse[graph.senders], graph.agents)
    return (1 + shares) / graph.agents


def draw_ticks(state: Any, k: int, graph: Graph, rng: np.random.Generator) -> tuple[Any, int]:
    """Return a state with the pairs and noise of tick k, and their index in its arrays.

    state: has fields x, (chains, agents, dim), and pairs, (ticks, chains, 2), and normals, (ticks,
    chains, 2, dim), which serve several ticks, and are drawn anew where k is none of them. It is a
    tick at a time where the generator enumerates choices.
    """
    chains, _, dim = state.x.shape
    ticks = 1 if is_enumerating(rng) else max(1, NORMALS_PER_DRAW // (2 * chains * dim))
    if k % ticks == 0 or not len(state.pairs):
        pairs = draw_pairs(graph, (ticks, chains), rng)
        normals = rng.standard_normal((ticks, chains, 2, dim))
        state = state._replace(pairs=pairs, normals=normals)
    return state, k % ticks
