"""Screen an entry: which of its settings are worth scoring, and the best with each read-out.

The tuned option goes from the largest stable value down by octaves, for each value of the second
option, and on while the best is the last; then by quarter octaves around the two best minima, since
the score along a step has several.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from concord import kinds
from concord.errors import ConcordError
from concord.laws.law import SECOND_LIMIT
from concord.laws.read_off import NoLaw, StepReader
from concord.minibatches import Batches
from concord.networks.network import Network
from concord.sampler import Algorithm
from concord_arena import prices
from concord_arena.entries import Entry
from concord_arena.lattices import (
    Candidate,
    Lattice,
    find_best,
    find_minima,
    make_candidate,
    score_settings,
    values_at,
)
from concord_arena.predict import Score
from concord_arena.question import Question
from concord_arena.surrogates import along
from concord_arena.tuning import find_limit, leave_out_conditions, read_value, vary

OCTAVES, SECOND_OCTAVES, MORE = 18, 12, 6
OCTAVES_TO_TARGET = 24


def screen(question: Question, entry: Entry) -> Iterator[Candidate]:
    """Yield the best setting of an entry with each read-out; an error where there is none."""
    entry.sampler.check(question.problem, question.network)
    if entry.kind not in kinds.built_in("samplers"):
        prices.try_step(entry.sampler, question.problem, question.network, question.event_rng())
    if question.wish.batch_size is not None and not isinstance(entry.sampler, Batches):
        raise ConcordError("its gradients are full; leave batch_size out")
    _refuse_large_choices(question, entry.sampler)
    lattices = [
        score_settings(question, lattice, _octaves(question, lattice))
        for lattice in make_lattices(question, entry)
    ]
    for _ in range(3):
        before = lattices
        for read in question.reads:
            lattices = _extend(question, lattices, read)
        if lattices is before:
            break
    places_to_score: dict[int, set[float]] = {}
    for read in question.reads:
        for place, j in find_minima(lattices, read):
            places_to_score.setdefault(place, set()).update(j + i for i in range(-3, 4))
    for place, js in places_to_score.items():
        lattices[place] = score_settings(question, lattices[place], sorted(js))
    for read in question.reads:
        best = find_best(question, lattices, read, "screened")
        is_exact = question.is_exact and not question.has_constant_errors(best.lattice.price)
        how = "exact" if is_exact else "approximate"
        if np.isfinite(best.score):
            yield best._replace(how=how) if question.is_small else best


def list_unscored(question: Question, entry: Entry) -> Iterator[Candidate]:
    """Yield unscored settings an octave apart, for the read-outs agents and average."""
    for lattice in make_lattices(question, entry):
        is_limited = np.isfinite(lattice.limit)
        octaves = _octaves(question, lattice)
        octaves = octaves[np.s_[:SECOND_OCTAVES] if is_limited else np.s_[-12:]]
        for read in ("agents", "average"):
            count = question.count_iterations(lattice.price, read) if read in question.reads else 0
            for j in octaves if count >= 1 else ():
                score = Score(np.inf, count, {})
                yield make_candidate(question, lattice, j, read, [j], "chains", score)


def make_lattices(question: Question, entry: Entry) -> list[Lattice]:
    """Return a lattice for each value of the second option; an error where there is none."""
    name, values = next(iter(entry.second.items()), (None, (None,)))
    begin = read_value(entry.sampler, entry.tune, entry.name)
    problem, network = question.problem, question.network
    lattices, why = [], "no setting is stable"
    for value in values:
        second = {} if name is None else {name: value}
        one = vary(entry.sampler, second, entry.name)
        price = prices.price_per_iteration(one, problem, network, question.event_rng())
        if question.count_iterations(price, "agents") < 1:
            why = _explain_unaffordable(question.wish.budget, price)
            continue
        limit = np.inf
        with suppress(NoLaw):
            _refuse_large_choices(question, one)
            for on in (network, leave_out_conditions(network))[not question.is_small :]:
                if not np.isfinite(limit):
                    limit = find_limit(one, entry.tune, _quadratic(question), on)
        if not np.isnan(limit):
            top = limit if np.isfinite(limit) else begin * 2.0**9
            lattices.append(Lattice(entry, second, top, limit, price, {}))
    if not lattices:
        raise ConcordError(why)
    return lattices


def _explain_unaffordable(budget: Mapping[str, float], price: Mapping[str, float]) -> str:
    """Return a sentence on the part of the budget that is too small for one iteration."""
    name = max(budget, key=lambda name: price[name] / budget[name])
    return (
        f"budget.{name}: {budget[name]:g} pays for no iteration, which costs {price[name]:g}; "
        "allow more"
    )


def _refuse_large_choices(question: Question, sampler: Algorithm) -> None:
    """Raise ``NoLaw`` for a sampler with random choices on too large a problem."""
    reader = StepReader(sampler, _quadratic(question), Network(question.network.graph))
    if reader.chooses and question.size > SECOND_LIMIT:
        raise NoLaw(
            f"it draws who moves, and laws over that are computed up to {SECOND_LIMIT} "
            "numbers (agents times dimension); sample it"
        )


def _quadratic(question: Question) -> Any:
    """Return the quadratic problem that sets stability limits; of a large one a coordinate."""
    if question.is_small:
        return question.quadratic
    problems = along(question.fit, question.positions)[1]
    return max(problems, key=lambda problem: float(np.abs(problem.gram).max()))


def _octaves(question: Question, lattice: Lattice) -> list[int]:
    """Return the places j of a lattice that are scored first, one in each octave."""
    if not np.isfinite(lattice.limit):
        return [4 * i for i in range(19)]
    count = SECOND_OCTAVES if lattice.entry.second else OCTAVES
    count = OCTAVES_TO_TARGET if question.wish.target else count
    return [4 * i for i in range(1, count + 1)]


def _extend(question: Question, lattices: list[Lattice], read: str | int) -> list[Lattice]:
    """Score more octaves beyond a lattice whose best setting is at its end, for a read-out.

    Returns the lattices; where there are no more octaves the list that is given.
    """
    values = values_at(lattices, read)
    place, j = min(values, key=lambda at: (values[at], at))
    js, is_limited = lattices[place].scores[read], np.isfinite(lattices[place].limit)
    side = 1 if j == max(js) else -1 if j == min(js) and not is_limited else 0
    if not (np.isfinite(values[place, j]) and side):
        return lattices
    octaves = [j + side * 4 * i for i in range(1, MORE + 1)]
    longer = score_settings(question, lattices[place], octaves)
    return [*lattices[:place], longer, *lattices[place + 1 :]]
