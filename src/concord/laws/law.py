"""The law of a sampler on a problem and a network, and whether there is an exact one.

Metrics, library and arena ask here; ``laws.read_off`` reads the sampler's step, ``laws.paths``
follows the moments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from concord.laws import exact, paths
from concord.laws.arrivals import Losses
from concord.laws.exact import Moments
from concord.laws.read_off import NoLaw, StepReader
from concord.laws.switching import SIZE_LIMIT as CHOICES_LIMIT
from concord.laws.switching import Choices, SecondMoments
from concord.minibatches import Batches
from concord.networks.moments import chances
from concord.networks.network import Network

# The most entries agents * dim of the positions for which a law is computed, or of vectors on their
# way. With as many auxiliary entries a step multiplies 1000 x 1000 matrices, about 0.1 s; runs
# beyond it (a thousand agents) are measured by Monte Carlo only, but for whom asks for the law.
SIZE_LIMIT = 500
LARGEST = 1300
# The most of positions for which all settings together have a law in time.
SETTINGS_LIMIT = 250
# The most of positions for which powers of second moments over choices are taken.
SECOND_LIMIT = 20


class OfRun(Protocol):
    """What of a run its law depends on: ``metrics.Measurement`` has it."""

    @property
    def sampler(self) -> Any:
        """The sampler."""

    @property
    def problem(self) -> Any:
        """The problem."""

    @property
    def network(self) -> Network:
        """The network, before the first iteration."""

    @property
    def batches(self) -> Batches:
        """The mini-batches."""

    @property
    def initial(self) -> Any:
        """The law of x^(0)."""

    @property
    def iterations(self) -> int:
        """The last iteration."""

    @property
    def trace(self) -> Any:
        """What is recorded, and when."""


def update_of(
    sampler: Any,
    problem: Any,
    network: Network,
    batches: Batches | None = None,
    most: float = np.inf,
) -> exact.Update:
    """Return the update of a sampler's law on a problem; ``NoLaw`` where there is none.

    most: the most entries of the positions for which it is asked for.
    """
    _refuse_large(problem, most)
    return StepReader(sampler, problem, network, batches).update()


def choices_of(
    sampler: Any, problem: Any, network: Network, most: float = CHOICES_LIMIT
) -> Callable[[int], Choices] | None:
    """Return what each iteration chooses from; None where nothing is chosen.

    Nor where positions, or the state, have more entries than ``most``: a choice holds a matrix for
    each edge. ``NoLaw`` where there is no law.
    """
    if problem.agents * problem.dim > most or not network.is_lossless:
        return None
    reader = StepReader(sampler, problem, network)
    return reader.choices() if reader.chooses and len(reader.start.offset) <= most else None


def law_of_run(run: OfRun, most: float = SIZE_LIMIT) -> exact.Law:
    """Return the exact law at the recorded iterations; ``NoLaw`` where there is none.

    On a network where vectors may not arrive, its moments averaged over what does. most: the most
    entries of the positions.
    """
    problem, network = run.problem, run.network
    update = update_of(run.sampler, problem, network, run.batches, most)
    start, recorded = start_of(run, update), run.trace.draw.tolist()
    if network.is_lossless:
        given = update, start, problem.agents, problem.dim, batch_noise(run), run.iterations
        return paths.single(*given).law(recorded)
    if run.batches.batch_size is not None:
        raise NoLaw("vectors may get lost, and gradients are those of mini-batches; sample it")
    return laws_of_updates([update], [start], network, problem.dim).law(recorded)


def exact_law(run: OfRun) -> exact.Law | None:
    """Return the law as ``law_of_run`` does; None where there is none."""
    try:
        return law_of_run(run)
    except NoLaw:
        return None


def start_of(run: OfRun, update: exact.Update) -> Moments:
    """Return mean and covariance of the state at iteration 0; ``NoLaw`` if only draws are known."""
    problem = run.problem
    positions = run.initial.moments(problem.dim)
    return exact.initial(problem.agents, problem.dim, _stated(positions), update.start)


def batch_noise(run: OfRun) -> paths.GradientNoise | None:
    """Return the covariance of mini-batches' errors, of mean and covariance of every agent.

    None for full gradients. ``NoLaw`` where it is not known.
    """
    batches, problem = run.batches, run.problem
    size = batches.batch_size
    if size is None:
        return None
    if not hasattr(problem, "batch_noise_covariance"):
        raise NoLaw(f"{type(problem).__name__} states no covariance of mini-batches; sample it")
    how = batches.batch_scale, batches.batch_pool
    return lambda mean, cov: problem.batch_noise_covariance(mean, cov, size, *how)


def laws_of_versions(
    samplers: Sequence[Any],
    problems: Sequence[Any],
    network: Network,
    positions: Moments | None,
    mix: np.ndarray | None = None,
    most: float = SETTINGS_LIMIT,
    errors: tuple[Batches, np.ndarray] | None = None,
) -> paths.Path:
    """Return the laws of versions, each a sampler and a problem; ``NoLaw`` where there are none.

    positions: the moments of an agent's start. problems: of one size. mix: makes the answers of the
    positions, (agents, agents); None: these are the answers. most: the most entries of the
    positions. errors: mini-batches, and the covariance of each agent's, (agents, dim, dim), taken
    for that everywhere; None: full gradients.
    """
    agents, dim = problems[0].agents, problems[0].dim
    positions = _stated(positions)
    batches, size = None if errors is None else errors[0], agents * dim
    _refuse_large(problems[0], most)
    readers = [
        StepReader(sampler, problem, network, batches)
        for sampler, problem in zip(samplers, problems, strict=True)
    ]
    if all(reader.chooses for reader in readers):
        if len(readers[0].start.offset) > size or size > SECOND_LIMIT or errors is not None:
            raise NoLaw(
                f"laws over choices are computed of positions alone, of up to {SECOND_LIMIT} "
                "entries, by full gradients; sample it"
            )
        choices = [reader.choices() for reader in readers]
        firsts = [of(0) for of in choices]
        if not all(firsts[0].same(choices[0](k)) for k in (1, 2, 7)):
            raise NoLaw("what is chosen changes from iteration to iteration; sample it")
        begun = paths.stacked([exact.initial(agents, dim, positions)] * len(readers))
        # All iterations are alike, so that powers lead over any number of them.
        return paths.Path(choices[0], begun, agents, dim, mix, (0, 1), SecondMoments(firsts))
    updates = [reader.update() for reader in readers]
    if errors is not None:
        updates = [with_errors(update, errors[1]) for update in updates]
    starts = [exact.initial(agents, dim, positions, update.start) for update in updates]
    return laws_of_updates(updates, starts, network, dim, mix)


def laws_of_updates(
    updates: Sequence[exact.Update],
    starts: Sequence[Moments],
    network: Network,
    dim: int,
    mix: np.ndarray | None = None,
    turn: paths.Turn | None = None,
) -> paths.Path:
    """Return the laws of versions by their updates; averaged over what arrives, if not all does.

    turn: when steps repeat; None: it is found. ``NoLaw`` where what arrives is not drawn anew in
    each iteration, depends on what is sent, or is too large.
    """
    if network.is_lossless:
        given = paths.versions_of(updates), paths.stacked(starts), network.agents, dim, mix
        return paths.Determined(*given, turn or paths.turn_of(updates[0]))
    graph, options = network.graph, network.conditions
    if len(graph.senders) * dim > SIZE_LIMIT:
        raise NoLaw(
            f"{len(graph.senders)} ways of vectors of dimension {dim} exceed the {SIZE_LIMIT} "
            "entries that laws over losses are computed for; sample it"
        )
    coded = options is None or options.compression is not None or options.privacy is not None
    drawn = None if coded else chances(network)
    if drawn is None:
        raise NoLaw(
            "what arrives on this network is not drawn anew in each iteration, or depends on what "
            "is sent; sample it"
        )
    losses = Losses(drawn, (graph.receivers, graph.senders), options.on_loss, options.noise**2)
    turn = paths.turn_of_losses(updates[0], losses)
    return paths.lossy(updates, losses, starts, network.agents, dim, mix, turn)


def mean_step(sampler: Any, problem: Any, network: Network) -> exact.Affine:
    """Return what a step must contract; ``NoLaw`` where it is not known.

    The update of a turn, conserved quantities apart; of choices that of the mean.
    """
    reader = StepReader(sampler, problem, network)
    if not reader.chooses:
        return _of_turn(reader.update())[0]
    drawn = reader.choices()(1)  # the first iteration may be another: references are taken
    return exact.linear(np.tensordot(drawn.probability, drawn.matrix, axes=1))


def step_of_turn(
    sampler: Any, problem: Any, network: Network
) -> tuple[exact.Affine, np.ndarray, int]:
    """Return the update of a turn as ``restrict`` does, the basis, and the turn's iterations."""
    return _of_turn(update_of(sampler, problem, network))


def _of_turn(update: exact.Update) -> tuple[exact.Affine, np.ndarray, int]:
    begin, period = paths.turn_of(update) or (0, 1)
    steps = [update.at(begin + k) for k in range(period)]
    bare = [exact.Affine(step.matrix, step.offset, step.noise) for step in steps]
    return *exact.restrict(exact.compose(*bare)), period


def with_errors(update: exact.Update, errors: np.ndarray) -> exact.Update:
    """Return an update with the noise of errors of one covariance everywhere."""
    spread = exact.block_diagonal(errors)

    @lru_cache(maxsize=8)
    def noisy(step: exact.Affine) -> exact.Affine:
        gain = step.gradient_gain
        return step if gain is None else replace(step, noise=step.noise + gain @ spread @ gain.T)

    return replace(update, at=lambda k: noisy(update.at(k)))


def _stated(positions: Moments | None) -> Moments:
    if positions is None:
        raise NoLaw("of this start only draws are known, not its moments; take another initial")
    return positions


def _refuse_large(problem: Any, most: float) -> None:
    if problem.agents * problem.dim > most:
        raise NoLaw(
            f"{problem.agents} agents of dimension {problem.dim} exceed the {most} entries that "
            "laws are computed for; sample it"
        )
