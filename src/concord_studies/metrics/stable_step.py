"""The largest stable steps of a sampler on a Gaussian problem, which the papers leave to tuning."""

from collections.abc import Iterator

from concord.laws.law import update_of
from concord.laws.read_off import NoLaw
from concord.sampling.schedules import Schedule
from concord.stability import constant_steps, largest_stable_step
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, final_rows, unmet_need, yields


@yields(
    ("stable.step_size", "stable.fusion", "used.step_size", "used.fusion"),
    network="delivers",  # it speaks of networks on which nothing is lost
    exact=("*",),
    labels={
        "used.step_size": Label(head="step used"),
        "used.fusion": Label(head="fusion used"),
        "stable.step_size": Label(head="largest stable step"),
        "stable.fusion": Label(head="largest stable fusion"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the value of each of the sampler's steps, and its largest stable value.

    stable.<step> is that of ``concord.stability.largest_stable_step``, used.<step> the run's
    value. Schedules are held at the values of the last step.
    """
    for name, step in _final_steps(m).items():
        yield from final_rows(
            m, {f"used.{name}": step.initial, f"stable.{name}": largest_stable_value(m, name)}
        )


def largest_stable_value(m: Measurement, name: str = "step_size") -> float:
    """Return the largest stable value of a step option, with other steps at their last value."""
    _final_steps(m)
    last = max(m.iterations - 1, 0)
    return largest_stable_step(m.sampler, m.problem, m.network, last, name)


def _final_steps(m: Measurement) -> dict[str, Schedule]:
    """Return the sampler's steps by option, as schedules constant at the last iteration's value.

    A ConcordError if the sampler has no step, or the update is not affine.
    """
    steps = constant_steps(m.sampler, max(m.iterations - 1, 0))
    try:
        update_of(m.sampler, m.problem, m.network)
    except NoLaw:
        steps = {}
    if not steps:
        raise unmet_need(
            "stable_step",
            "an affine sampler with a step size on linear regression, without mini-batches in "
            "epochs",
        )
    return steps
