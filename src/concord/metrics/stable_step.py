"""The largest stable steps of a sampler on a Gaussian problem, which the papers leave to tuning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from msgspec import structs

from concord.laws import exact
from concord.metrics import Measurement, Row, lacking
from concord.metrics._laws import update_of
from concord.samplers import Fusing, Stepping
from concord.sampling.schedules import Schedule

METRICS = ("stable.step_size", "stable.fusion", "used.step_size", "used.fusion")
ALL_ARRIVES = True  # it speaks of networks on which nothing is lost

PRECISION = 1e-4


def rows(m: Measurement) -> Iterator[Row]:
    """Yield, for each of the sampler's steps, its value and the largest stable one.

    stable.<step> is where the spectral radius of the update, conserved quantities apart, reaches 1
    while everything else stays; nan if other parameters leave no stable value, inf if a million
    times the value is stable yet. With mini-batches it is where the mean settles: the covariance
    may need a smaller step. used.<step> is the run's value. Schedules are held at the values of
    the last step.
    """
    params = m.sampler_params
    steps = {"step_size": params.step_size} if isinstance(params, Stepping) else {}
    if isinstance(params, Fusing):
        steps["fusion"] = params.fusion
    held = {name: Schedule(step(max(m.iterations - 1, 0))) for name, step in steps.items()}
    if not steps or update_of(m) is None:
        raise lacking(
            "stable_step",
            "an affine sampler with a step size on linear regression, without mini-batches in "
            "epochs",
        )
    # One schedule at a time is varied while the other keeps its value.
    for name in steps:

        def affine_for(value: float, name: str = name) -> exact.Affine:
            changes: dict[str, Any] = {**held, name: Schedule(value)}
            update = update_of(replace(m, sampler_params=structs.replace(params, **changes)))
            assert update is not None  # whatever the step
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
