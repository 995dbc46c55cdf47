"""How good the answer of ``recommend`` is; of a run only network and start are looked at.

An iteration is a case, with a problem that is drawn here. On random Gaussian problems, for each
budget: ``score`` of the recommended setting, exact, and the ``least`` of settings that are drawn at
random, of all entries with all read-outs, exact, too.

Elsewhere (``KINDS``) what was ``predicted`` for the recommended rows, and what chains ``measured``,
with the reference in place of the fit; ``best``, what they measured for the first row, and
``least``, the least score of chains along the steps of six samplers, of agents or their average.
``doubted`` is 1 where the answer says that it cannot know.

``share.*`` are shares of the cases at the last iteration: in which the score is at most 1.3 times
the least, of those whose least is above 1e-5 (``near``); of problems that are not doubted
(``trusted``), and of those that are (``doubted``), predictions within a factor of two
(``predicted``), and recommended settings within a factor of two of the least (``recommended``). A
score of chains below ``RESOLUTION`` counts as that much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from concord import kinds, recommend
from concord.errors import ConcordError
from concord.laws.law import laws_of_versions
from concord.options import build, plain
from concord.problem import Problem, Quadratic
from concord.problems.from_options import NoDataSets
from concord.problems.gaussian_fit import fit
from concord.sampling.partition import Partition, PartitionChoice
from concord_arena import prices, scores
from concord_arena.entries import scale_entries
from concord_arena.question import READS, Question, Wish
from concord_arena.read_outs import bytes_of, read_out
from concord_arena.trials import TrialRunner
from concord_studies.metrics import Measurement, Row, yields

BUDGETS = ({"gradients": 100}, {"bytes": 6400}, {"gradients": 1000}, {"bytes": 64000})
TIMES = ({"seconds": 1.0}, {"seconds": 10.0})  # where the network has a clock
KINDS = {
    "counts": ("gamma_poisson", {"points": 16}),
    "rates": ("gamma_poisson", {"points": 24, "dim": 4}),
    "labels": ("logistic_regression", {"points": 40, "feature_variance": 1.0}),
    "more_labels": ("logistic_regression", {"points": 80, "feature_variance": 1.0}),
    "noise": ("unknown_noise", {}),
    "slightly_bent": ("banana", {"bend": 0.1, "heterogeneity": 1.0}),
    "schools": ("eight_schools", {}),
    "bent": ("banana", {"heterogeneity": 1.0}),
    "funnel": ("funnel", {"heterogeneity": 1.0}),
    "two_modes": ("tied_mixture", {"points": 40, "modes": "two", "grid": 160}),
}
VECTORS = (120, 600)  # that an agent may send
RIVALS = ("de_sgld", "de_sghmc", "extra_sgld", "diging_sgld", "local_sgld_one_step", "d_mala")
CHAINS = 200  # of brute force
RESOLUTION = 5e-3  # the least b2 that chains tell
# How good an answer is to be, and the least b2 at which that is asked.
NEARLY, LEAST_SCORE = 1.3, 1e-5
SETTINGS, DRAWS_NEAR, FINER = 48, 12, 4  # of brute force: drawn of each, around minima, what leads
FEW = ("de_sgld", "extra_sgld")  # of a single case, as at smoke scale


@yields(("score.*", "least.*", "predicted.*", "measured.*", "best.*", "doubted.*", "share.*"))
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the metrics, cases as iterations."""
    gaussian = isinstance(m.problem, Quadratic)
    shares: dict[str, list[bool]] = {}
    for case in range(1, m.iterations + 1):
        for name, agent, value, holds_by_share in (_exact_case if gaussian else _sampled_case)(
            m, case
        ):
            for share, holds in holds_by_share.items():
                shares.setdefault(share, []).append(bool(holds))
            yield Row(case, agent, name, float(value), chance=False)
    for share, holds_in_cases in shares.items():
        yield Row(
            m.iterations, "network", f"share.{share}", float(np.mean(holds_in_cases)), chance=False
        )
        yield Row(
            m.iterations, "network", f"share.{share}_cases", len(holds_in_cases), chance=False
        )


Number = tuple[str, str, float, dict[str, bool]]


def _exact_case(m: Measurement, case: int) -> Iterator[Number]:
    """Yield the numbers of a random Gaussian problem, and which shares of cases they count to."""
    lossless = m.network.is_lossless
    rng = m.stream(f"fresh case {case}")
    dim = int(rng.integers(1, 4 if lossless else 2))
    options = {
        "dim": dim, "condition": float(10 ** rng.uniform(0, 2.5)),
        "heterogeneity": float(10 ** rng.uniform(-1, 1.5)),
        "curvature_heterogeneity": float(rng.uniform(0, 0.9)) if rng.random() < 0.5 else 0.0,
    }  # fmt: skip
    problem = _build_problem("gaussian", options, m, case)
    single = m.iterations == 1
    clocked = m.network.conditions.keeps_time
    every: Sequence[Mapping[str, float]] = BUDGETS if lossless else BUDGETS[:2]
    every = TIMES if clocked else every
    budgets = every[:1] if single else every
    names = FEW if single else None
    least = _search_randomly(m, problem, budgets, names, case)
    for budget, best in zip(budgets, least, strict=True):
        ((price, amount),) = budget.items()
        wish = {"budget": budget, "initial": _initial_law(m), "samplers": names, "by": "b2"}
        score = float(recommend(problem, m.network, **wish).table["b2"][0])
        name = f"{price}_{amount:g}"
        holds = {"near": score <= NEARLY * best} if best > LEAST_SCORE else {}
        yield f"least.{name}", "worst", best, holds
        yield f"score.{name}", "worst", score, {}


def _search_randomly(
    m: Measurement, problem: Problem, budgets: Any, names: Any, case: int
) -> list[float]:
    """Return the least b2 by budget at settings of every entry that are drawn, with all read-outs.

    Steps are log-uniform over eighteen octaves around those at which the arena's searches begin,
    second options those of the arena and as many between them. Around minima of the ``FINER`` best
    (setting, read-out) of each budget more are drawn, three times. Nothing of the search is used.
    """
    rng, gaussian = m.stream(f"fresh case {case}, brute force"), fit(problem)
    searches = []
    for entry in scale_entries(gaussian, names)[0]:
        with suppress(ConcordError):  # refused, or without a law
            entry.sampler.check(problem, m.network)
            for second in _second_options(entry, rng):
                searches.append(RandomSettings(m, problem, budgets, entry, second, rng))
    for _ in range(3):
        chosen: dict[int, set[tuple[int, Any]]] = {}
        for budget in range(len(budgets)):
            leads = [
                (float(b2.min()), place, (budget, read))
                for place, drawn in enumerate(searches)
                for (of, read), b2 in drawn.b2.items()
                if of == budget
            ]
            leads.sort(key=lambda lead: lead[:2])
            for _, place, by in leads[:FINER]:
                chosen.setdefault(place, set()).add(by)
        for place, leading in chosen.items():
            searches[place].draw_near_minima(leading, rng)
    every = [(of, b2.min()) for drawn in searches for (of, _), b2 in drawn.b2.items()]
    return [float(min(b2 for of, b2 in every if of == place)) for place in range(len(budgets))]


def _second_options(entry: Any, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return values of an entry's second option, those stated and as many between them."""
    if not entry.second:
        return [{}]
    ((name, stated),) = entry.second.items()
    between = np.exp(rng.uniform(np.log(min(stated)), np.log(max(stated)), len(stated)))
    drawn = between.round().astype(int) if isinstance(stated[0], int) else between
    return [{name: value} for value in dict.fromkeys([*stated, *drawn.tolist()])]


class RandomSettings:
    """An entry's settings with one value of its second option, and their b2 by (budget, read-out).

    octaves: log2 of the tuned option over its stated value, increasing; b2: at these.
    """

    def __init__(
        self,
        m: Measurement,
        problem: Problem,
        budgets: Any,
        entry: Any,
        second: dict[str, Any],
        rng: np.random.Generator,
    ) -> None:
        """Draw the first settings."""
        stated = plain(entry.sampler)
        begin, kind = stated[entry.tune], type(entry.sampler)
        self._sampler = lambda u: build(kind, {**stated, **second, entry.tune: begin * 2.0**u}, "")
        self._m, self._problem, self._ends = m, problem, {}
        price = prices.price_per_iteration(self._sampler(0.0), problem, m.network, rng)
        for read in READS:
            with suppress(ConcordError):  # more than the network can do
                mix, vectors = read_out(read, m.network)
                paid = {**price, "bytes": price["bytes"] + bytes_of(vectors, problem)}
                counts = {
                    place: int(amount / paid[name])
                    for place, budget in enumerate(budgets)
                    for name, amount in budget.items()
                    if paid[name] and amount >= paid[name]
                }
                if counts:
                    self._ends[read] = mix, counts
        self.octaves = np.empty(0)
        self.b2 = {
            (place, read): np.empty(0)
            for read, (_, counts) in self._ends.items()
            for place in counts
        }
        if self._ends:
            self._draw(rng.uniform(-13, 5, SETTINGS))

    def draw_near_minima(self, by: Any, rng: np.random.Generator) -> None:
        """Draw settings around the three least minima of some budgets and read-outs."""
        octaves_near: list[float] = []
        for one in by:
            b2 = np.concatenate([[np.inf], self.b2[one], [np.inf]])
            places = np.flatnonzero((b2[1:-1] <= b2[:-2]) & (b2[1:-1] <= b2[2:]))
            last = len(self.octaves) - 1
            for j in sorted(places.tolist(), key=lambda j: self.b2[one][j])[:3]:
                ends = self.octaves[max(j - 1, 0)], self.octaves[min(j + 1, last)]
                octaves_near += rng.uniform(*ends, DRAWS_NEAR).tolist()
        self._draw(np.array(octaves_near))

    def _draw(self, octaves: np.ndarray) -> None:
        """Add the settings at some octaves, and their b2, in the order of octaves."""
        m, problem = self._m, self._problem
        runs = [self._sampler(u) for u in octaves], [problem] * len(octaves), m.network
        law = laws_of_versions(*runs, m.initial.moments(problem.dim))
        order = np.argsort(every := np.concatenate([self.octaves, octaves]))
        self.octaves = every[order]
        for read, (mix, counts) in self._ends.items():
            ks = sorted({*counts.values()})
            marginals = law.with_answers(mix).marginals_at(ks)
            b2 = scores.compute_bias(marginals, problem.posterior)["worst"]
            for place, k in counts.items():
                of_budget = np.nan_to_num(b2[ks.index(k)], nan=np.inf)
                self.b2[place, read] = np.concatenate([self.b2[place, read], of_budget])[order]


def _sampled_case(m: Measurement, case: int) -> Iterator[Number]:
    """Yield the numbers of a problem of ``KINDS``, and which shares of cases they count to."""
    single = m.iterations == 1
    title, (kind, options) = list(KINDS.items())[(case - 1) % len(KINDS)]
    problem = _build_problem(kind, options, m, case)
    for vectors in VECTORS[:1] if single else VECTORS:
        name, budget = f"{title}_{vectors}", {"bytes": vectors * 8 * problem.dim}
        wish = {"budget": budget, "initial": _initial_law(m), "samplers": FEW if single else None}
        answer = recommend(problem, m.network, **wish, by="b2", verify=True)
        assert answer.verified is not None  # as asked for
        doubted = bool(answer.trust)
        group = "doubted" if doubted else "trusted"
        yield f"doubted.{name}", "network", doubted, {}
        for place, row in answer.verified.iterrows():
            low, high = sorted(max(row[key], RESOLUTION) for key in ("predicted", "measured"))
            holds = {f"predicted_{group}": high <= 2 * low}
            yield f"predicted.{name}", str(place), row["predicted"], holds
            yield f"measured.{name}", str(place), row["measured"], {}
        best = float(answer.verified["measured"][0])
        least = _least_of_chains(m, problem, budget, FEW if single else RIVALS)
        holds = {f"recommended_{group}": max(best, RESOLUTION) <= 2 * max(least, RESOLUTION)}
        yield f"best.{name}", "worst", best, holds
        yield f"least.{name}", "worst", least, {}


def _least_of_chains(m: Measurement, problem: Problem, budget: Any, names: Any) -> float:
    """Return the least score of chains along entries' steps, of agents and of their average."""
    gaussian = fit(problem)
    trials = TrialRunner(
        _build_question(m, problem, gaussian, budget), CHAINS, seed=1, initial=_initial_law(m)
    )
    least = np.inf
    for entry in scale_entries(gaussian, names)[0]:
        with suppress(ConcordError):  # refused
            entry.sampler.check(problem, m.network)
            least = min([least, *(row.score for row in trials.best_of(entry))])
    return least


def _build_problem(kind: str, options: Any, m: Measurement, case: int) -> Problem:
    """Return the problem of a kind with the given options, its data drawn for the case."""
    module = kinds.find("problems", kind, "problem")
    params = build(module.Params, options, "problem")

    def stream(what: str) -> np.random.Generator:
        return m.stream(f"fresh case {case}, {what}")

    return module.build(
        params, m.network.agents, Partition(PartitionChoice("equal")), stream, NoDataSets()
    )


def _build_question(m: Measurement, problem: Problem, gaussian: Any, budget: Any) -> Question:
    """Return what ``recommend`` is asked for a problem and a budget."""
    positions = m.initial.moments(problem.dim)
    assert positions is not None
    asked = problem, m.network, positions, gaussian, Wish(budget, by="b2")
    return Question(*asked, lambda: m.stream("network"))


def _initial_law(m: Measurement) -> Any:
    """Return the law of initial positions of the run, as options of ``recommend``."""
    return {"kind": m.initial.kind, **plain(m.initial.params)}
