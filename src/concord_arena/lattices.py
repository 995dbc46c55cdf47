"""Settings of an entry on a lattice of steps, their scores, and the best of them.

Where laws are approximate a setting counts with the worst of its own and its neighbors' scores:
where the bias of x^2 changes its sign it is small by luck. A setting's *place* is its number j.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from concord.options import plain
from concord.sampler import Algorithm
from concord_arena.entries import Entry
from concord_arena.predict import FEW, UNSOLVED, Score, predict_scores
from concord_arena.question import MANY, Question, Wish
from concord_arena.tuning import vary

LARGEST_POWERS = 3e7  # numbers that the powers of versions together may hold


class Lattice(NamedTuple):
    """An entry's grid of settings: values top / 2^(j/4) of its tuned option.

    second: the value of the second option, by name. limit: the largest stable value of the tuned
    option. price: of an iteration without a read-out, by unit. scores: by read-out and place j.
    """

    entry: Entry
    second: Mapping[str, Any]
    top: float
    limit: float
    price: Mapping[str, float]
    scores: Mapping[str | int, Mapping[float, Score]]

    def step(self, j: float) -> float:
        """Return the tuned option's value at place j, top / 2^(j/4)."""
        return float(self.top * 2.0 ** (-j / 4))

    def values(self, j: float) -> dict[str, Any]:
        """Return the values of the tuned and the second option at place j."""
        return {**self.second, self.entry.tune: self.step(j)}

    def sampler(self, j: float) -> Algorithm:
        """Return the entry's sampler with the option values at place j."""
        return vary(self.entry.sampler, self.values(j), self.entry.name)


class Candidate(NamedTuple):
    """The best setting of an entry with a read-out: place j of a lattice.

    read: the read-out. spent: the price of all iterations, by unit. b2: by level, and the ``error``
    of a time average where that is the score. tuned_range: the least and the largest value of the
    tuned option with at most twice the score. how: by which law it was scored: exact, approximate,
    screened, or by chains.
    """

    lattice: Lattice
    j: float
    read: str | int
    iterations: int
    spent: Mapping[str, float]
    b2: Mapping[str, float]
    tuned_range: tuple[float, float]
    how: str
    score: float

    @property
    def entry(self) -> Entry:
        """The entry whose sampler was tuned."""
        return self.lattice.entry

    @property
    def sampler(self) -> Algorithm:
        """The sampler with the option values of the setting."""
        return self.lattice.sampler(self.j)

    def nondefault_options(self, wish: Wish) -> dict[str, Any]:
        """Return the options that differ from the sampler's defaults, batch size included."""
        default = {field.name: field.default for field in msgspec.structs.fields(self.sampler)}
        stated = {k: v for k, v in plain(self.sampler).items() if v != default[k]}
        return stated | ({} if wish.batch_size is None else {"batch_size": wish.batch_size})


def score_settings(
    question: Question,
    lattice: Lattice,
    js: Sequence[float],
    own_law: bool = False,
    reads: Sequence[str | int] = (),
) -> Lattice:
    """Score settings at places ``js``, and return the lattice with these scores added.

    own_law: whether to use the settings' own laws, and to score beyond the stability limit, too.
    reads: the read-outs to score; none: all.
    """
    reads = reads or [*question.reads]
    by_read = {read: {**lattice.scores.get(read, {})} for read in reads}
    below = own_law or np.isinf(lattice.limit)
    new = [j for j in js if j not in by_read[reads[0]] and (below or j > 0)]
    own_law = own_law or question.is_small
    # Powers of so many versions are held at once.
    size = question.size if own_law else question.problem.agents
    if question.problem.agents > MANY and not own_law:
        size = 4
    count = max(int(LARGEST_POWERS / (48 * size**2)), 1)
    for first in range(0, len(new), count):
        part = new[first : first + count]
        path = question.laws([lattice.sampler(j) for j in part], own_law, lattice.price)
        question.settings_tried += len(part)
        for read, score_at in by_read.items():
            solved = [each.iterations for each in score_at.values() if each.value < UNSOLVED]
            least = min(solved, default=FEW)
            scores = predict_scores(question, path, read, lattice.price, least)
            score_at.update(zip(part, scores or [Score(np.inf, 0, {})] * len(part), strict=True))
    return lattice._replace(scores=by_read)


def values_at(lattices: Sequence[Lattice], read: str | int) -> dict[tuple[int, float], float]:
    """Return the values of all scores with a read-out, by index of the lattice and place j."""
    return {
        (place, j): score.value
        for place, lattice in enumerate(lattices)
        for j, score in lattice.scores[read].items()
    }


def find_minima(
    lattices: Sequence[Lattice], read: str | int, spacing: float = 4
) -> list[tuple[int, float]]:
    """Find the two best local minima of the score: index of the lattice, and place j.

    spacing: the distance of the two places with which one is compared.
    """
    values = values_at(lattices, read)
    minima = [
        (value, place, j)
        for (place, j), value in values.items()
        if np.isfinite(value)
        and value <= min(values.get((place, j + side), np.inf) for side in (-spacing, spacing))
    ]
    return [(place, j) for _, place, j in sorted(minima)[:2]]


def find_best(
    question: Question, lattices: Sequence[Lattice], read: str | int, how: str
) -> Candidate:
    """Return the setting with the least score for a read-out; ``how`` is ``Candidate.how``."""
    is_careful = not question.is_exact and question.wish.target is None
    values = values_at(lattices, read)

    def worst_nearby(place: int, j: float) -> float:
        """Return the score at place j; with an approximate law the worst of j and its neighbors.

        place: the index of the lattice.
        """
        neighbors = (values.get((place, j + side), 0.0) for side in (-1, 1) if is_careful)
        return max(values[place, j], *neighbors, 0.0)

    place, j = min(values, key=lambda at: (worst_nearby(*at), at))
    lattice = lattices[place]
    score = lattice.scores[read][j]
    within = [j]
    for side in (1, -1):
        for i in sorted(lattice.scores[read], key=lambda i: i * side):
            if (i - j) * side > 0:
                if not values[place, i] <= 2 * score.value:
                    break
                within.append(i)
    b2 = {level: max(b2, question.floor) for level, b2 in score.b2.items()}
    return make_candidate(question, lattice, j, read, within, how, score._replace(b2=b2))


def make_candidate(
    question: Question,
    lattice: Lattice,
    j: float,
    read: str | int,
    within: Sequence[float],
    how: str,
    score: Score,
) -> Candidate:
    """Make a candidate of the setting at place j of a lattice with a read-out.

    within: the places around j whose score is at most twice as bad. how: ``Candidate.how``.
    """
    value, count, b2 = score
    price = question.price_with_read_out(lattice.price, read)
    spent = {name: count * each for name, each in price.items()}
    tuned_range = lattice.step(max(within)), lattice.step(min(within))
    return Candidate(lattice, j, read, count, spent, b2, tuned_range, how, value)
