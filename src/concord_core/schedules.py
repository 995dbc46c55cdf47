r"""Schedules: step sizes and coefficients as functions of the iteration.

.. math:: s_k = \frac{a}{(b + c k)^p}, \qquad k = 0, 1, \dots

A number is a constant schedule, and any function of k is one, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Schedule = float | Callable[[int], float]


@dataclass(frozen=True)
class PowerSchedule:
    """The schedule a / (b + c k)^exponent."""

    a: float
    b: float = 1.0
    c: float = 1.0
    exponent: float = 1.0

    def __call__(self, k: int) -> float:
        """Return the value of iteration k, which begins at 0."""
        return float(self.a / (self.b + self.c * k) ** self.exponent)


def value_at(schedule: Schedule, k: int) -> float:
    """Return the value of a schedule in iteration k."""
    return schedule(k) if callable(schedule) else schedule
