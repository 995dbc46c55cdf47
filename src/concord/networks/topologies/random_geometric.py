"""Agents at random places of a unit square are neighbors if they are near each other."""

import random
from typing import Annotated

import numpy as np

from concord.networks.topology import check_edges
from concord.options import Index, Options, Positive


class Params(Options):
    """How far agents reach, and the seed of their places."""

    radius: Annotated[Positive, "largest distance between neighbors, on a square of side 1"]
    seed: Annotated[Index, "seed of the places"] = 0


def graph(params: Params, agents: int) -> list[tuple[int, int]]:
    """Return the pairs of agents whose points in the unit square are close to each other."""
    check_edges(agents * (agents - 1) // 2)
    rng = random.Random(params.seed)
    places = np.array([[rng.random(), rng.random()] for _ in range(agents)])
    # networkx finds the same pairs, by a k-d tree that takes long to import.
    neighbors = (
        (np.square(places[i + 1 :] - places[i]).sum(axis=1) <= params.radius**2).nonzero()[0]
        for i in range(agents)
    )
    return [(i, i + 1 + int(j)) for i, later in enumerate(neighbors) for j in later]
