"""Which sampler for a problem on a network, at which settings: a search by laws, not by runs.

Every entry is tried with every read-out. Its tuned option goes from the largest stable value down
by octaves, for each value of the second option, and on while the best is the last; then by quarter
octaves around the two best minima, since the score along a step has several. On Gaussian problems
of up to ``SMALL`` entries all laws are exact. Beyond, settings are chosen by ``surrogates``, and
the leading ones are confirmed by their own laws.

Elsewhere laws are approximate (``metrics._linearized``), and of a setting the worse of its
neighbors' scores counts: where the bias of x^2 changes its sign it is small by luck. What is
predicted there is never less than the b2 of the Gaussian fit itself, as weighed points tell it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
import numpy as np

from concord.arena import prices, scores
from concord.arena.read_outs import bytes_of, read_out
from concord.arena.surrogates import Coordinates, along
from concord.arena.tuning import Setting, changed, stable, value_of
from concord.contracts import AffineSampler, Problem, Quadratic, offers
from concord.errors import ConcordError
from concord.laws.exact import Affine, Moments, Seen, Update, block_diagonal
from concord.laws.gaussian import bias2
from concord.metrics import _laws
from concord.metrics._linearized import Linearized
from concord.networks.conditions import Conditions
from concord.networks.topology import Topology
from concord.problems._fit import Fit, batch_errors, weighed
from concord.problems._quadratic import QuadraticProblem
from concord.samplers import Batching

READS: tuple[str | int, ...] = ("agents", 1, 4, 16, "average")
SMALL = 40  # entries of the positions up to which all laws are exact
MANY = 64  # agents beyond which settings are chosen by the network's spectrum
CONFIRMED = _laws.LARGEST  # entries of the positions up to which finalists are confirmed
OCTAVES, SECOND_OCTAVES, MORE = 18, 12, 6
LONGEST, LONGEST_LOSSY = 2**23, 2**12  # iterations, where a target is to be reached
UNSOLVED = 1e30  # beyond all prices
HELD = 3e7  # numbers that the powers of versions together may hold


class Entry(NamedTuple):
    """A sampler and what is tuned: ``tune``, and the values of a second option."""

    name: str
    kind: str
    sampler: Any
    params: Any
    tune: str | None
    second: Mapping[str, Sequence[Any]]


class Wish(NamedTuple):
    """What is asked for: the least b2 for a budget by price, or the least price to a target.

    batch_size: of the mini-batches that samplers take; none: full gradients.
    """

    budget: Mapping[str, float]
    target: float | None = None
    price: str | None = None  # of the target
    level: str = "worst"
    batch_size: int | None = None


class Found(NamedTuple):
    """The best setting of an entry with a read-out.

    spent: by price. b2: by level. within: the least and the largest value of the tuned option with
    at most twice the score. limit: its largest stable value. how: exact, approximate, or screened.
    """

    entry: Entry
    read: str | int
    setting: Setting
    iterations: int
    spent: Mapping[str, float]
    b2: Mapping[str, float]
    within: tuple[float, float]
    limit: float
    how: str
    score: float


class Lattice(NamedTuple):
    """Values of the tuned option, top / 2^(j/4), with a value of the second option."""

    own: Mapping[str, Any]
    top: float
    limit: float
    price: Mapping[str, float]
    tried: dict[int, dict[str | int, tuple[float, int, dict[str, float]]]]


class Search:
    """The search on one problem and network.

    found: the Gaussian that fits the posterior. positions: the moments of an agent's start. masks:
    makes the stream of what happens on the network.
    """

    def __init__(
        self,
        problem: Problem,
        topology: Topology,
        positions: Moments,
        found: Fit,
        wish: Wish,
        masks: Callable[[], np.random.Generator],
    ) -> None:
        self.problem, self.topology, self.fit, self.wish = problem, topology, found, wish
        self.positions, self._masks = positions, masks
        self._exact = isinstance(problem, Quadratic)
        self._small = problem.agents * problem.dim <= SMALL
        self.reads: dict[str | int, tuple[np.ndarray | None, float]] = {}
        for read in READS if wish.target is None or topology.conditions.perfect else READS[:1]:
            with suppress(ConcordError):
                mix, vectors = read_out(read, topology)
                self.reads[read] = mix, bytes_of(vectors, problem)
        self._target = found.law
        size = wish.batch_size
        self._errors = None if size is None else batch_errors(problem, found, size)
        # What is fitted is not known better than it fits.
        self._floor = 0.0
        if not self._exact:
            mean, variances = weighed(problem, found)
            self._floor = float(bias2(mean, np.diag(variances), self._target))
        self.tried, self._asked = 0, list[Mapping[str, float]]()

    def entry(self, entry: Entry, octaves: Sequence[int] | None = None) -> Iterator[Found]:
        """Yield the best setting of an entry with each read-out; an error where there is none."""
        entry.sampler.check(self.problem, self.topology, entry.params)
        if _laws.batch_size(entry.params) != self.wish.batch_size:
            raise ConcordError("its gradients are full; leave batch_size out")
        if not self._follows(entry.sampler):
            raise _laws.NoLaw(
                "it states no law, or draws who moves, whose law is computed for up to "
                f"{SMALL} entries of the positions; sample it"
            )
        lattices = list(self.lattices(entry))
        for lattice in lattices:
            self._try(entry, lattice, self._octaves(entry, lattice))
        if entry.tune is not None:
            for _ in range(3):
                if not self._widen(entry, lattices):
                    break
            wanted: dict[int, set[int]] = {}
            for read in self.reads:
                for place, j in self._minima(lattices, read):
                    wanted.setdefault(place, set()).update(range(j - 3, j + 4))
            for place, js in wanted.items():
                self._try(entry, lattices[place], sorted(js))
        known = self._exact and self._errors is None
        how = "screened" if not self._small else "exact" if known else "approximate"
        for read in self.reads:
            with suppress(LookupError):
                yield self._best(entry, lattices, read, how)

    def confirmed(self, found: Found) -> Found:
        """Return a screened setting with the score of its own law, or a neighbor that is better."""
        entry, read = found.entry, found.read
        second = {k: v for k, v in found.setting.values.items() if k != entry.tune}
        whole = float(found.setting.values[entry.tune]) if entry.tune else 1.0
        price = self._price(entry, found.setting.params)
        lattice = Lattice(second, whole, found.limit, price, {})
        offsets = (
            [0] if entry.tune is None else [-2, -1, 0, 1, 2] if not self._exact else [-1, 0, 1]
        )
        if not self.topology.conditions.perfect:
            offsets = [0]
        self._try(entry, lattice, offsets, own=True, only=read)
        if not self._exact and entry.tune is not None:
            for _ in range(4):  # downhill, since surrogates of other problems may be far off
                j = min(lattice.tried, key=lambda j: lattice.tried[j][read][0])
                if not (ends := {min(lattice.tried): -2, max(lattice.tried): 2}.get(j)):
                    break
                self._try(entry, lattice, [j + ends, j + 2 * ends], own=True, only=read)
        best = self._best(entry, [lattice], read, "exact" if self._exact else "approximate")
        return best._replace(within=found.within) if self._exact else best

    def stated(self, entry: Entry, lattice: Lattice, read: str | int) -> Iterator[Found]:
        """Yield the settings along octaves, of which nothing is known yet."""
        count = self._iterations(lattice.price, read)
        octaves = self._octaves(entry, lattice)
        own = np.s_[:SECOND_OCTAVES] if np.isfinite(lattice.limit) else np.s_[-SECOND_OCTAVES:]
        for j in octaves[own] if count >= 1 else ():
            yield self._row(entry, lattice, j, read, count, {}, [j], "chains", np.inf)

    @property
    def confirms(self) -> bool:
        """Whether leading settings can be scored by their own laws."""
        return self.problem.agents * self.problem.dim <= CONFIRMED

    def cheapest(self) -> tuple[str, float] | None:
        """Return a price by which no entry can pay for an iteration, and the least of it."""
        for name, amount in self.wish.budget.items():
            asked = [paid[name] for paid in self._asked if paid[name] > 0]
            if asked and min(asked) > amount:
                return name, min(asked)
        return None

    def needs(self, entry: Entry, best: Found, price: str) -> float:
        """Return how many times what the best one pays an entry must pay for its score.

        Not a number where that is not known soon, or it does not get there.
        """
        if not (self._small and self._exact and self.topology.conditions.perfect):
            return np.nan
        wish = self.wish._replace(budget={}, target=best.b2[self.wish.level], price=price)
        given = self.problem, self.topology, self.positions, self.fit, wish, self._masks
        least = np.inf
        with suppress(ConcordError):  # chains alone have scored it
            least = min((found.score for found in Search(*given).entry(entry)), default=np.inf)
        return least / best.spent[price] if least < UNSOLVED else np.nan

    def curve(self, found: Found, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Return iterations, and b2 of the level asked for at them, of a setting."""
        ks = np.unique(np.geomspace(1, max(most, 1), 40).astype(int)).tolist()
        path = self._law(found.entry, [found.setting.params], found.how != "screened")
        return np.array(ks), self._scored(path, found.read, ks)[self.wish.level][:, 0]

    def lattices(self, entry: Entry) -> Iterator[Lattice]:
        """Yield a lattice for each value of the second option."""
        name, values = next(iter(entry.second.items()), (None, (None,)))
        problem = self._bare()
        bare = replace(self.topology, conditions=Conditions())  # what happens on it left out
        begin = 1.0 if entry.tune is None else value_of(entry.params, entry.tune, entry.name)
        for value in values:
            own = {} if name is None else {name: value}
            params = changed(entry.params, own, entry.name)
            price = self._price(entry, params)
            limit = np.inf
            if entry.tune is not None and self._follows(entry.sampler):
                tune = entry.tune

                def params_of(step: float, own: Any = own, tune: str = tune) -> Any:
                    return _full(changed(entry.params, {**own, tune: step}, entry.name))

                limit = stable(entry.sampler, params_of, begin, problem, bare)
                if np.isnan(limit):
                    continue
            top = limit if np.isfinite(limit) else begin * 2.0**9
            yield Lattice(own, top, limit, price, {})

    def _follows(self, sampler: Any) -> bool:
        """Whether the sampler may have a law of this size: of choices each holds a matrix."""
        return self._small or offers(sampler, AffineSampler)

    def _bare(self) -> Any:
        """Return the problem that limits are those of: the stiffest coordinate of a large one."""
        found = self.fit
        if self._small:
            return self.problem if self._exact else QuadraticProblem(found.hessians, found.shift)
        problems = along(found, self.positions)[1]
        return max(problems, key=lambda problem: float(np.abs(problem.gram).max()))

    def _octaves(self, entry: Entry, lattice: Lattice) -> list[int]:
        if entry.tune is None:
            return [0]
        if not np.isfinite(lattice.limit):
            return [4 * i for i in range(19)]
        count = SECOND_OCTAVES if entry.second else OCTAVES
        return [4 * i for i in range(1, (24 if self.wish.target else count) + 1)]

    def _widen(self, entry: Entry, lattices: Sequence[Lattice]) -> bool:
        """Try more octaves where the best is the last one; return whether there were any."""
        went = False
        for read in self.reads:
            best = min(
                ((of[read][0], j, lattice) for lattice in lattices
                 for j, of in lattice.tried.items() if read in of),
                key=lambda one: one[:2], default=None,
            )  # fmt: skip
            if best is None or not np.isfinite(best[0]):
                continue
            _, j, lattice = best
            if j == max(lattice.tried):
                more = [j + 4 * i for i in range(1, MORE + 1)]
            elif j == min(lattice.tried) and not np.isfinite(lattice.limit):
                more = [j - 4 * i for i in range(1, MORE + 1)]
            else:
                continue
            self._try(entry, lattice, more)
            went = True
        return went

    def _minima(self, lattices: Sequence[Lattice], read: str | int) -> list[tuple[int, int]]:
        """Return the two best minima along octaves, by place of the lattice and j."""
        found = []
        for place, lattice in enumerate(lattices):
            own = {j: of[read][0] for j, of in lattice.tried.items() if read in of}
            found += [
                (value, place, j)
                for j, value in own.items()
                if np.isfinite(value)
                and value <= own.get(j - 4, np.inf)
                and value <= own.get(j + 4, np.inf)
            ]
        return [(place, j) for _, place, j in sorted(found)[:2]]

    def _try(
        self,
        entry: Entry,
        lattice: Lattice,
        js: Sequence[int],
        own: bool = False,
        only: str | int | None = None,
    ) -> None:
        """Score values of a lattice that have no score yet, with all read-outs."""
        new = [
            j for j in js if j not in lattice.tried and (np.isinf(lattice.limit) or j > 0 or own)
        ]
        reads = [read for read in self.reads if only is None or read == only]
        counts = {read: self._iterations(lattice.price, read) for read in reads}
        for part in self._parts(new):
            params = [self._params(entry, lattice, j) for j in part]
            path = self._law(entry, params, own or self._small)
            self.tried += len(part)
            for read in reads:
                if (count := counts[read]) < 1:
                    continue
                ks = [count] if self.wish.target is None else _powers(count)
                b2 = self._scored(path, read, ks)
                each = self._values(b2, ks, lattice.price, read)
                for place, j in enumerate(part):
                    value, row = each[0][place], int(each[1][place])
                    levels = {level: float(of[row, place]) for level, of in b2.items()}
                    lattice.tried.setdefault(j, {})[read] = value, ks[row], levels

    def _values(
        self, b2: Mapping[str, np.ndarray], ks: list[int], price: Mapping[str, float], read: Any
    ) -> tuple[list[float], np.ndarray]:
        """Return what is to be least, and the place of the iteration that it is reached at.

        Where a target is not reached, that is its score, beyond all prices.
        """
        own = b2[self.wish.level]
        rows = np.full(own.shape[1], len(ks) - 1)
        if self.wish.target is None:
            return own[-1].tolist(), rows
        at = scores.solved_at(own, self.wish.target)
        paid = np.array(ks) * self._paid(price, read)[str(self.wish.price)]
        solved = at < len(ks)
        values = np.where(solved, paid[np.minimum(at, len(ks) - 1)], UNSOLVED * (1 + own[-1]))
        return values.tolist(), np.where(solved, at, rows)

    def _best(self, entry: Entry, lattices: Sequence[Lattice], read: str | int, how: str) -> Found:
        """Return the best setting with a read-out; a LookupError where nothing was scored."""
        every = [
            (self._careful(lattice, j, read), place, j)
            for place, lattice in enumerate(lattices)
            for j, of in lattice.tried.items()
            if read in of
        ]
        if not every:
            raise LookupError
        _, place, j = min(every)
        lattice = lattices[place]
        score, iterations, levels = lattice.tried[j][read]
        near = [j]
        for side in (1, -1):
            ahead = sorted((i for i in lattice.tried if (i - j) * side > 0), key=lambda i: i * side)
            for i in ahead:
                if read not in lattice.tried[i] or not lattice.tried[i][read][0] <= 2 * score:
                    break
                near.append(i)
        levels = {level: max(b2, self._floor) for level, b2 in levels.items()}
        return self._row(entry, lattice, j, read, iterations, levels, near, how, score)

    def _row(
        self,
        entry: Entry,
        lattice: Lattice,
        j: int,
        read: str | int,
        iterations: int,
        b2: Mapping[str, float],
        near: Sequence[int],
        how: str,
        score: float,
    ) -> Found:
        """Return a setting with what is known of it; near: places that are at most twice as bad."""
        values = dict(lattice.own)
        if entry.tune is not None:
            values[entry.tune] = self._value(lattice, j)
        paid = {name: iterations * each for name, each in self._paid(lattice.price, read).items()}
        within = self._value(lattice, max(near)), self._value(lattice, min(near))
        setting = Setting(values, self._params(entry, lattice, j))
        return Found(entry, read, setting, iterations, paid, b2, within, lattice.limit, how, score)

    def _careful(self, lattice: Lattice, j: int, read: str | int) -> float:
        """Return a score; of approximate laws the worst of it and its neighbors'."""
        value = lattice.tried[j][read][0]
        if self._exact or self.wish.target is not None:
            return value
        beside = [lattice.tried[i][read][0] for i in (j - 1, j + 1)
                  if i in lattice.tried and read in lattice.tried[i]]  # fmt: skip
        return max([value, *beside])

    def _value(self, lattice: Lattice, j: int) -> float:
        return float(lattice.top * 2.0 ** (-j / 4))

    def _params(self, entry: Entry, lattice: Lattice, j: int) -> Any:
        if entry.tune is None:
            return entry.params
        values = {**lattice.own, entry.tune: self._value(lattice, j)}
        return changed(entry.params, values, entry.name)

    def _price(self, entry: Entry, params: Any) -> dict[str, float]:
        given = self.problem, self.topology, self._masks()
        return prices.per_iteration(entry.sampler, params, *given)

    def _paid(self, price: Mapping[str, float], read: str | int) -> dict[str, float]:
        """Return what an iteration costs with a read-out."""
        return {**price, "bytes": price["bytes"] + self.reads[read][1]}

    def _iterations(self, price: Mapping[str, float], read: str | int) -> int:
        """Return how many iterations are paid for, or followed where a target is to be reached."""
        paid = self._paid(price, read)
        self._asked.append(paid)
        if self.wish.target is not None:
            if not paid[str(self.wish.price)]:
                raise ConcordError(f"an iteration costs no {self.wish.price}")
            return LONGEST if self.topology.conditions.perfect else LONGEST_LOSSY
        most = [amount / paid[name] for name, amount in self.wish.budget.items() if paid[name] > 0]
        if not most:
            raise ConcordError(f"an iteration costs no {' or '.join(self.wish.budget)}")
        return int(min(min(most), 10**9))

    def _parts(self, js: Sequence[int]) -> Iterator[Sequence[int]]:
        """Divide versions so that their powers are held at once."""
        size = self.problem.agents * (self.problem.dim if self._small else 1)
        if self.problem.agents > MANY:
            size = 4
        count = max(int(HELD / (48 * size**2)), 1)
        for first in range(0, len(js), count):
            yield js[first : first + count]

    def _law(self, entry: Entry, params: Sequence[Any], own: bool) -> Any:
        """Return the laws of versions: their own, or surrogates to choose by."""
        sampler, topology, given = entry.sampler, self.topology, self.positions
        if self._errors is not None:
            if not (self._small and offers(sampler, AffineSampler)):
                raise _laws.NoLaw(
                    f"mini-batches are predicted for up to {SMALL} entries of the positions of "
                    "affine samplers; sample it"
                )
            sampler = _batched(sampler, self.wish.batch_size, self._errors)
            params = [_full(one) for one in params]
        if not own:
            many = topology.agents > MANY
            return Coordinates(sampler, self.fit, topology, params, given, mean=many)
        if not self._exact:
            return Linearized(sampler, self.problem, topology, params, given, self.fit)
        every = [self.problem] * len(params)
        return _laws.of_versions(sampler, every, topology, params, given, most=CONFIRMED)

    def _scored(self, path: Any, read: str | int, ks: Sequence[int]) -> dict[str, np.ndarray]:
        """Return b2 by level, each (iterations, versions); infinite where a law is no number."""
        mix = self.reads[read][0]
        seen: Seen = (path if read == "average" else path.reading(mix)).at(ks)
        found = scores.bias(seen, self._target)
        if read == "average":
            found = dict.fromkeys(found, found["average"])
        return {level: np.nan_to_num(b2, nan=np.inf) for level, b2 in found.items()}


def _batched(sampler: Any, size: int | None, errors: np.ndarray) -> Any:
    """Return a sampler whose mini-batches err with one covariance wherever agents are.

    errors: (agents, dim, dim). Its options are given without the size; everything arrives.
    """
    spread = block_diagonal(errors)

    @lru_cache(maxsize=8)
    def noisy(step: Affine) -> Affine:
        gain = step.gradient_gain
        return step if gain is None else replace(step, noise=step.noise + gain @ spread @ gain.T)

    def affine(problem: Any, topology: Topology, params: Any) -> Update | None:
        own = msgspec.structs.replace(params, batch_size=size)
        update = sampler.affine(problem, topology, own)
        return update and Update(lambda k: noisy(update.at(k)), update.auxiliary)

    return SimpleNamespace(affine=affine, __name__=sampler.__name__)


def _full(params: Any) -> Any:
    """Return options for full gradients."""
    given = isinstance(params, Batching)
    return msgspec.structs.replace(params, batch_size=None) if given else params


def _powers(most: int) -> list[int]:
    return [2**i for i in range(int(np.log2(most)) + 1)]
