"""Random choices of samplers.

They are drawn by a generator, or enumerated where an exact law is read off a sampler's step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def enumerates(rng: Any) -> bool:
    """Return whether a generator enumerates choices and does not draw (``laws.read_off``)."""
    return hasattr(rng, "choose")


def draw_choice(
    rng: Any,
    probability: Sequence[float] | np.ndarray,
    chains: int,
    draw: Callable[[], np.ndarray] | None = None,
) -> np.ndarray:
    """Draw one of several outcomes for each chain; return their numbers, (chains,).

    A sampler that makes its random choices by this function has an exact law if its step is affine
    given the choices.

    probability: probabilities of outcomes 0, 1, .... draw: function that draws the outcomes in
    another way; None: by one uniform number of each chain.
    """
    if enumerates(rng):
        chosen: np.ndarray = rng.choose(np.asarray(probability, dtype=float), chains)
        return chosen
    if draw is not None:
        return draw()
    numbers: np.ndarray = rng.random(chains)
    return (numbers[:, None] >= np.cumsum(probability)[:-1]).sum(axis=1)


def draw_bool(rng: Any, probability: float, chains: int) -> np.ndarray:
    """Draw whether an event of a given probability happens in each chain, (chains,)."""
    return draw_choice(rng, [probability, 1 - probability], chains) == 0


def count_steps_ahead(rng: Any, numbers: int, most: int) -> int:
    """Return for how many steps random numbers are drawn together.

    numbers: how many numbers a step takes. most: how many may be drawn together. It is one step
    where the generator enumerates choices.
    """
    return 1 if enumerates(rng) else max(1, most // numbers)
