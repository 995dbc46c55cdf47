"""Bounds and conditions printed by the papers, every constant computed from the problem."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Condition:
    """One condition of a theorem: its name, the number that decides it, the verdict."""

    name: str
    value: float
    holds: bool


def geometric_sum(a: float, b: float, k: np.ndarray) -> np.ndarray:
    """Return (a^k - b^k)/(a - b) = sum_{i<k} a^i b^(k-1-i), also where a = b."""
    if abs(a - b) > 1e-9 * max(abs(a), abs(b)):
        return (a**k - b**k) / (a - b)
    return np.where(k > 0, k * max(a, b) ** np.maximum(k - 1, 0), 0.0)


def _ratio(above: float, below: float) -> float:
    return above / below if below != 0 else float("inf")
