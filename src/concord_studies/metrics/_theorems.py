"""Conditions of papers' theorems as metrics."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from concord_studies.metrics import Measurement, Row, final_rows


@dataclass(frozen=True)
class Condition:
    """One condition of a theorem.

    name: the paper's name for it.
    value, limit: its left side and right side; None: the name states the right side.
    holds: whether it is met.
    """

    name: str
    value: float
    holds: bool
    limit: float | None = None


def condition_metrics(*names: str) -> tuple[str, ...]:
    """Return the names of metrics that ``condition_rows`` yields for conditions without a limit."""
    return tuple(metric for name in names for metric in (name, f"{name}.value"))


def condition_rows(m: Measurement, theorem: str, judged: Iterable[Condition]) -> Iterator[Row]:
    """Yield the rows of every condition of a theorem: its sides, and 1 if it holds, else 0.

    judged: the conditions with their sides.
    """
    for condition in judged:
        name = f"{theorem}.{condition.name}"
        yield from final_rows(m, {f"{name}.value": condition.value, name: float(condition.holds)})
        if condition.limit is not None:
            yield from final_rows(m, {f"{name}.limit": condition.limit})


def geometric_sum(a: float, b: float, k: np.ndarray) -> np.ndarray:
    """Return (a^k - b^k)/(a - b) = sum_{i<k} a^i b^(k-1-i), also where a = b."""
    if abs(a - b) > 1e-9 * max(abs(a), abs(b)):
        return (a**k - b**k) / (a - b)
    return np.where(k > 0, k * max(a, b) ** np.maximum(k - 1, 0), 0.0)
