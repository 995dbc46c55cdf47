"""The largest stable step of an affine sampler, beyond which its law diverges."""

from typing import Any

import numpy as np
from msgspec import structs

from concord.laws import exact
from concord.laws.law import compose_cycle, update_of
from concord.laws.read_off import NoLaw
from concord.networks.network import Network
from concord.problem import Problem
from concord.sampler import Algorithm
from concord.sampling.schedules import Schedule

PRECISION = 1e-4
STEPS = ("step_size", "fusion")  # the options of samplers that are steps


def constant_steps(sampler: Algorithm, k: int) -> dict[str, Schedule]:
    """Return the sampler's steps by option, each constant at its value in iteration k."""
    steps = {name: getattr(sampler, name, None) for name in STEPS}
    return {name: Schedule(step(k)) for name, step in steps.items() if isinstance(step, Schedule)}


def with_step(sampler: Algorithm, name: str, value: float, k: int) -> Algorithm:
    """Return the sampler with another constant step, its others at their values in iteration k."""
    changes: dict[str, Any] = {**constant_steps(sampler, k), name: Schedule(value)}
    return structs.replace(sampler, **changes)


def diverges(
    sampler: Algorithm,
    problem: Problem,
    network: Network,
    k: int = 0,
) -> bool:
    """Return whether the law of an affine sampler diverges with its steps of iteration k.

    So it is where the spectral radius of the update, without conserved quantities, exceeds 1; of
    updates that repeat, that of the composition of one cycle. Raises ``NoLaw`` if the sampler is
    not affine on the problem.
    """
    return exact.spectral_radius(_matrix_of(sampler, problem, network, k)) > 1


def _matrix_of(sampler: Algorithm, problem: Problem, network: Network, k: int) -> np.ndarray:
    """Return the matrix of a cycle of updates, with the steps of iteration k, as they settle."""
    constant = structs.replace(sampler, **constant_steps(sampler, k))
    update = compose_cycle(update_of(constant, problem, network), k)[0]
    return exact.restrict(update)[0].matrix


def largest_stable_step(
    sampler: Algorithm,
    problem: Problem,
    network: Network,
    k: int = 0,
    name: str = "step_size",
) -> float:
    """Return the value of a step where the spectral radius of the update reaches 1.

    Conserved quantities are left out of the update, and the other steps stay at their values in
    iteration k. nan if they leave no stable value, inf if a million times the sampler's own value
    is stable yet. With mini-batches it is where the mean settles: the covariance may need a smaller
    step. Raises ``NoLaw`` if the sampler has no such step, or is not affine on the problem.
    """
    steps = constant_steps(sampler, k)
    if name not in steps:
        raise NoLaw(f"the sampler has no {name}")

    def is_stable(value: float) -> bool:
        """Return whether the mean settles with a value of the step in iteration k."""
        matrix = _matrix_of(with_step(sampler, name, value, k), problem, network, k)
        return exact.spectral_radius(matrix) < 1

    return exact.find_largest(is_stable, steps[name].initial, PRECISION)
