"""Whether a sampler has an exact law on a problem and a network, and why not: the law itself.

The one gate, of metrics, library and arena alike: ``update_of`` and ``choices_of`` of what a
sampler states on a problem, ``over_losses`` of a network that loses vectors.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np

from concord.contracts import AffineSampler, BatchNoise, SwitchingSampler
from concord.errors import ConcordError
from concord.laws import exact, paths, rings
from concord.laws.arrivals import Losses
from concord.laws.exact import Moments
from concord.laws.switching import SIZE_LIMIT as CHOICES_LIMIT
from concord.laws.switching import Choices, SecondMoments
from concord.metrics import Measurement
from concord.networks.edges import Edges
from concord.networks.moments import chances
from concord.networks.topologies import ring
from concord.networks.topology import Topology, of_graph
from concord.problem import Problem, Quadratic
from concord.problems._quadratic import QuadraticProblem
from concord.samplers import Batching, Biased

# The most entries agents * dim of the positions for which a law is computed, or of vectors on their
# way. With as many auxiliary entries a step multiplies 1000 x 1000 matrices, about 0.1 s; runs
# beyond it (a thousand agents) are measured by Monte Carlo only, but for whom asks for the law.
SIZE_LIMIT = 500
LARGEST = 1300
# The most of positions for which all settings together have a law in time.
SETTINGS_LIMIT = 250
# The most of positions for which powers of second moments over choices are taken.
SECOND_LIMIT = 20


class NoLaw(ConcordError):
    """No exact law is known; the message says why."""


def name_of(sampler: Any) -> str:
    """Return what a sampler is called."""
    return str(getattr(sampler, "__name__", type(sampler).__name__)).rpartition(".")[2]


def update_of(
    sampler: Any, problem: Problem, topology: Topology, params: Any, most: float = np.inf
) -> exact.Update:
    """Return the update of a sampler's law on a problem; ``NoLaw`` where there is none.

    ``most``: the most entries of the positions for which it is asked for.
    """
    if not isinstance(sampler, AffineSampler):
        raise NoLaw(f"sampler {name_of(sampler)} states no exact law; sample it instead")
    if not isinstance(problem, Quadratic):
        raise NoLaw(
            f"{type(problem).__name__} is not quadratic, so no exact law is known; use quadratic "
            "or linear_regression, or sample it"
        )
    if problem.agents * problem.dim > most:
        raise NoLaw(
            f"{problem.agents} agents of dimension {problem.dim} exceed the {most} entries that "
            "laws are computed for; sample it"
        )
    found = None
    if batch_size(params) is None or isinstance(problem, BatchNoise):
        found = sampler.affine(problem, topology, params)
    if found is None:
        raise _none(sampler)
    return found


def choices_of(
    sampler: Any, problem: Problem, topology: Topology, params: Any, most: float = CHOICES_LIMIT
) -> Callable[[int], Choices] | None:
    """Return what each iteration chooses from; None where nothing is known to be chosen.

    Nor where positions, or the state, have more entries than ``most``: a choice holds a matrix for
    each edge.
    """
    if not isinstance(sampler, SwitchingSampler) or not isinstance(problem, Quadratic):
        return None
    if problem.agents * problem.dim > most or not topology.conditions.perfect:
        return None
    choices = sampler.choices(problem, topology, params)
    if choices is None or (np.isfinite(most) and len(choices(0).offset[0]) > most):
        return None
    return choices


def over_losses(
    network: Topology,
    sampler: Any,
    updates: Sequence[exact.Update],
    starts: Sequence[Moments],
    dim: int,
    mix: np.ndarray | None = None,
) -> paths.Lossy:
    """Return moments averaged over what arrives.

    ``NoLaw`` where that is not drawn anew in each iteration, depends on what is sent, or is too
    large.
    """
    ways, options = Edges(network), network.conditions
    coded = options.compression is not None or options.privacy is not None
    stated = all(update.arrivals is not None for update in updates)
    if len(ways.links) * dim > SIZE_LIMIT or coded or not stated:
        raise _none(sampler)
    if (drawn := chances(network)) is None:
        raise _none(sampler)
    losses = Losses(drawn, (ways.receivers, ways.senders), options.on_loss, options.noise**2)
    turn = paths.turn_of_losses(updates[0], losses)
    return paths.lossy(updates, losses, starts, network.agents, dim, mix, turn)


def batch_size(params: Any) -> int | None:
    """Return the size of mini-batches; None for full gradients."""
    return params.batch_size if isinstance(params, Batching) else None


def start_of(m: Measurement, update: exact.Update) -> Moments:
    """Return mean and covariance of the state at iteration 0; ``NoLaw`` if only draws are known."""
    agents, dim = m.problem.agents, m.problem.dim
    moments = m.initial.moments(dim)
    if moments is None:
        raise _none(m.sampler)
    return exact.initial(agents, dim, moments, *update.auxiliary)


def batch_noise(m: Measurement) -> paths.GradientNoise | None:
    """Return the covariance of the errors of mini-batches, of mean and cov of every agent.

    None for full gradients.
    """
    problem, size, params = m.problem, batch_size(m.sampler_params), m.sampler_params
    if size is None or not isinstance(problem, BatchNoise):
        return None
    how = (params.batch_scale, params.batch_pool) if isinstance(params, Biased) else ()
    return lambda mean, cov: problem.batch_noise_covariance(mean, cov, size, *how)


def law_of(m: Measurement, most: float = SIZE_LIMIT) -> exact.Law:
    """Return the exact law at the recorded iterations; ``NoLaw`` where there is none.

    On a network where vectors may not arrive, its moments averaged over what does. ``most``: the
    most entries of the positions.
    """
    agents, dim = m.problem.agents, m.problem.dim
    update = update_of(m.sampler, m.problem, m.topology, m.sampler_params, most)
    start, recorded = start_of(m, update), m.trace.draw.tolist()
    if m.topology.conditions.perfect:
        return paths.single(update, start, agents, dim, batch_noise(m), m.iterations).law(recorded)
    if batch_size(m.sampler_params) is not None:
        raise _none(m.sampler)
    return over_losses(m.topology, m.sampler, [update], [start], dim).law(recorded)


def exact_law(m: Measurement) -> exact.Law | None:
    """Return the law as ``law_of`` does; None where there is none."""
    try:
        return law_of(m)
    except NoLaw:
        return None


def of_versions(
    sampler: Any,
    problems: Sequence[Problem],
    topology: Topology,
    params: Sequence[Any],
    positions: Moments | None,
    mix: np.ndarray | None = None,
    most: float = SETTINGS_LIMIT,
) -> paths.Path:
    """Return the laws of versions, each a problem and options; ``NoLaw`` where there are none.

    ``positions`` are the moments of an agent's start; problems are of one size. ``mix``, (agents,
    agents), makes the answers of the positions; none: these are the answers. ``most``: the most
    entries of the positions.
    """
    agents, dim = problems[0].agents, problems[0].dim
    versions = list(zip(problems, params, strict=True))
    if positions is None or any(batch_size(own) is not None for own in params):
        raise _none(sampler)
    long = mix is None and all(is_long_ring(problem, topology) for problem in problems)
    if long and isinstance(sampler, AffineSampler):
        with suppress(rings.NoModes):
            return _modes(sampler, versions, positions)
    drawn = [choices_of(sampler, problem, topology, own, SECOND_LIMIT) for problem, own in versions]
    known = [choices for choices in drawn if choices is not None]
    if len(known) == len(versions):
        firsts = [choices(0) for choices in known]
        start = exact.initial(agents, dim, positions)
        own = len(firsts[0].offset[0]) == agents * dim  # of nothing but positions
        if not own or not all(firsts[0].same(known[0](k)) for k in (1, 2, 7)):
            raise _none(sampler)
        begun = paths.stacked([start] * len(versions))
        # All iterations are alike, so that powers lead over any number of them.
        return paths.Path(known[0], begun, agents, dim, mix, (0, 1), SecondMoments(firsts))
    updates = [update_of(sampler, p, topology, own, most) for p, own in versions]
    starts = [exact.initial(agents, dim, positions, *update.auxiliary) for update in updates]
    return of_updates(sampler, updates, starts, topology, dim, mix)


def of_updates(
    sampler: Any,
    updates: Sequence[exact.Update],
    starts: Sequence[Moments],
    topology: Topology,
    dim: int,
    mix: np.ndarray | None = None,
    turn: paths.Turn | None = None,
) -> paths.Path:
    """Return the laws of versions by their updates; averaged over what arrives, if not all does.

    turn: when steps repeat; none: it is found.
    """
    if topology.conditions.perfect:
        given = paths.versions_of(updates), paths.stacked(starts), topology.agents, dim, mix
        return paths.Determined(*given, turn or paths.turn_of(updates[0]))
    return over_losses(topology, sampler, updates, starts, dim, mix)


def contraction(sampler: Any, problem: Problem, topology: Topology, params: Any) -> exact.Affine:
    """Return what a step must contract; ``NoLaw`` where it is not known.

    The update of a turn, conserved quantities apart; of choices that of the mean.
    """
    choices = choices_of(sampler, problem, topology, params, np.inf)
    if choices is not None:
        drawn = choices(1)  # the first iteration may be another: references are taken
        return exact.linear(np.tensordot(drawn.probability, drawn.matrix, axes=1))
    return repeated(sampler, problem, topology, params)[0]


def repeated(
    sampler: Any, problem: Problem, topology: Topology, params: Any
) -> tuple[exact.Affine, np.ndarray, int]:
    """Return the update of a turn as ``restrict`` does, the basis, and the turn's iterations."""
    update = update_of(sampler, problem, topology, params)
    begin, period = paths.turn_of(update) or (0, 1)
    steps = [update.at(begin + k) for k in range(period)]
    bare = [exact.Affine(s.matrix, s.offset, s.noise) for s in steps]
    return *exact.restrict(exact.compose(*bare)), period


def is_long_ring(problem: Problem, topology: Topology) -> bool:
    """Whether agents are alike but for their shifts, on a long ring where everything arrives."""
    return (
        isinstance(problem, Quadratic)
        and not topology.conditions.eventful
        and topology.name == "ring"
        and topology.agents >= rings.FROM
        and bool((problem.gram == problem.gram[0]).all())
    )


def short_ring(problem: Problem) -> tuple[QuadraticProblem, Topology]:
    """Return some of the agents on a ring of their own, which is stable where the long one is."""
    assert isinstance(problem, Quadratic)
    size = rings.SHORT[1]
    return QuadraticProblem(problem.gram[:size], problem.shift[:size]), _ring(size)


@lru_cache
def _ring(size: int) -> Topology:
    return of_graph("ring", size, ring.graph(ring.Params(), size))


def _modes(sampler: Any, versions: Sequence[tuple[Any, Any]], positions: Moments) -> rings.Modes:
    """Return the laws of versions on a long ring by their modes."""

    def on_short(problem: Any, params: Any) -> rings.OnShort:
        def affine(shift: np.ndarray) -> exact.Update | None:
            own = QuadraticProblem(problem.gram[: len(shift)], shift)
            return sampler.affine(own, _ring(len(shift)), params)

        return affine

    shifts = [problem.shift for problem, _ in versions]
    return rings.modes([on_short(*version) for version in versions], shifts, positions)


def _none(sampler: Any) -> NoLaw:
    return NoLaw(
        f"sampler {name_of(sampler)} has no exact law with these options, from this start or on "
        "this network; sample it"
    )
