"""Refine leading settings: between the values that were screened, or by their own laws."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from concord.laws.law import LARGEST
from concord.laws.read_off import NoLaw
from concord_arena.lattices import Candidate, Lattice, find_best, find_minima, score_settings
from concord_arena.question import Question
from concord_arena.screen import make_lattices

LEADING = 8  # rows that are searched more finely
CONFIRMED = LARGEST  # entries of the positions up to which finalists are confirmed
FINALISTS = 3  # rows that are scored by their own laws


def refine_leaders(question: Question, rows: list[Candidate]) -> list[Candidate]:
    """Replace leading candidates with exact scores by the best settings near theirs."""
    refined = [refine(question, row) if row.how == "exact" else row for row in rows[:LEADING]]
    return sorted([*refined, *rows[LEADING:]], key=lambda row: row.score)


def refine(question: Question, candidate: Candidate) -> Candidate:
    """Return the best setting near an exactly scored candidate, between the values tried.

    The tuned option is searched to a 256th of an octave, since b2 has narrow dips where an error
    changes its sign. A number as second option is varied, too, by a half, a quarter and an eighth
    of an octave.
    """
    read, how = candidate.read, candidate.how
    best = _refine_step(question, candidate.lattice, read, how)
    for name, values in candidate.entry.second.items():
        for octaves in (1 / 2, 1 / 4, 1 / 8) if isinstance(values[0], float) else ():
            value = best.lattice.second[name]
            second = {name: [value * 2**octaves, value / 2**octaves]}
            for lattice in make_lattices(question, candidate.entry._replace(second=second)):
                place = round(4 * np.log2(lattice.top / best.lattice.step(best.j)))
                place = max(place, 1)  # its largest stable step may be smaller
                near = range(place - 4, place + 5)
                lattice = score_settings(question, lattice, near, reads=[read])
                other = _refine_step(question, lattice, read, how)
                best = min(best, other, key=lambda row: row.score)
    return best


def _refine_step(question: Question, lattice: Lattice, read: str | int, how: str) -> Candidate:
    """Return the best setting of a lattice for a read-out, searched around its minima."""
    for spacing in (1 / 4, 1 / 16, 1 / 64):
        # A target may be reached in dips alone, of settings that are no neighbors.
        reach = 8 if question.wish.target is not None and spacing == 1 / 4 else 3
        places = {
            j + i * spacing
            for _, j in find_minima([lattice], read, 4 * spacing)
            for i in range(-reach, reach + 1)
        }
        lattice = score_settings(question, lattice, sorted(places), reads=[read])
    return find_best(question, [lattice], read, how)


def confirm_leaders(question: Question, rows: list[Candidate]) -> list[Candidate]:
    """Replace the screened scores of leading candidates by those of their own laws, best first.

    After some tries only the first candidate and the runner-up are confirmed, which are printed.
    Candidates whose law is too large stay screened.
    """
    with suppress(NoLaw):
        for tries in range(8 * FINALISTS):
            leading = range(len(rows))[: FINALISTS if tries < 2 * FINALISTS else 1]
            places = [*leading, find_runner_up(rows)]
            place = next((p for p in places if rows[p].how == "screened"), None)
            if place is None:
                break
            rows[place] = confirm(question, rows[place])
            rows.sort(key=lambda row: row.score)
    return rows


def find_runner_up(rows: Sequence[Candidate]) -> int:
    """Return the index of the best candidate of another sampler than the first; 0 without one."""
    return next((p for p, row in enumerate(rows) if row.entry.name != rows[0].entry.name), 0)


def confirm(question: Question, candidate: Candidate) -> Candidate:
    """Score a screened candidate and its neighbors by their own laws, and return the best.

    Raises ``NoLaw`` where the law is too large.
    """
    if question.size > CONFIRMED:
        raise NoLaw(f"{question.size} numbers exceed the {CONFIRMED} that laws are confirmed for")
    read, lattice = candidate.read, candidate.lattice._replace(scores={})
    reach = 0 if not question.network.is_lossless else 1 if question.is_exact else 2
    near = [candidate.j + i for i in range(-reach, reach + 1)]
    lattice = score_settings(question, lattice, near, own_law=True, reads=[read])
    for _ in range(4 if reach == 2 else 0):  # downhill: surrogates of these may be far off
        score_at = lattice.scores[read]
        j = min(score_at, key=lambda j: score_at[j].value)
        if not (ends := {min(score_at): -2, max(score_at): 2}.get(j)):
            break
        further = [j + ends, j + 2 * ends]
        lattice = score_settings(question, lattice, further, own_law=True, reads=[read])
    best = find_best(question, [lattice], read, "exact" if question.is_exact else "approximate")
    if question.is_exact:
        (least, most), (low, high) = candidate.tuned_range, best.tuned_range
        return best._replace(tuned_range=(min(least, low), max(most, high)))
    return best
