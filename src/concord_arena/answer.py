"""Which sampler for a problem on a network, at which settings: a search by laws, not by runs.

Every entry is tried with every read-out. Its tuned option goes from the largest stable value down
by octaves, for each value of the second option, and on while the best is the last; then by quarter
octaves around the two best minima, since the score along a step has several. On Gaussian problems
of up to ``SMALL`` entries all laws are exact. Beyond, settings are chosen by ``surrogates``, and
the leading ones are confirmed by their own laws.

Elsewhere laws are approximate (``concord.linearized``), and of a setting the worst of its own
and its neighbors' scores counts: where the bias of x^2 changes its sign it is small by luck. What
is predicted there is never less than the b2 of the Gaussian fit itself, by weighted points.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import numpy as np
from msgspec import field, structs

from concord import kinds, linearized
from concord.errors import ConcordError
from concord.laws.exact import Marginals, Moments
from concord.laws.gaussian import monomials
from concord.laws.law import LARGEST, SECOND_LIMIT, laws_of_versions
from concord.laws.read_off import NoLaw, StepReader
from concord.laws.wasserstein import bias2
from concord.minibatches import Batches
from concord.networks.network import Network
from concord.options import Count, Options, Positive
from concord.problem import Problem, Quadratic
from concord.problems.gaussian_fit import Fit
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampler import Algorithm
from concord_arena import prices, scores
from concord_arena.doubts import batch_errors, estimate_by_weights
from concord_arena.entries import Entry
from concord_arena.read_outs import bytes_of, read_out
from concord_arena.surrogates import CoordinatewiseLaws, along
from concord_arena.tuning import find_limit, leave_out_conditions, read_value, vary
from concord_studies.contracts import PRICES

READS: tuple[str | int, ...] = ("agents", 1, 4, 16, "average")
SMALL = 40  # entries of the positions up to which all laws are exact
MANY = 64  # agents beyond which settings are chosen by the network's spectrum
CONFIRMED = LARGEST  # entries of the positions up to which finalists are confirmed
OCTAVES, SECOND_OCTAVES, MORE = 18, 12, 6
# Iterations in which a target is to be reached, by powers and by steps: on networks with losses,
# and with mini-batches, whose laws are exact up to there.
LONGEST, LONGEST_STEPS = 2**23, 2**12
# Iterations at which a target is looked for: in an octave, between two, and in which it may always
# be reached for once.
EVERY, PARTS, FEW = 256, 16, 16
TIE = 1e-6  # of a price, by which settings at the same one differ
CHANGED = 1.05  # factor between variances of mini-batch errors from which predictions are doubted
LATE = 8  # iterations of the second half at which the mean of x^2 is read
UNSOLVED = 1e30  # beyond all prices
LARGEST_POWERS = 3e7  # numbers that the powers of versions together may hold


class Wish(Options):
    """A user's wish: the least score for a budget by price, or the least price to a value of b2.

    by: the score at a budget: ``error``, that of time averages, or ``b2``, the squared bias of the
    last draw.
    """

    budget: dict[Literal[tuple(PRICES)], Positive] = field(default_factory=dict)  # type: ignore[valid-type]
    target: Positive | None = None
    price: Literal[tuple(PRICES)] | None = None  # type: ignore[valid-type]
    level: Literal["worst", "average"] = "worst"
    by: Literal["error", "b2"] = "error"
    batch_size: Count | None = None

    @property
    def averages(self) -> bool:
        """Whether settings are scored by their time averages."""
        return self.by == "error" and self.target is None


class Score(NamedTuple):
    """The score of a setting with a read-out: what ranks, and at which iteration.

    b2: by level, with the ``error`` of a time average where it is asked.
    """

    value: float
    iterations: int
    b2: Mapping[str, float]


class Lattice(NamedTuple):
    """An entry's grid of settings top / 2^(j/4) of its tuned option, ``second`` fixing the other.

    limit: the largest stable value. price: of an iteration, read by agents. scores: by j and
    read-out.
    """

    entry: Entry
    second: Mapping[str, Any]
    top: float
    limit: float
    price: Mapping[str, float]
    scores: dict[float, dict[str | int, Score]]

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

    spent: by price. b2: by level, and the ``error`` of a time average where it is asked.
    tuned_range: the least and the largest value of the tuned option with at most twice the score.
    how: exact, approximate, screened, or chains.
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


class Search:
    """The search for the best settings of samplers on one problem and network.

    fit: the Gaussian that fits the posterior. positions: the moments of an agent's start. masks:
    makes the stream of what happens on the network.
    """

    def __init__(
        self,
        problem: Problem,
        network: Network,
        positions: Moments,
        fit: Fit,
        wish: Wish,
        masks: Callable[[], np.random.Generator],
    ) -> None:
        """Set problem, network, starts, quadratic fit and wish; ``masks`` returns a generator."""
        self.problem, self.network, self.fit, self.wish = problem, network, fit, wish
        self.positions, self._masks = positions, masks
        self._exact = isinstance(problem, Quadratic)
        self._small = problem.agents * problem.dim <= SMALL
        self.reads: dict[str | int, tuple[np.ndarray | None, float]] = {}
        for read in READS if wish.target is None or network.is_lossless else READS[:1]:
            with suppress(ConcordError):
                mix, vectors = read_out(read, network)
                self.reads[read] = mix, bytes_of(vectors, problem)
        self._target = fit.law
        size = wish.batch_size
        self._batch_errors: Any = None  # covariances over the fit
        self._knows_errors = False
        if size is not None:
            self._batch_errors = batch_errors(problem, fit.mean, fit.cov, size)
            self._knows_errors = self._exact and hasattr(problem, "batch_noise_covariance")
        # What is fitted is not known better than it fits.
        self._floor = 0.0
        if not self._exact:
            mean, variances = estimate_by_weights(problem, fit)
            self._floor = float(bias2(mean, np.diag(variances), self._target))
        self.settings_tried = 0

    def entry(self, entry: Entry) -> Iterator[Candidate]:
        """Yield the best setting of an entry with each read-out; an error where there is none."""
        entry.sampler.check(self.problem, self.network)
        if entry.kind not in kinds.built_in("samplers"):
            prices.try_step(entry.sampler, self.problem, self.network, self._masks())
        if self.wish.batch_size is not None and not isinstance(entry.sampler, Batches):
            raise ConcordError("its gradients are full; leave batch_size out")
        self._check_law(entry.sampler)
        lattices = self.lattices(entry)
        for lattice in lattices:
            self._score_settings(lattice, self._octaves(lattice))
        for _ in range(3):
            if not sum(self._extend_lattices(lattices, read) for read in self.reads):
                break
        places_to_score: dict[int, set[float]] = {}
        for read in self.reads:
            for _, place, j in self._minima(lattices, read):
                places_to_score.setdefault(place, set()).update(j + i for i in range(-3, 4))
        for place, js in places_to_score.items():
            self._score_settings(lattices[place], sorted(js))
        for read in self.reads:
            best = self._best_setting(lattices, read, "screened")
            is_exact = self._exact and not self._has_constant_errors(best.lattice.price)
            how = "exact" if is_exact else "approximate"
            if np.isfinite(best.score):
                yield best._replace(how=how) if self._small else best

    def confirm(self, candidate: Candidate) -> Candidate:
        """Return a screened setting rescored by its own law, or a better neighbor.

        ``NoLaw`` where that is too large.
        """
        if (size := self.problem.agents * self.problem.dim) > CONFIRMED:
            raise NoLaw(f"{size} numbers exceed the {CONFIRMED} that laws are confirmed for")
        read, lattice = candidate.read, candidate.lattice._replace(scores={})
        reach = 0 if not self.network.is_lossless else 1 if self._exact else 2
        self._score_settings(
            lattice, [candidate.j + i for i in range(-reach, reach + 1)], own_law=True, only=read
        )
        for _ in range(4 if reach == 2 else 0):  # downhill: surrogates of these may be far off
            j = min(lattice.scores, key=lambda j: lattice.scores[j][read].value)
            if not (ends := {min(lattice.scores): -2, max(lattice.scores): 2}.get(j)):
                break
            self._score_settings(lattice, [j + ends, j + 2 * ends], own_law=True, only=read)
        best = self._best_setting([lattice], read, "exact" if self._exact else "approximate")
        (least, most), (low, high) = candidate.tuned_range, best.tuned_range
        return best._replace(
            tuned_range=(min(least, low), max(most, high)) if self._exact else best.tuned_range
        )

    def refine(self, candidate: Candidate) -> Candidate:
        """Return the best setting near an exactly scored one, between the values that were tried.

        Steps are searched to a 256th of an octave: where the error of some function changes its
        sign b2 has a dip, narrower than the lattice. A number as second option is varied, too, by
        a half, a quarter and an eighth of an octave.
        """
        best = self._refine_step(candidate.lattice, candidate.read, candidate.how)
        for name, values in candidate.entry.second.items():
            for octaves in (1 / 2, 1 / 4, 1 / 8) if isinstance(values[0], float) else ():
                value = best.lattice.second[name]
                entry = candidate.entry._replace(
                    second={name: [value * 2**octaves, value / 2**octaves]}
                )
                for lattice in self.lattices(entry):
                    place = round(4 * np.log2(lattice.top / best.lattice.step(best.j)))
                    place = max(place, 1)  # its largest stable step may be smaller
                    self._score_settings(lattice, range(place - 4, place + 5), only=candidate.read)
                    other = self._refine_step(lattice, candidate.read, candidate.how)
                    best = min(best, other, key=lambda row: row.score)
        return best

    def _refine_step(self, lattice: Lattice, read: str | int, how: str) -> Candidate:
        """Return the best setting of a lattice for a read-out, searched around its minima."""
        scores_of_read = {j: {read: of[read]} for j, of in lattice.scores.items()}
        lattice = lattice._replace(scores=scores_of_read)
        for spacing in (1 / 4, 1 / 16, 1 / 64):
            # A target may be reached in dips alone, of settings that are no neighbors.
            reach = 8 if self.wish.target is not None and spacing == 1 / 4 else 3
            places = {
                j + i * spacing
                for _, _, j in self._minima([lattice], read, 4 * spacing)
                for i in range(-reach, reach + 1)
            }
            self._score_settings(lattice, sorted(places), only=read)
        return self._best_setting([lattice], read, how)

    def unscored_settings(self, entry: Entry) -> Iterator[Candidate]:
        """Yield unscored settings an octave apart, for the read-outs agents and average."""
        for lattice in self.lattices(entry):
            is_limited = np.isfinite(lattice.limit)
            octaves = self._octaves(lattice)[np.s_[:SECOND_OCTAVES] if is_limited else np.s_[-12:]]
            for read in ("agents", "average"):
                count = self._iterations(lattice.price, read) if read in self.reads else 0
                for j in octaves if count >= 1 else ():
                    yield self._make_candidate(
                        lattice, j, read, [j], "chains", Score(np.inf, count, {})
                    )

    def curve(self, candidate: Candidate, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return 40 iterations up to ``most``, and a setting's b2 at each, at the wished level."""
        ks = np.unique(np.geomspace(1, max(most, 1), 40).astype(int)).tolist()
        path = self._law([candidate.sampler], candidate.how != "screened", candidate.lattice.price)
        return np.array(ks), self._bias(path, candidate.read, ks)[self.wish.level][:, 0]

    def doubt_batch_errors(self, candidate: Candidate) -> list[str]:
        """Return a sentence if mini-batches err otherwise over agents' laws than at the fit.

        The laws are those of a candidate whose errors are taken as constant; none else is doubted.
        """
        if not self._has_constant_errors(candidate.lattice.price):
            return []
        path = self._law([candidate.sampler], True, candidate.lattice.price)
        late = path.marginals_at(sorted({candidate.iterations // 2, candidate.iterations}))
        size: Any = self.wish.batch_size
        laws = zip(late.mean[:, 0], late.cov[:, 0], strict=True)
        try:
            own = [batch_errors(self.problem, mean, cov, size) for mean, cov in laws]
        except np.linalg.LinAlgError:
            return ["mini-batches are predicted by their errors at the posterior"]
        variances = [np.trace(errors, axis1=-2, axis2=-1) for errors in (own, self._batch_errors)]
        ratios = np.nan_to_num(variances[0] / variances[1], nan=1.0)  # all points may be alike
        ratio = max(np.ravel(ratios), key=lambda one: abs(np.log(one)))
        if 1 / CHANGED < ratio < CHANGED:
            return []
        return [
            "mini-batches are predicted by their errors at the posterior, and over an agent's law "
            f"these have {ratio:.2g} times that variance"
        ]

    def lattices(self, entry: Entry) -> list[Lattice]:
        """Return a lattice for each value of the second option; an error where there is none."""
        name, values = next(iter(entry.second.items()), (None, (None,)))
        begin = read_value(entry.sampler, entry.tune, entry.name)
        stable_lattices, why = [], "no setting is stable"
        for value in values:
            second = {} if name is None else {name: value}
            one = vary(entry.sampler, second, entry.name)
            arguments = self.problem, self.network, self._masks()
            price = prices.price_per_iteration(one, *arguments)
            if self._iterations(price, "agents") < 1:
                why = self._explain_unaffordable(price)
                continue
            limit = np.inf
            with suppress(NoLaw):
                self._check_law(one)
                for on in (self.network, leave_out_conditions(self.network))[not self._small :]:
                    if not np.isfinite(limit):
                        limit = find_limit(one, entry.tune, self._bare(), on)
            if not np.isnan(limit):
                top = limit if np.isfinite(limit) else begin * 2.0**9
                stable_lattices.append(Lattice(entry, second, top, limit, price, {}))
        if not stable_lattices:
            raise ConcordError(why)
        return stable_lattices

    def _explain_unaffordable(self, price: Mapping[str, float]) -> str:
        """Return a sentence on the part of the budget that is too small for one iteration."""
        budget = self.wish.budget
        name = max(budget, key=lambda name: price[name] / budget[name])
        return (
            f"budget.{name}: {budget[name]:g} pays for no iteration, which costs {price[name]:g}; "
            "allow more"
        )

    def _check_law(self, sampler: Algorithm) -> None:
        """Raise ``NoLaw`` for a sampler with random choices on too large a problem."""
        size = self.problem.agents * self.problem.dim
        reader = StepReader(sampler, self._bare(), Network(self.network.graph))
        if reader.chooses and size > SECOND_LIMIT:
            raise NoLaw(
                f"it draws who moves, and laws over that are computed up to {SECOND_LIMIT} "
                "numbers (agents times dimension); sample it"
            )

    def _bare(self) -> Any:
        """Return the quadratic problem that sets stability limits; of a large one a coordinate."""
        fit = self.fit
        if self._small:
            return self.problem if self._exact else QuadraticProblem(fit.hessians, fit.shift)
        problems = along(fit, self.positions)[1]
        return max(problems, key=lambda problem: float(np.abs(problem.gram).max()))

    def _octaves(self, lattice: Lattice) -> list[int]:
        """Return the places j of a lattice that are scored first, one in each octave."""
        if not np.isfinite(lattice.limit):
            return [4 * i for i in range(19)]
        count = 24 if self.wish.target else SECOND_OCTAVES if lattice.entry.second else OCTAVES
        return [4 * i for i in range(1, count + 1)]

    def _extend_lattices(self, lattices: Sequence[Lattice], read: str | int) -> bool:
        """Score more octaves beyond a lattice whose best setting is at its end, for a read-out.

        Returns whether there were any.
        """
        score, place, j = min(_scores(lattices, read))
        scores_at, limit = lattices[place].scores, lattices[place].limit
        side = (
            1
            if j == max(scores_at)
            else -1
            if j == min(scores_at) and not np.isfinite(limit)
            else 0
        )
        if not (np.isfinite(score) and side):
            return False
        self._score_settings(lattices[place], [j + side * 4 * i for i in range(1, MORE + 1)])
        return True

    def _minima(
        self, lattices: Sequence[Lattice], read: str | int, apart: float = 4
    ) -> list[tuple[float, int, float]]:
        """Return the two best minima among places ``apart``: (score, place of the lattice, j)."""
        score_at = {(place, j): score for score, place, j in _scores(lattices, read)}
        minima = [
            (score, place, j)
            for (place, j), score in score_at.items()
            if np.isfinite(score)
            and score <= min(score_at.get((place, j + side), np.inf) for side in (-apart, apart))
        ]
        return sorted(minima)[:2]

    def _score_settings(
        self,
        lattice: Lattice,
        js: Sequence[float],
        own_law: bool = False,
        only: str | int | None = None,
    ) -> None:
        """Score a lattice's unscored settings at places j, with all read-outs or ``only`` one.

        The scores are added to ``lattice.scores``.

        own_law: score by the settings' own laws, and beyond the stability limit, too.
        """
        below = own_law or np.isinf(lattice.limit)
        new = [j for j in js if j not in lattice.scores and (below or j > 0)]
        own_law = own_law or self._small
        # Powers of so many versions are held at once.
        size = self.problem.agents * (self.problem.dim if own_law else 1)
        if self.problem.agents > MANY and not own_law:
            size = 4
        count = max(int(LARGEST_POWERS / (48 * size**2)), 1)
        for first in range(0, len(new), count):
            part = new[first : first + count]
            path = self._law([lattice.sampler(j) for j in part], own_law, lattice.price)
            self.settings_tried += len(part)
            for read in self.reads if only is None else (only,):
                known = [of[read] for of in lattice.scores.values() if read in of]
                least = min((one.iterations for one in known if one.value < UNSOLVED), default=FEW)
                new_scores = self._score(path, read, lattice.price, least)
                for j, score in zip(
                    part, new_scores or [Score(np.inf, 0, {})] * len(part), strict=True
                ):
                    lattice.scores.setdefault(j, {})[read] = score

    def _score(
        self, path: Any, read: str | int, price: Mapping[str, float], known: int = FEW
    ) -> list[Score]:
        """Score the versions of a path with a read-out. None if the budget pays for nothing.

        Where a target is not reached the value is b2 times ``UNSOLVED``, beyond all prices. known:
        the least iterations in which another setting reaches it.
        """
        wish, most = self.wish, self._iterations(price, read)
        if most < 1:
            return []
        if wish.target is not None:
            ks, b2, at = self._find_target(path, read, most, known)
            paid = np.array(ks) * self._paid(price, read)[str(wish.price)]
            rows = np.minimum(at, len(ks) - 1)
            last = b2[wish.level][-1]
            before = b2[wish.level][np.maximum(rows - 1, 0), np.arange(len(rows))]
            # Of those at one price the one that nearly reached it before leads to a lower one.
            values = paid[rows] * (1 + TIE * np.minimum(before / wish.target, 100))
            values = np.where(at < len(ks), values, UNSOLVED * (1 + last))
        else:
            ks = [most]
            b2 = self._bias(path, read, ks)
            if wish.averages:
                b2["error"] = self._errors_of_averages(path, read, most)[None]
            values = b2["error" if wish.averages else wish.level][0]
            rows = np.zeros(len(values), dtype=int)
        return [
            Score(value, ks[row], {level: float(of[row, v]) for level, of in b2.items()})
            for v, (value, row) in enumerate(zip(values.tolist(), rows.tolist(), strict=True))
        ]

    def _find_target(
        self, path: Any, read: str | int, most: int, known: int
    ) -> tuple[list[int], dict[str, np.ndarray], np.ndarray]:
        """Return iterations, b2 by level there, and the place of each version's first that reaches.

        The place is the number of iterations where none does. Powers of two are looked at, on
        small problems ``EVERY`` in an octave up to twice ``known`` and up to twice the first that
        reaches, and then ever more between that and the one before, until these are neighbors.
        """
        level, target = self.wish.level, float(self.wish.target or 0)
        find = scores.reached_at if self._exact else scores.solved_at  # a dip may be an error
        dense = scores.looks(min(2 * known, most), EVERY) if self._small else []
        ks: list[int] = []
        b2: dict[str, np.ndarray] = {}
        new = sorted({*scores.looks(most, 1), *dense})
        while new:
            more = self._bias(path, read, new)
            order = np.argsort(ks + new)
            b2 = {n: np.concatenate([b2[n], more[n]] if ks else [more[n]])[order] for n in more}
            ks, is_first = sorted(ks + new), not ks
            at = find(b2[level], target)
            if (first := at.min()) == len(ks):
                break
            begin, end = [0, *ks][first], ks[first]
            octave = scores.looks(min(2 * end, most), EVERY) if is_first and self._small else []
            between = range(begin + 1, end, -(-(end - begin) // PARTS))
            new = sorted({*octave} - {*ks}) or [*between]
        return ks, b2, at

    def _best_setting(self, lattices: Sequence[Lattice], read: str | int, how: str) -> Candidate:
        """Return the setting with the least score for a read-out, noting how it was scored."""
        careful = not self._exact and self.wish.target is None
        score_at = {(place, j): score for score, place, j in _scores(lattices, read)}

        def score_with_neighbors(index: int, j: float) -> float:
            """Return the score at place j of lattice ``index``.

            Where the law is approximate it is the worst of j and of the places next to it.
            """
            neighbors = (score_at.get((index, j + side), 0.0) for side in (-1, 1) if careful)
            return max(score_at[index, j], *neighbors, 0.0)

        place, j = min(score_at, key=lambda one: (score_with_neighbors(*one), one))
        lattice = lattices[place]
        score = lattice.scores[j][read]
        places = [j]
        for side in (1, -1):
            for i in sorted(lattice.scores, key=lambda i: i * side):
                if (i - j) * side > 0:
                    if not score_at[place, i] <= 2 * score.value:
                        break
                    places.append(i)
        b2 = {level: max(b2, self._floor) for level, b2 in score.b2.items()}
        return self._make_candidate(lattice, j, read, places, how, score._replace(b2=b2))

    def _make_candidate(
        self,
        lattice: Lattice,
        j: float,
        read: str | int,
        places: Sequence[float],
        how: str,
        score: Score,
    ) -> Candidate:
        """Return the setting at place j of a lattice with a read-out, its score and its price.

        places: those around j whose score is at most twice as bad. how: ``Candidate.how``: exact,
        approximate, screened, or chains.
        """
        value, count, b2 = score
        paid = {name: count * each for name, each in self._paid(lattice.price, read).items()}
        tuned_range = lattice.step(max(places)), lattice.step(min(places))
        return Candidate(lattice, j, read, count, paid, b2, tuned_range, how, value)

    def _paid(self, price: Mapping[str, float], read: str | int) -> dict[str, float]:
        """Return the price of an iteration, by currency, with the bytes of a read-out added."""
        return {**price, "bytes": price["bytes"] + self.reads[read][1]}

    def _iterations(self, price: Mapping[str, float], read: str | int) -> int:
        """Return the number of iterations that the budget pays for, or the longest for a target."""
        paid = self._paid(price, read)
        if self.wish.target is not None:
            if not paid[str(self.wish.price)]:
                raise ConcordError(f"an iteration costs no {self.wish.price}")
            by_powers = self.network.is_lossless and not self._knows_errors
            return LONGEST if by_powers else LONGEST_STEPS
        if not any(paid[name] for name in self.wish.budget):
            raise ConcordError(f"an iteration costs no {' or '.join(self.wish.budget)}")
        return prices.count_iterations(self.wish.budget, paid, 10**9)

    def _has_constant_errors(self, price: Mapping[str, float]) -> bool:
        """Return whether errors of mini-batches are those at the fit, as if agents were there."""
        exact = self._knows_errors and self._iterations(price, "agents") <= LONGEST_STEPS
        return self.wish.batch_size is not None and not exact

    def _law(self, samplers: Sequence[Algorithm], own_law: bool, price: Mapping[str, float]) -> Any:
        """Return the laws of samplers: exact or linearized if ``own_law``, else surrogates."""
        network, positions = self.network, self.positions
        errors, size = None, self.wish.batch_size
        if self._has_constant_errors(price):
            errors = self._batch_errors
        if size is not None and not self._small:
            raise NoLaw(
                f"mini-batches are predicted for up to {SMALL} entries of the positions; sample it"
            )
        if not self._exact:
            linearized.refuse_local_steps(samplers)  # surrogates know even less
        if not own_law:
            return CoordinatewiseLaws(
                samplers, self.fit, network, positions, mean=network.agents > MANY
            )
        if size is not None:
            samplers = [structs.replace(sampler, batch_size=size) for sampler in samplers]
        if not self._exact:
            law = linearized.LinearizedPath
            return law(samplers, self.problem, network, positions, self.fit, errors=errors)
        every = [self.problem] * len(samplers)
        return laws_of_versions(samplers, every, network, positions, most=np.inf, errors=errors)

    def _bias(self, path: Any, read: str | int, ks: Sequence[int]) -> dict[str, np.ndarray]:
        """Return b2 by level, each (iterations, versions). Infinite where it is not a number.

        Large values stay: agents that start far away have not diverged.
        """
        mix = self.reads[read][0]
        marginals: Marginals = (path if read == "average" else path.with_answers(mix)).marginals_at(
            ks
        )
        b2 = scores.compute_bias(marginals, self._target)
        return dict.fromkeys(b2, b2["average"]) if read == "average" else b2

    def _errors_of_averages(self, path: Any, read: str | int, end: int) -> np.ndarray:
        """Return the errors of averages over the second half of ``end`` iterations, (versions,).

        The larger of the expected squared error of the average of x_j, and of the squared bias of
        that of x_j^2, over the posterior's variances. Infinite where it is not a number. path: the
        laws of versions of a sampler. read: the read-out.
        """
        path = path if read == "average" else path.with_answers(self.reads[read][0])
        averaged = path.time_average(end)
        if averaged is None:
            raise NoLaw(
                f"the law of a time average is not computed over {end:,} iterations; use by='b2'"
            )
        late = np.unique(np.linspace(end // 2 + 1, end, LATE).round().astype(int)).tolist()
        marginals, level = (
            path.marginals_at(late),
            "average" if read == "average" else self.wish.level,
        )
        law = (marginals.mean, marginals.cov) if level == "worst" else marginals[2:]
        (target_moments, variances), dim = self._target.monomials(), len(self._target.mean)
        off = monomials(*law)[0].mean(axis=0)[..., dim:] - target_moments[dim:]
        squares = (off**2 / variances[dim:]).max(axis=-1)
        squares = squares.max(axis=-1) if level == "worst" else squares
        both = np.maximum(scores.ergodic(averaged, self._target)[level], squares)
        return np.nan_to_num(both, nan=np.inf)


def _scores(lattices: Sequence[Lattice], read: str | int) -> Iterator[tuple[float, int, float]]:
    """Yield (score, place of the lattice, j) of all settings scored with a read-out."""
    for place, lattice in enumerate(lattices):
        for j, of in lattice.scores.items():
            yield of[read].value, place, j
