"""The largest stable steps of a sampler on a Gaussian problem, which the papers leave to tuning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from concord.errors import ConcordError
from concord.laws import exact
from concord.metrics import Measurement, Row, need
from concord.sampling.schedules import Schedule

METRICS = ("stable.*", "used.*")

# Schedules a sampler may have, one at a time varied while the other keeps its value.
STEPS = ("step_size", "fusion")
PRECISION = 1e-4


def rows(m: Measurement) -> Iterator[Row]:
    """Yield, for each of the sampler's steps, its value and the largest stable one.

    stable.<step> is where the spectral radius of the update, conserved quantities apart, reaches 1
    while everything else stays; nan if other parameters leave no stable value, inf if a million
    times the value is stable yet. Of mini-batches it says where the mean settles: the covariance
    may need a smaller step. used.<step> is the run's value. Schedules are held at the values of
    the last step.
    """
    steps = [name for name in STEPS if isinstance(getattr(m.sampler_params, name, None), Schedule)]
    if not steps or not hasattr(m.sampler, "affine") or not hasattr(m.problem, "gram"):
        raise ConcordError(
            "metric stable_step needs an affine sampler with a step size on linear regression; "
            "remove it from this run's metrics"
        )
    held = {
        name: Schedule(getattr(m.sampler_params, name)(max(m.iterations - 1, 0))) for name in steps
    }
    for name in steps:

        def affine_for(value: float, name: str = name) -> exact.Affine:
            changes: dict[str, Any] = {**held, name: Schedule(value)}
            params = replace(m.sampler_params, **changes)
            update = m.sampler.affine(m.problem, m.topology, params)
            need(update is not None, "stable_step", "a law, which mini-batches in epochs have not")
            return exact.restrict(update.at(0))[0]

        used = held[name].initial
        yield Row(m.iterations, "network", f"used.{name}", used, chance=False)
        yield Row(
            m.iterations, "network", f"stable.{name}", _largest(affine_for, used), chance=False
        )


def _largest(affine_for: Any, value: float) -> float:
    high = value
    while exact.spectral_radius(affine_for(high).matrix) < 1:
        high *= 4
        if high > 1e6 * value:
            return float("inf")
    low = high / 4
    while exact.spectral_radius(affine_for(low).matrix) >= 1:
        low /= 4
        if low < 1e-6 * value:
            return float("nan")
    return exact.largest_stable_step(affine_for, low, high, PRECISION)
