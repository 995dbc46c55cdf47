"""The exact law of a sampler on a problem and a network, where there is one.

Metrics, library and arena call this module; ``laws.read_off`` reads the sampler's step as matrices,
``laws.paths`` computes moments along the iterations. A *version* is one setting of a sampler on one
problem; the laws of several versions are computed together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import fields

from concord.laws import exact, paths
from concord.laws.arrivals import Losses, build_moves, second_moment_radius
from concord.laws.exact import Moments
from concord.laws.iterations import ALWAYS, Cycle, find_cycle, join_cycles
from concord.laws.modes import find_modes
from concord.laws.read_off import NoLaw, StepReader
from concord.laws.scheduled import ReadStep, StepFamily, read_family
from concord.minibatches import Batches, batches_of
from concord.networks.moments import mask_moments
from concord.networks.network import Network
from concord.problem import Problem
from concord.sampler import Algorithm

# The most entries agents * dim of the positions for which a law is computed, or of vectors on their
# way. With as many auxiliary entries a step multiplies 1000 x 1000 matrices, about 0.1 s; runs
# beyond it (a thousand agents) are measured by Monte Carlo only, but for whom asks for the law.
SIZE_LIMIT = 500
LARGEST = 1300
# The most of positions for which all settings together have a law in time.
SETTINGS_LIMIT = 250
# The most iterations of steps that do not repeat, each of which is read.
MOST_STEPS = 1_000_000
# An iteration at which steps that follow schedules are compared with what was read of others.
FAR = 9999
# The most of positions for which powers of second moments over choices are taken.
SECOND_LIMIT = 20


class LawInputs(NamedTuple):
    """The parts of a run on which its law depends; any object with these attributes will do.

    network: the network before the first iteration. initial: the law of the initial positions.
    trace: only its recorded iterations are used.
    """

    sampler: Algorithm
    problem: Problem
    network: Network
    initial: Any
    iterations: int
    trace: Any


def update_of(
    sampler: Algorithm,
    problem: Problem,
    network: Network,
    most: float = np.inf,
) -> exact.Update:
    """Return the affine update of a sampler on a problem and a network.

    most: the largest number of entries agents * dim. Raises ``NoLaw`` where that is exceeded, or
    the step is not affine.
    """
    _refuse_large(problem, most)
    return _read_update(StepReader(sampler, problem, network), sampler, problem, network)


def _read_update(
    reader: StepReader, sampler: Algorithm, problem: Problem, network: Network
) -> exact.Update:
    """Return the update that a reader reads: where it can be, as a function of schedules' values.

    So no step is taken in each iteration whose steps never repeat.
    """
    update = reader.update()
    if update.find_cycle() or update.loss_effect:
        return update
    try:
        step = ReadStep(sampler, problem, network, FAR)
    except Exception:  # whatever steps that cannot be read so do: they are read one by one
        return update
    return replace(update, at=lambda k: step.update_at(k) if k >= step.begin else update.at(k))


def compose_cycle(update: exact.Update, k: int) -> tuple[exact.Affine, int]:
    """Return the composition of the steps of one cycle of an update, and their number.

    k: an iteration, after which the cycle is taken once steps repeat; where the cycle is not known,
    the step of iteration k is returned. A composition of several steps is without the errors of
    mini-batches.
    """
    cycle = update.find_cycle()
    if cycle is None:
        return update.at(k), 1
    begin, period = cycle
    if period == 1:
        return update.at(max(k, begin)), 1
    first = max(k + 1, begin)
    steps = (update.at(n) for n in range(first, first + period))
    return reduce(
        exact.Affine.compose_with, (replace(s, gradient_gain=None) for s in steps)
    ), period


def law_of_run(run: Any, most: float = SIZE_LIMIT) -> exact.Law:
    """Return the exact law of a run (``LawInputs``) at its recorded iterations.

    On a network where vectors may be lost its moments are averaged over the losses. most: the
    largest number of entries agents * dim. Raises ``NoLaw`` where there is no exact law.
    """
    problem, network = run.problem, run.network
    update = update_of(run.sampler, problem, network, most)
    start, noise, recorded = start_of(run, update), batch_noise(run), run.trace.draw.tolist()
    has_powers = network.delivers_all and noise is None
    if run.iterations > MOST_STEPS and not (has_powers and update.find_cycle()):
        raise NoLaw(
            "steps that are not known to repeat, lose vectors or take mini-batches have a law of "
            f"up to {MOST_STEPS} iterations; sample it"
        )
    path = laws_of_updates([update], [start], network, problem.dim, noise=noise)
    return find_modes(path).law(recorded)


def exact_law(run: Any) -> exact.Law | None:
    """Return the exact law of a run (``LawInputs``); None where there is none."""
    try:
        return law_of_run(run)
    except NoLaw:
        return None


def start_of(run: Any, update: exact.Update) -> Moments:
    """Return mean (S,) and covariance (S, S) of a run's state at iteration 0.

    Raises ``NoLaw`` if the initial law is given by draws alone.
    """
    problem = run.problem
    positions = _require_moments(run.initial.moments(problem.dim))
    return exact.initial_moments(problem.agents, problem.dim, positions, update.start)


def batch_noise(run: Any) -> paths.GradientNoise | None:
    """Return a function from the agents' moments to mini-batch error covariances.

    It takes means (agents, dim) and covariances (agents, dim, dim), and returns covariances
    (agents, dim, dim); None for full gradients. Raises ``NoLaw`` where the problem does not offer
    these covariances.
    """
    batches = batches_of(run.sampler)
    return None if batches is None else build_batch_noise(run.problem, batches)


def build_batch_noise(problem: Any, batches: Batches) -> paths.GradientNoise:
    """Return a function from moments to a problem's mini-batch error covariances."""
    if not hasattr(problem, "batch_noise_covariance"):
        raise NoLaw(f"{type(problem).__name__} states no covariance of mini-batches; sample it")
    batches.check_points(problem.counts)
    return lambda mean, cov: problem.batch_noise_covariance(mean, cov, batches)


def _noise_of_versions(
    noise: paths.GradientNoise, versions: int, agents: int, dim: int
) -> paths.GradientNoise:
    """Return a function of moments as ``noise``, with versions on a first axis of all arrays.

    Gradients are affine in the positions, so the covariances of their errors are affine in first
    and second moments: for several versions their coefficients are found by unit vectors.
    """
    if versions == 1:
        return lambda mean, cov: noise(mean[0], cov[0])[None]
    point, flat, units = np.zeros((agents, dim)), np.zeros((agents, dim, dim)), np.eye(dim)
    at_zero = noise(point, flat)
    pairs = [(noise(point, flat + (a[:, None] * b + b[:, None] * a) / 2) - at_zero)
             for a in units for b in units]  # fmt: skip
    single = [noise(point + a, flat) - at_zero - pairs[i * (dim + 1)] for i, a in enumerate(units)]
    parts = np.stack([at_zero, *single, *pairs], axis=1).reshape(agents, -1, dim * dim)

    def of_versions(mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        """Return the covariances of errors, (versions, agents, dim, dim)."""
        second = cov + mean[..., :, None] * mean[..., None, :]
        ones = np.ones((*mean.shape[:-1], 1))
        moments = np.concatenate([ones, mean, second.reshape(*mean.shape[:-1], -1)], axis=-1)
        return (moments[..., None, :] @ parts).reshape(cov.shape)

    return of_versions


def laws_of_versions(
    samplers: Sequence[Algorithm],
    problems: Sequence[Problem],
    network: Network,
    positions: Moments | None,
    mix: np.ndarray | None = None,
    most: float = SETTINGS_LIMIT,
    errors: np.ndarray | None = None,
) -> paths.Path:
    """Return the laws along the iterations of samplers, each on its own problem.

    problems: all of one size. positions: mean and covariance of an agent's initial position; None:
    unknown. mix: the read-out, a matrix (agents, agents) applied to the positions; None: the
    positions. most: the largest number of entries agents * dim. errors: constant covariances of the
    agents' mini-batch errors, (agents, dim, dim); None: they are computed from the law in each
    iteration, on the first problem. Raises ``NoLaw`` where there are no laws.
    """
    agents, dim = problems[0].agents, problems[0].dim
    positions = _require_moments(positions)
    batches, size = batches_of(samplers[0]), agents * dim
    _refuse_large(problems[0], most)
    family = find_family(samplers, problems, network)
    updates = family and family.updates_of(samplers)
    versions = [] if updates else [*zip(samplers, problems, strict=True)]
    readers = [
        family.reader_of(sampler) if family else StepReader(sampler, problem, network)
        for sampler, problem in versions
    ]
    if readers and all(reader.chooses for reader in readers):
        if len(readers[0].start.offset) > size or size > SECOND_LIMIT or batches:
            raise NoLaw(
                f"laws over choices are computed of positions alone, of up to {SECOND_LIMIT} "
                "entries, by full gradients; sample it"
            )
        if any(reader.cycle != ALWAYS for reader in readers):
            raise NoLaw("what is chosen changes from iteration to iteration; sample it")
        firsts = [reader.read_step(0).choices for reader in readers]
        start = exact.stack_versions([exact.initial_moments(agents, dim, positions)] * len(readers))
        # All iterations are alike, so that powers lead over any number of them.
        powers = exact.stack_versions(firsts)
        return paths.RandomPath(lambda k: powers, start, agents, dim, mix, (0, 1), powers)
    updates = updates or [
        _read_update(reader, *version, network)
        for reader, version in zip(readers, versions, strict=True)
    ]
    noise = None
    if errors is not None:
        updates = [add_gradient_errors(update, errors) for update in updates]
    elif batches is not None:
        noise = build_batch_noise(problems[0], batches)
    starts = [exact.initial_moments(agents, dim, positions, update.start) for update in updates]
    return find_modes(laws_of_updates(updates, starts, network, dim, mix, noise=noise))


def find_family(
    samplers: Sequence[Algorithm],
    problems: Sequence[Problem],
    network: Network,
    errors: bool = False,
) -> StepFamily | None:
    """Return the family of settings that differ in a number, or a constant schedule, alone.

    errors: as of ``StepReader``. None where they differ otherwise, or problems differ.
    """
    first, problem = samplers[0], problems[0]
    names = {
        option.name
        for option, sampler in product(fields(first), samplers)
        if getattr(sampler, option.name) != getattr(first, option.name)
    }
    if len(names) != 1 or any(other is not problem for other in problems):
        return None
    return read_family(first, names.pop(), problem, network, errors)


def laws_of_updates(
    updates: Sequence[exact.Update],
    starts: Sequence[Moments],
    network: Network,
    dim: int,
    mix: np.ndarray | None = None,
    cycle: Cycle | None = None,
    noise: paths.GradientNoise | None = None,
) -> paths.Path:
    """Propagate the laws of several versions, given their affine updates, along the iterations.

    A version is one setting of a sampler on one problem. On a network where vectors may be lost the
    laws' moments are averaged over the losses.

    starts: mean and covariance of each version's state at iteration 0. dim: entries of an agent.
    mix: the read-out, (agents, agents), as of ``laws_of_versions``. cycle: the iteration from which
    steps repeat, and after how many; None: it is determined here. noise: of ``batch_noise``. Raises
    ``NoLaw`` where arrivals are not drawn anew in each iteration, depend on the vectors, or are too
    many.
    """
    agents, cycle = network.agents, cycle or find_joint_cycle(updates)
    if network.delivers_all and noise is None:
        args = paths.stack_updates(updates), exact.stack_versions(starts), agents, dim, mix
        return paths.DeterministicPath(*args, cycle)
    steps: list[Any] = [update.at for update in updates]
    if not network.delivers_all:
        losses = _losses_on(network, dim)
        size = len(starts[0][0])
        cycle = join_cycles([cycle, find_cycle(losses.chances)])
        moves = [build_moves(update, losses, size, agents, dim) for update in updates]
        steps = [move_at for move_at, *_ in moves]
        starts = [
            (place @ mean + shift, place @ cov @ place.T)
            for (mean, cov), (_, place, shift) in zip(starts, moves, strict=True)
        ]

    errors = None if noise is None else _noise_of_versions(noise, len(steps), agents, dim)

    def step_at(k: int) -> Any:
        """Return the step of iteration k of all versions."""
        each = [at(k) for at in steps]
        step = exact.stack_versions(each)
        if errors is None:
            return step
        gain = np.stack([one.gradient_gain for one in each])
        return paths.NoisyStep(step, gain, errors, agents, dim)

    return paths.RandomPath(step_at, exact.stack_versions(starts), agents, dim, mix, cycle)


def find_joint_cycle(updates: Sequence[exact.Update]) -> Cycle | None:
    """Return the iteration from which updates repeat together, and after how many they do.

    None where that is not known, or if they never repeat.
    """
    return join_cycles(update.find_cycle() for update in updates)


def radius_over_losses(sampler: Algorithm, problem: Problem, network: Network) -> float:
    """Return the spectral radius of a sampler's second moments over one cycle, with losses.

    It is ``arrivals.second_moment_radius``. Raises ``NoLaw``
    where iterations are not known to repeat, or ``laws_of_updates`` does.
    """
    update, losses = update_of(sampler, problem, network), _losses_on(network, problem.dim)
    cycle = join_cycles([update.find_cycle(), find_cycle(losses.chances)])
    if cycle is None or update.start is None:
        raise NoLaw("its iterations do not repeat here")
    size = len(update.start.offset)
    move_at = build_moves(update, losses, size, problem.agents, problem.dim)[0]
    begin, period = cycle
    return second_moment_radius([move_at(k) for k in range(begin, begin + period)])


def _losses_on(network: Network, dim: int) -> Losses:
    """Return the losses of vectors of dimension ``dim`` on a network.

    Raises ``NoLaw`` where losses depend on each other or on the vectors, or are too many.
    """
    graph, options = network.graph, network.conditions
    if len(graph.senders) * dim > SIZE_LIMIT:
        raise NoLaw(
            f"{len(graph.senders)} arcs of vectors of dimension {dim} exceed the {SIZE_LIMIT} "
            "entries that laws over losses are computed for; sample it"
        )
    drawn = mask_moments(network) if {*options.changed_by} <= {"noise"} else None
    if drawn is None:
        raise NoLaw(
            "what arrives on this network is not drawn anew in each iteration, or depends on what "
            "is sent; sample it"
        )
    return Losses(drawn, (graph.receivers, graph.senders), options.on_loss, options.noise**2)


def add_gradient_errors(update: exact.Update, errors: np.ndarray) -> exact.Update:
    """Add gradient errors of constant covariance to the noise of an update; return the update.

    errors: covariance of each agent's errors, (agents, dim, dim).
    """
    spread = exact.block_diagonal(errors)
    values, vectors = np.linalg.eigh(spread)
    root = vectors * np.sqrt(np.maximum(values, 0.0))

    @lru_cache(maxsize=8)
    def noisy(step: exact.Affine) -> exact.Affine:
        """Return an update with G E[xi xi^T] G^T added to its noise."""
        gain = step.gradient_gain
        return step if gain is None else replace(step, noise=step.noise + gain @ spread @ gain.T)

    @lru_cache(maxsize=8)
    def noisy_effect(effect: exact.LossEffect) -> exact.LossEffect:
        """Return an effect of losses to whose normal numbers the errors are added."""
        return replace(effect, noise=np.hstack([effect.noise, effect.error_gain @ root]))

    lossy = update.loss_effect
    return replace(
        update,
        at=lambda k: noisy(update.at(k)),
        loss_effect=None if lossy is None else lambda k: noisy_effect(lossy(k)),
    )


def _require_moments(positions: Moments | None) -> Moments:
    """Return moments of the initial positions; raise ``NoLaw`` where there are none."""
    if positions is None:
        raise NoLaw("of this start only draws are known, not its moments; take another initial")
    return positions


def _refuse_large(problem: Problem, most: float) -> None:
    """Raise ``NoLaw`` if a problem has more than ``most`` entries agents * dim."""
    if problem.agents * problem.dim > most:
        raise NoLaw(
            f"{problem.agents} agents of dimension {problem.dim} exceed the {most} entries that "
            "laws are computed for; sample it"
        )
