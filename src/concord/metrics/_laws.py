"""What is known exactly of a run: the law of an affine sampler, and the posterior on a grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from concord.contracts import (
    AffineSampler,
    BatchNoise,
    Problem,
    Quadratic,
    Reference,
    SwitchingSampler,
    WithReference,
    reference_of,
)
from concord.errors import ConcordError
from concord.laws import arrivals, exact
from concord.laws.quadrature import Grid
from concord.laws.switching import SIZE_LIMIT, Choices
from concord.metrics import Measurement
from concord.networks.faults import Edges, Network, chances
from concord.samplers import Batching, Biased

Noise = Callable[[np.ndarray, np.ndarray], np.ndarray]


def posterior(problem: Problem, metric: str) -> Reference:
    """Return the posterior that results are compared with; ``metric`` is who asks."""
    try:
        return reference_of(problem)
    except ConcordError as error:
        raise ConcordError(f"metric {metric}: {error}") from None


def grid(problem: Problem, metric: str) -> Grid:
    """Return the problem's exact posterior on a grid; ``metric`` is who asks."""
    found = problem.reference if isinstance(problem, WithReference) else None
    if not isinstance(found, Grid):
        raise ConcordError(
            f"metric {metric}: {type(problem).__name__} has no reference posterior on a grid; "
            "remove the metric"
        )
    return found


def update_of(m: Measurement) -> exact.Update | None:
    """Return the update of the run's law; None where sampler, problem or options have none."""
    if not isinstance(m.sampler, AffineSampler) or not isinstance(m.problem, Quadratic):
        return None
    if batch_size(m) is not None and not isinstance(m.problem, BatchNoise):
        return None
    return m.sampler.affine(m.problem, m.topology, m.sampler_params)


def choices_of(m: Measurement) -> Callable[[int], Choices] | None:
    """Return what each iteration chooses from; None where no law is known, or it is too large."""
    if not isinstance(m.sampler, SwitchingSampler) or not isinstance(m.problem, Quadratic):
        return None
    if m.problem.agents * m.problem.dim > SIZE_LIMIT or isinstance(m.topology, Network):
        return None
    choices = m.sampler.choices(m.problem, m.topology, m.sampler_params)
    return None if choices is None or len(choices(0).offset[0]) > SIZE_LIMIT else choices


def batch_size(m: Measurement) -> int | None:
    """Return the size of mini-batches; None for full gradients."""
    return m.sampler_params.batch_size if isinstance(m.sampler_params, Batching) else None


def start_of(m: Measurement, update: exact.Update) -> tuple[np.ndarray, np.ndarray] | None:
    """Return mean and covariance of the state at iteration 0; None if only draws are known."""
    agents, dim = m.problem.agents, m.problem.dim
    moments = m.initial.moments(dim)
    return None if moments is None else exact.initial(agents, dim, moments, *update.auxiliary)


def batch_noise(m: Measurement) -> Noise | None:
    """Return the covariance of the errors of mini-batches, of mean and cov of every agent.

    None for full gradients.
    """
    problem, size, params = m.problem, batch_size(m), m.sampler_params
    if size is None or not isinstance(problem, BatchNoise):
        return None
    how = (params.batch_scale, params.batch_pool) if isinstance(params, Biased) else ()
    return lambda mean, cov: problem.batch_noise_covariance(mean, cov, size, *how)


def exact_law(m: Measurement) -> exact.Law | None:
    """Return the exact law at the recorded iterations.

    On a network where vectors may not arrive, its moments averaged over what does. None where there
    is none, and beyond ``exact.SIZE_LIMIT`` entries of positions, or of vectors on their way.
    """
    agents, dim = m.problem.agents, m.problem.dim
    update = update_of(m) if agents * dim <= exact.SIZE_LIMIT else None
    if update is None or (start := start_of(m, update)) is None:
        return None
    recorded = m.trace.draw.tolist()
    if isinstance(m.topology, Network):
        ways = Edges(m.topology)
        large = len(ways.links) * dim > exact.SIZE_LIMIT
        options = m.topology.conditions
        coded = options.compression is not None or options.privacy is not None
        if large or coded or update.arrivals is None or batch_size(m) is not None:
            return None
        if (drawn := chances(m.topology)) is None:
            return None
        ends, noise = (ways.receivers, ways.senders), options.noise**2
        known = (*start, m.iterations, recorded, agents, dim)
        return arrivals.propagate(update, drawn, ends, options.on_loss, *known, noise)
    return exact.propagate(update.at, *start, m.iterations, recorded, agents, dim, batch_noise(m))
