"""How good the answer of ``recommend`` is; of a run only network and start are looked at.

An iteration is a case, with a problem that is drawn here. On random Gaussian problems, for each
budget: ``score`` of the recommended setting, exact, and the least exact score of all entries with
all read-outs, at the arena's 36 settings each (``least_36``) and at 72 (``least_72``).

Elsewhere (``KINDS``) what was ``predicted`` for the recommended rows, and what chains ``measured``,
with the reference in place of the fit; ``best``, what they measured for the first row, and
``least``, the least score of chains along the steps of six samplers, of agents or their average.
``doubted`` is 1 where the answer says that it cannot know.

``share.*`` are shares of the cases at the last iteration: in which the score is at most
``least_36`` (``at_most_36``), at most 1.05 times ``least_72`` (``near_72``); of problems that are
not doubted (``trusted``), and of those that are (``doubted``), predictions within a factor of two
(``predicted``), and recommended settings within a factor of two of the least (``recommended``). A
score below ``SEEN`` counts as that much.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from concord import kinds
from concord.errors import ConcordError
from concord.options import build, plain
from concord.problem import Problem, Quadratic
from concord.problems.from_options import NoDataSets
from concord.problems.gaussian_fit import fit
from concord.sampling.partition import Partition, PartitionChoice
from concord_arena import recommendation as recommend
from concord_arena.answer import Search, Wish
from concord_studies.metrics import Measurement, Row

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
RIVALS = ("de_sgld", "de_sghmc", "extra_sgld", "diging_sgld", "atc_sgld", "d_mala")
CHAINS = 200  # of brute force
SEEN = 5e-3  # the least b2 that chains tell
ROUNDING = 1e-20  # b2 of what has no bias
FEW = ("de_sgld", "extra_sgld")  # of a single case, as at smoke scale

METRICS = ("score.*", "least_36.*", "least_72.*", "predicted.*", "measured.*", "best.*", "least.*",
           "doubted.*", "share.*")  # fmt: skip


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the metrics, cases as iterations."""
    gaussian = isinstance(m.problem, Quadratic)
    shares: dict[str, list[bool]] = {}
    for case in range(1, m.iterations + 1):
        for name, agent, value, kept in (_exact if gaussian else _sampled)(m, case):
            for share, holds in kept.items():
                shares.setdefault(share, []).append(bool(holds))
            yield Row(case, agent, name, float(value), chance=False)
    for share, held in shares.items():
        yield Row(m.iterations, "network", f"share.{share}", float(np.mean(held)), chance=False)
        yield Row(m.iterations, "network", f"share.{share}_cases", len(held), chance=False)


Told = tuple[str, str, float, dict[str, bool]]


def _exact(m: Measurement, case: int) -> Iterator[Told]:
    lossless = m.network.is_lossless
    rng = m.stream(f"fresh case {case}")
    dim = int(rng.integers(1, 4 if lossless else 2))
    options = {
        "dim": dim, "condition": float(10 ** rng.uniform(0, 2.5)),
        "heterogeneity": float(10 ** rng.uniform(-1, 1.5)),
        "curvature_heterogeneity": float(rng.uniform(0, 0.9)) if rng.random() < 0.5 else 0.0,
    }  # fmt: skip
    problem = _built("gaussian", options, m, case)
    single = m.iterations == 1
    clocked = m.network.conditions is not None and m.network.conditions.keeps_time
    every = TIMES if clocked else BUDGETS if lossless else BUDGETS[:2]
    budgets = every[:1] if single else every
    names = FEW if single else None
    least = _brute(m, problem, budgets, names)
    for budget, (few, many) in zip(budgets, least, strict=True):
        ((price, amount),) = budget.items()
        given = {"budget": budget, "initial": _start(m), "samplers": names, "by": "b2"}
        score = float(recommend.recommend(problem, m.network, **given).table["b2"][0])
        name = f"{price}_{amount:g}"
        holds = {"at_most_36": score <= few * (1 + 1e-9) + ROUNDING}
        yield f"least_36.{name}", "worst", few, holds
        yield f"least_72.{name}", "worst", many, {"near_72": score <= 1.05 * many + ROUNDING}
        yield f"score.{name}", "worst", score, {}


def _brute(m: Measurement, problem: Problem, budgets: Any, names: Any) -> np.ndarray:
    """Return the least scores by budget, of 36 settings and of 72: (budgets, 2)."""
    found = fit(problem)
    least = np.full((len(budgets), 2), np.inf)
    search = _search(m, problem, found, budgets[0])
    for entry in recommend._entries(found, names)[0]:
        try:
            entry.sampler.check(problem, m.network)
            for lattice in search.lattices(entry):
                half = 4 if entry.second else 2
                js = half // 2 * np.arange(1, 24 + 1 if entry.second else 72 + 1)
                path = search._law([lattice.sampler(int(j)) for j in js], True)
                for read in search.reads:
                    paid = search._paid(lattice.price, read)
                    amounts = [of for budget in budgets for of in budget.items()]
                    counts = [int(of / paid[price]) if paid[price] else 0 for price, of in amounts]
                    ks = sorted({k for k in counts if k >= 1})
                    b2 = search._scored(path, read, ks)["worst"] if ks else np.empty((0, 0))
                    for place, k in enumerate(counts):
                        if k >= 1:
                            own = b2[ks.index(k)]
                            both = own[js % half == 0].min(), own.min()
                            least[place] = np.minimum(least[place], both)
        except ConcordError:
            continue  # refused, or without a law
    return least


def _sampled(m: Measurement, case: int) -> Iterator[Told]:
    single = m.iterations == 1
    title, (kind, options) = list(KINDS.items())[(case - 1) % len(KINDS)]
    problem = _built(kind, options, m, case)
    for vectors in VECTORS[:1] if single else VECTORS:
        name, budget = f"{title}_{vectors}", {"bytes": vectors * 8 * problem.dim}
        given = {"budget": budget, "initial": _start(m), "samplers": FEW if single else None}
        answer = recommend.recommend(problem, m.network, **given, by="b2", verify=True)
        doubted = bool(answer.trust)
        group = "doubted" if doubted else "trusted"
        yield f"doubted.{name}", "network", doubted, {}
        for place, row in answer.verified.iterrows():
            low, high = sorted(max(row[key], SEEN) for key in ("predicted", "measured"))
            holds = {f"predicted_{group}": high <= 2 * low}
            yield f"predicted.{name}", str(place), row["predicted"], holds
            yield f"measured.{name}", str(place), row["measured"], {}
        best = float(answer.verified["measured"][0])
        least = _by_chains(m, problem, budget, FEW if single else RIVALS)
        holds = {f"recommended_{group}": max(best, SEEN) <= 2 * max(least, SEEN)}
        yield f"best.{name}", "worst", best, holds
        yield f"least.{name}", "worst", least, {}


def _by_chains(m: Measurement, problem: Problem, budget: Any, names: Any) -> float:
    """Return the least score of chains along entries' steps, of agents and of their average."""
    found = fit(problem)
    how = {"chains": CHAINS, "seed": 1, "initial": _start(m)}
    search = _search(m, problem, found, budget)
    least = np.inf
    for entry in recommend._entries(found, names)[0]:
        with suppress(ConcordError):  # refused
            least = min([least, *(row.score for row in recommend.by_chains(search, entry, how))])
    return least


def _built(kind: str, options: Any, m: Measurement, case: int) -> Problem:
    module = kinds.find("problems", kind, "problem")
    params = build(module.Params, options, "problem")

    def stream(what: str) -> np.random.Generator:
        return m.stream(f"fresh case {case}, {what}")

    return module.build(
        params, m.network.agents, Partition(PartitionChoice("equal")), stream, NoDataSets()
    )


def _search(m: Measurement, problem: Problem, found: Any, budget: Any) -> Search:
    positions = m.initial.moments(problem.dim)
    given = problem, m.network, positions, found, Wish(budget, by="b2")
    return Search(*given, lambda: m.stream("network"))


def _start(m: Measurement) -> Any:
    return {"kind": m.initial.kind, **plain(m.initial.params)}
