"""The largest stable steps of a sampler on a Gaussian problem, which the papers leave to tuning."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from msgspec import structs

from concord.contracts import Label
from concord.laws import exact
from concord.laws.law import update_of
from concord.laws.read_off import NoLaw
from concord.sampling.schedules import Schedule
from concord_studies.metrics import Measurement, Row, known, lacking

METRICS = ("stable.step_size", "stable.fusion", "used.step_size", "used.fusion")
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
LABELS = {
    "used.step_size": Label(head="step used"),
    "used.fusion": Label(head="fusion used"),
    "stable.step_size": Label(head="largest stable step"),
    "stable.fusion": Label(head="largest stable fusion"),
}

PRECISION = 1e-4


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the value of each of the sampler's steps, and its largest stable value.

    stable.<step> is where the spectral radius of the update, conserved quantities apart, reaches 1
    while everything else stays; nan if other parameters leave no stable value, inf if a million
    times the value is stable yet. With mini-batches it is where the mean settles: the covariance
    may need a smaller step. used.<step> is the run's value. Schedules are held at the values of
    the last step.
    """
    for name, step in _steps(m).items():
        yield from known(m, {f"used.{name}": step.initial, f"stable.{name}": largest(m, name)})


def with_step(m: Measurement, name: str, value: float) -> Measurement:
    """Return the measurement with another constant step, the other steps at their last value."""
    changes: dict[str, Any] = {**_steps(m), name: Schedule(value)}
    return replace(m, sampler=structs.replace(m.sampler, **changes))


def largest(m: Measurement, name: str = "step_size") -> float:
    """Return the largest stable value of the step ``name``, the other steps at their last value."""

    def affine_for(value: float) -> exact.Affine:
        """Return the affine step at the last iteration with a value of the step."""
        update = update_of(with_step(m, name, value).sampler, m.problem, m.network, m.batches)
        return exact.restrict(update.at(max(m.iterations - 1, 0)))[0]

    return exact.stable_limit(affine_for, _steps(m)[name].initial, PRECISION)


def _steps(m: Measurement) -> dict[str, Schedule]:
    """Return the sampler's steps at the last iteration, by option; refuse other samplers."""
    named = {name: getattr(m.sampler, name, None) for name in ("step_size", "fusion")}
    steps = {name: step for name, step in named.items() if isinstance(step, Schedule)}
    try:
        update_of(m.sampler, m.problem, m.network, m.batches)
    except NoLaw:
        steps = {}
    if not steps:
        raise lacking(
            "stable_step",
            "an affine sampler with a step size on linear regression, without mini-batches in "
            "epochs",
        )
    return {name: Schedule(step(max(m.iterations - 1, 0))) for name, step in steps.items()}
