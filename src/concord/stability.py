"""The largest stable step of an affine sampler, beyond which its law diverges."""

from functools import reduce

from msgspec import structs

from concord.laws import exact
from concord.laws.law import compose_cycle, radius_over_losses
from concord.laws.read_off import NoLaw, StepReader
from concord.laws.scheduled import StepFamily, read_family
from concord.networks.network import Network
from concord.problem import Problem
from concord.sampler import Algorithm
from concord.sampling.schedules import Schedule

PRECISION = 1e-4
CONSERVED = 1e-4  # by so much rounding may take a radius beyond 1 where something is conserved
STEPS = ("step_size", "fusion")  # the options of samplers that are steps


def constant_steps(sampler: Algorithm, k: int) -> dict[str, Schedule]:
    """Return the sampler's steps by option, each constant at its value in iteration k."""
    steps = {name: getattr(sampler, name, None) for name in STEPS}
    return {name: Schedule(step(k)) for name, step in steps.items() if isinstance(step, Schedule)}


def with_step(sampler: Algorithm, name: str, value: float, k: int) -> Algorithm:
    """Return the sampler with another constant step, its others at their values in iteration k."""
    changes: dict[str, Schedule] = {**constant_steps(sampler, k), name: Schedule(value)}
    return structs.replace(sampler, **changes)


def diverges(
    sampler: Algorithm,
    problem: Problem,
    network: Network,
    k: int = 0,
) -> bool:
    """Return whether the law of an affine sampler diverges with its steps of iteration k.

    The law diverges where its growth (``growth_of_law``) exceeds 1. Raises ``NoLaw`` if the sampler
    is not affine on the problem.
    """
    return growth_of_law(sampler, problem, network, k) > 1


def growth_of_law(
    sampler: Algorithm,
    problem: Problem,
    network: Network,
    k: int = 0,
    family: StepFamily | None = None,
) -> float:
    """Return the factor by which the law of an affine sampler grows in the end; below 1 it settles.

    The factor is the spectral radius of the update, without conserved quantities. Updates that
    repeat in a cycle count as one, which is their composition; steps stay at their values in
    iteration k. Where vectors may be lost it is the radius of second moments over the losses, less
    what rounding may add where something is conserved. Where steps are chosen at random, and with
    mini-batches, it is that of the mean: the covariance may need a smaller step. Raises ``NoLaw``
    if the factor is not known.

    family: the updates of the sampler at all values of a step; None: unknown.
    """
    constant = structs.replace(sampler, **constant_steps(sampler, k))
    if not network.delivers_all:
        return radius_over_losses(constant, problem, network) - CONSERVED
    updates = family and family.updates_of([constant])
    reader = family.reader_of(constant) if family else StepReader(constant, problem, network)
    if updates or not reader.chooses:
        update = compose_cycle(updates[0] if updates else reader.update(), k)[0]
        return exact.spectral_radius(exact.restrict(update)[0].matrix)
    begin, period = reader.cycle or (1, 1)  # the first may differ: references are taken
    leads = (reader.read_step(n).choices.lead for n in range(begin, begin + period))
    return exact.spectral_radius(reduce(lambda whole, lead: lead @ whole, leads))


def largest_stable_step(
    sampler: Algorithm,
    problem: Problem,
    network: Network,
    k: int = 0,
    name: str = "step_size",
) -> float:
    """Return the value of a step where the growth of the law (``growth_of_law``) reaches 1.

    The other steps stay at their values in iteration k. nan if they leave no stable value, inf if a
    million times the sampler's own value is stable yet. Raises ``NoLaw`` if the sampler has no such
    step, or its growth is not known.
    """
    steps = constant_steps(sampler, k)
    if name not in steps:
        raise NoLaw(f"the sampler has no {name}")

    family = read_family(with_step(sampler, name, 1.0, k), name, problem, network)

    def is_stable(value: float) -> bool:
        """Return whether the law settles with a value of the step."""
        return growth_of_law(with_step(sampler, name, value, k), problem, network, k, family) < 1

    return exact.find_largest(is_stable, steps[name].initial, PRECISION)
