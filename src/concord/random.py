"""Random choices of samplers: drawn, or enumerated where laws are read off a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def enumerates(rng: Any) -> bool:
    """Whether a generator enumerates choices in place of drawing them (``laws.read_off``)."""
    return hasattr(rng, "choose")


def draw_choice(
    rng: Any,
    probability: Sequence[float] | np.ndarray,
    chains: int,
    draw: Callable[[], np.ndarray] | None = None,
) -> np.ndarray:
    """Return what each chain chooses, (chains,): numbers with these probabilities.

    A sampler that draws its choices so has an exact law if it is affine but for them.

    draw: draws them in another way; None: by one uniform number of each chain.
    """
    if enumerates(rng):
        chosen: np.ndarray = rng.choose(np.asarray(probability, dtype=float), chains)
        return chosen
    if draw is not None:
        return draw()
    numbers: np.ndarray = rng.random(chains)
    return (numbers[:, None] >= np.cumsum(probability)[:-1]).sum(axis=1)


def draw_bool(rng: Any, probability: float, chains: int) -> np.ndarray:
    """Return whether each chain does something with a probability, (chains,)."""
    return draw_choice(rng, [probability, 1 - probability], chains) == 0


def count_steps_ahead(rng: Any, numbers: int, most: int) -> int:
    """Return for how many steps of so many numbers each to draw at once, of most numbers in all."""
    return 1 if enumerates(rng) else max(1, most // numbers)
