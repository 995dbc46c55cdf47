"""Screen an entry: find its best setting with each read-out by scoring few of them.

For each value of the second option the tuned option goes down by octaves from its largest stable
value, further while the last is the best, and then by quarter octaves around the two best local
minima.
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
from concord_arena.tuning import find_limit, leave_out_conditions, read_value, vary

OCTAVES, SECOND_OCTAVES, MORE = 18, 12, 6
OCTAVES_TO_TARGET = 24


def screen(question: Question, entry: Entry) -> Iterator[Candidate]:
    """Yield the best setting of an entry for each way to read its draws (``READS``).

    question: the problem, the network and what is wished for. A ConcordError if no setting works.
    """
    entry.sampler.check(question.problem, question.network)
    if entry.kind not in kinds.built_in("samplers"):
        prices.try_step(entry.sampler, question.problem, question.network, question.event_rng())
    if question.wish.batch_size is not None and not isinstance(entry.sampler, Batches):
        raise ConcordError("its gradients are full; leave batch_size out")
    _refuse_large_choices(question, entry.sampler)
    lattices = [
        score_settings(question, lattice, _first_places(question, lattice))
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
    """Yield an entry's settings an octave apart, without scores, for agents and average."""
    for lattice in make_lattices(question, entry):
        is_limited = np.isfinite(lattice.limit)
        octaves = _first_places(question, lattice)
        octaves = octaves[np.s_[:SECOND_OCTAVES] if is_limited else np.s_[-12:]]
        for read in ("agents", "average"):
            count = question.count_iterations(lattice.price, read) if read in question.reads else 0
            for j in octaves if count >= 1 else ():
                score = Score(np.inf, count, {})
                yield make_candidate(question, lattice, j, read, [j], "chains", score)


def make_lattices(question: Question, entry: Entry) -> list[Lattice]:
    """Return a grid of settings, not scored yet, for each value of an entry's second option.

    A ConcordError if no setting is stable and affordable.
    """
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
                    limit = find_limit(one, entry.tune, _stability_problem(question), on)
        if not np.isnan(limit):
            top = limit if np.isfinite(limit) else begin * 2.0**9
            lattices.append(Lattice(entry, second, top, limit, price, {}))
    if not lattices:
        raise ConcordError(why)
    return lattices


def _explain_unaffordable(budget: Mapping[str, float], price: Mapping[str, float]) -> str:
    """Return a sentence on the amount of a budget that is too small for one iteration."""
    name = max(budget, key=lambda name: price[name] / budget[name])
    return (
        f"budget.{name}: {budget[name]:g} pays for no iteration, which costs {price[name]:g}; "
        "allow more"
    )


def _refuse_large_choices(question: Question, sampler: Algorithm) -> None:
    """Raise ``NoLaw`` if a sampler draws which agents move and the problem is too large."""
    reader = StepReader(sampler, _stability_problem(question), Network(question.network.graph))
    if reader.chooses and question.size > SECOND_LIMIT:
        raise NoLaw(
            f"it draws who moves, and laws over that are computed up to {SECOND_LIMIT} "
            "numbers (agents times dimension); sample it"
        )


def _stability_problem(question: Question) -> Any:
    """Return the quadratic problem for stability limits; if large, its steepest coordinate."""
    if question.is_small:
        return question.quadratic
    return max(question.coordinates[1], key=lambda problem: float(np.abs(problem.gram).max()))


def _first_places(question: Question, lattice: Lattice) -> list[int]:
    """Return the places j of a lattice that are scored first, one in each octave."""
    if not np.isfinite(lattice.limit):
        return [4 * i for i in range(19)]
    count = SECOND_OCTAVES if lattice.entry.second else OCTAVES
    count = OCTAVES_TO_TARGET if question.wish.target else count
    return [4 * i for i in range(1, count + 1)]


def _extend(question: Question, lattices: list[Lattice], read: str | int) -> list[Lattice]:
    """Score more octaves of the best lattice if its best setting with a read-out is at its end.

    Returns the lattices; the given list itself if nothing was scored.
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
