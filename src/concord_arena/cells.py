"""Score a cell of the arena: a task and an entry.

The entry's options are chosen on one data set, at each price's budget, and judged on others, from
the same distribution of starts. Rows of the metrics:

``b2_by_<price>``: b² (``arena.scores``) at the end of the budget, ``ergodic_b2_by_<price>``,
``w2_by_<price>``, ``mean_error_by_<price>``, ``covariance_error_by_<price>``: means over the data
sets (geometric, infinite where one is), with intervals; with ``_set_<d>`` of each. Of agents
``worst``, ``average`` and ``pooled``.
``<price>_to_<target>``: what is paid until b² stays at the target or below; infinite where it does
not. ``curve.<price>``: b² where so much is paid (``spent.<price>``).
``end_by_<price>``: 1 where the choice is the last that was tried, and a better one may lie beyond.
``sigma_by_<price>``: the noise of an arena whose ``epsilon`` is stated.
``status.<price>``: 1 solved some target, 0 none, -1 diverged, on each data set.
``chosen.<option>_by_<price>``, ``stable.<option>``: the choice, and the largest stable value;
``steps_by_<price>``: over what factor the tuned option may vary with at most twice the best score.
``stationary_b2``: that of the limit, of the first price's choice. ``applicable``: 0 where the
sampler refuses the task, -1 where it has no exact law and is not run. ``exact``: 1 where scores are
those of laws, 0 where they are estimated from chains.

``floor.b2_by_<price>``: of scores that are estimated from chains, what they are never less than.

``log_predictive_by_<price>``: where rows are held out, the log of their density over the law, with
that over the posterior (``_exact``); means over the data sets.

Of chains, where no law is known: ``w1_by_<price>``, ``sliced_w2_by_<price>``,
``coverage_<level>_by_<price>`` in place of what is Gaussian, and what the families of the run's
``metrics`` say; means over the data sets. Where no posterior is known ``log_loss_by_<price>`` takes
the place of ``b2_by_<price>``, and no targets are set.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from concord import streams
from concord.errors import ConcordError
from concord.laws.exact import Marginals
from concord.laws.gaussian import Gaussian
from concord.laws.intervals import mean_interval, widen
from concord.laws.law import laws_of_versions
from concord.laws.paths import FOREVER
from concord.laws.paths import Path as Laws
from concord.laws.read_off import NoLaw
from concord.networks.network import Network
from concord.problem import Problem
from concord.sampler import Sampler
from concord_arena import prices, scores
from concord_arena.chains import Chains, known
from concord_arena.read_outs import bytes_of, read_out
from concord_arena.tuning import SETTINGS, WIDER, Setting, between, beyond, settings
from concord_studies.contracts import HeldOut
from concord_studies.intervals import over_chains
from concord_studies.metrics import Row
from concord_studies.privacy import sigma
from concord_studies.runs.keys import Arena
from concord_studies.runs.run import Run

PER_OCTAVE, PER_OCTAVE_OF_TUNING = 4, 2
TUNING = 4  # of so many chains one is tuned with


class Scored(NamedTuple):
    """The rows of a cell's metrics, and the choice of settings with its reasons."""

    rows: list[Row]
    choice: dict[str, Any]


class Task(NamedTuple):
    """A network with problems: the first to choose settings on, the others to judge on.

    names: of the streams of each problem. kept: what scores of all entries share.
    """

    problems: list[Problem]
    names: list[str]
    network: Network
    masks: Any
    kept: dict[Any, Any]


_OF_PROBLEMS = ("paper", "problem", "partition", "agents")
# Of the last task, and what is kept of them.
_problems: dict[tuple[Any, str], tuple[list[Problem], dict[Any, Any]]] = {}

# A group of settings, where they go, and what an iteration of them costs.
Tried = tuple[list[Setting], Laws | Chains, Mapping[str, float]]
# The choice, what an iteration of it costs, and what is told of it.
_Tuned = tuple[Setting, Mapping[str, float], dict[str, Any]]


def build_task(run: Run, resources: Path) -> Task:
    """Return the task of a run, the same for all entries: problems, network and events.

    Of runs after each other whose problems are the same these are the same objects, so that what is
    known of a posterior is computed once.
    """
    assert run.arena is not None

    def masks() -> np.random.Generator:
        """Return the generator of the network's random events, the same for every entry."""
        return streams.generator(run.seed, "network", run.paper, run.problem_name)

    own = run.problem_name
    names = [own, *(f"{own}/{number + 1}" for number in range(run.arena.sets))]
    module, document = run.problem.module, run.document
    stated = [run.seed, run.data_digest(), *(document[key] for key in _OF_PROBLEMS)]
    known_as = module, json.dumps([names, stated], sort_keys=True)
    if known_as not in _problems:
        _problems.clear()
        _problems[known_as] = [run.build_problem(resources, name) for name in names], {}
    problems, kept = _problems[known_as]
    return Task(problems, names, run.network_of_agents, masks, kept)


def score(run: Run, task: Task) -> Scored:
    """Choose an entry's setting for each budget on a task, and score it on the judging data."""
    sampler, arena = run.sampler.params, run.arena
    assert arena is not None
    last, first = run.iterations, task.problems[0]
    try:
        sampler.check(first, task.network)
        mix, vectors = read_out(arena.read, task.network)
        prices.try_step(sampler, first, task.network, task.masks())
    except ConcordError as error:
        return Scored([_network(0, "applicable", 0.0)], {"not applicable": str(error)})
    where = f"{run.experiment}.arena"
    groups, limits = settings(sampler, arena, first, task.network, where)
    positions = run.initial.moments(task.problems[0].dim)
    seeks = arena.aim is not None and arena.tune is not None and arena.share is None
    count = SETTINGS if seeks else sum(len(group) for group in groups)
    runs = count + 1 if arena.paid and count > 1 else 1

    def path_of(
        names: Sequence[str],
        problems: Sequence[Problem],
        samplers: Sequence[Sampler],
        network: Network,
        share: int = 1,
    ) -> Laws | Chains | None:
        """Return the laws of versions, or their chains where no law is known; None if neither."""
        try:
            return laws_of_versions(samplers, problems, network, positions, mix)
        except NoLaw:
            if not arena.sampled:
                return None
        named = list(zip(names, problems, strict=True))
        fewer = replace(run, chains=max(run.chains // share, 2))
        return Chains(samplers, named, network, fewer, run.initial, mix, task.kept)

    def tries(group: list[Setting]) -> Tried | None:
        """Return settings with the path of their laws and their price; None without any law."""
        own, size = [setting.sampler for setting in group], len(group)
        price = prices.price_per_iteration(own[0], first, task.network, task.masks())
        price["bytes"] += bytes_of(vectors, first)
        price = {name: runs * paid for name, paid in price.items()}
        names, problems = task.names[:1] * size, task.problems[:1] * size
        path = path_of(names, problems, own, network_of(own[0], price), TUNING)
        return None if path is None else (group, path, price)

    def network_of(sampler: Sampler, price: Mapping[str, float]) -> Network:
        """Return the task's network, with the privacy noise for which the budget spends epsilon."""
        if arena.epsilon is None:
            return task.network
        network = task.network
        privacy = network.conditions.privacy
        assert privacy is not None
        ((name, budget),) = arena.budget.items()
        each = prices.most_broadcasts(sampler, first, network, task.masks())
        sent = max(math.ceil(each * prices.count_iterations({name: budget}, price, last) - 1e-9), 1)
        noise = sigma(arena.epsilon, privacy.delta, privacy.clip, sent)
        hidden = msgspec.structs.replace(privacy, sigma=noise)
        conditions = msgspec.structs.replace(network.conditions, privacy=hidden)
        return Network(network.graph, conditions)

    tried = [one for one in map(tries, groups) if one is not None]
    if len(tried) < len(groups):
        why = "no exact law is known, and nothing is sampled"
        return Scored([_network(0, "applicable", -1.0)], {"not run": why})
    by_law = all(isinstance(path, Laws) for _, path, _ in tried)
    rows = [_network(last, "applicable", 1.0), _network(last, "exact", float(by_law))]
    if arena.tune is not None:
        rows.append(
            _network(last, f"stable.{arena.tune}", max(limits, default=np.nan, key=np.nan_to_num))
        )
    open_above = [
        {k: v for k, v in group[0].values.items() if k != arena.tune}
        for group, limit in zip(groups, limits, strict=True)
        if np.isinf(limit)
    ]
    choice: dict[str, Any] = {}
    judged: dict[str, Laws | Chains] = {}  # by what is chosen: often the same for several prices
    for name, budget in arena.budget.items():
        found = _tuned(tried, name, budget, arena, task, last)
        wider = list(tried)
        if found and seeks:
            more = tries(between(arena, found[0], where))
            assert more is not None
            found = _tuned([*tried, more], name, budget, arena, task, last)
        elif arena.tune is not None and arena.share is None and not arena.paid:
            for _ in range(WIDER):
                if found is None or not (end := _end(found, open_above)):
                    break
                more = tries(beyond(arena, found[0], end == "largest", where))
                assert more is not None
                wider.append(more)
                found = _tuned(wider, name, budget, arena, task, last)
        if found is None:
            choice[name] = {"not applicable": f"an iteration costs no {name}"}
            continue
        setting, paid, about = found
        choice[name] = about
        for option, value in setting.values.items():
            if isinstance(value, (int, float)):
                rows.append(_network(last, f"chosen.{option}_by_{name}", float(value)))
        rows.append(_network(last, f"steps_by_{name}", about["within twice the best"]))
        if arena.tune is not None and arena.share is None:
            rows.append(_network(last, f"end_by_{name}", float(bool(_end(found, open_above)))))
        network = network_of(setting.sampler, paid)
        if arena.epsilon is not None:
            assert network.conditions.privacy is not None
            about["sigma"] = network.conditions.privacy.sigma
            rows.append(_network(last, f"sigma_by_{name}", about["sigma"]))
        chosen = f"{setting.sampler} {network.conditions}"
        if chosen not in judged:
            every = [setting.sampler] * arena.sets
            own = path_of(task.names[1:], task.problems[1:], every, network)
            assert own is not None
            judged[chosen] = own
        path = judged[chosen]
        rows += _judged(path, task, arena, name, budget, paid, run)
        if name == next(iter(arena.budget)) and isinstance(path, Laws):
            rows += _limit(path, task)
    return Scored(rows, choice)


def _network(k: int, metric: str, value: float) -> Row:
    """Return the row of a number of the network that no chance enters."""
    return Row(k, "network", metric, value, chance=False)


def _end(found: _Tuned, open_above: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the end of the values tried, "least" or "largest", at which the choice lies; or None.

    None where all diverge, too. ``open_above``: values of the second option with which all of the
    first are stable.
    """
    setting, _, about = found
    if about["diverged"] == about["settings"]:
        return None
    if about["least value tried"]:
        return "least"
    second = any(other.items() <= setting.values.items() for other in open_above)
    return "largest" if about["largest value tried"] and second else None


def _tuned(
    tried: Sequence[Tried],
    name: str,
    budget: float,
    arena: Arena,
    task: Task,
    last: int,
) -> _Tuned | None:
    """Return the setting with the least score at a budget, its price, and the reasons."""
    all_scores: list[float] = []
    all_paid: list[float] = []
    all_settings: list[Setting] = []
    all_prices: list[Mapping[str, float]] = []
    for group, path, price in tried:
        if not price[name]:
            continue
        k = prices.count_iterations({name: budget}, price, last)
        b2 = np.full((1, len(group)), np.inf)
        if k >= 1:
            due = [k] if arena.aim is None else _looks(k, PER_OCTAVE_OF_TUNING)
            b2 = _bias(path, due, [task.problems[0]] * len(group))[arena.level]
            if arena.aim is not None:
                paid = np.append(np.array(due) * price[name], np.inf)
                all_paid += paid[scores.solved_at(b2, arena.aim)].tolist()
        all_scores += b2[-1].tolist()
        all_settings += group
        all_prices += [price] * len(group)
    if not all_scores:
        return None
    score = "b2" if known(task.problems[0]) else "log_loss"
    reason = f"least {score} of {arena.level} after {budget:g} {name}"
    if np.isfinite(all_paid).any():
        score, all_scores = "price", all_paid
        reason = f"least {name} until b2 of {arena.level} stays below {arena.aim:g}"
    elif arena.aim is not None:
        reason += f", since none stays below {arena.aim:g}"
    best = int(np.argmin(all_scores))
    chosen, own = all_settings[best], all_scores[best]
    second = {k: v for k, v in chosen.values.items() if k != arena.tune}
    alike = [
        (setting.values[arena.tune], value)
        for setting, value in zip(all_settings, all_scores, strict=True)
        if arena.tune is not None and all(setting.values[k] == v for k, v in second.items())
    ]
    near = [step for step, value in alike if value <= 2 * own]
    about = {
        "chosen": {
            k: v if isinstance(v, (int, str, bool)) else float(v) for k, v in chosen.values.items()
        },
        "reason": reason,
        score: own,
        "settings": len(all_scores),
        "values tried": [f(float(s) for s, _ in alike) for f in (min, max)] if alike else [],
        "diverged": sum(not np.isfinite(value) for value in all_scores),
        "least value tried": len(alike) > 1 and chosen.values[str(arena.tune)] == min(alike)[0],
        "largest value tried": len(alike) > 1 and chosen.values[str(arena.tune)] == max(alike)[0],
        "within twice the best": float(max(near) / min(near)) if near else 1.0,
        "iterations": prices.count_iterations({name: budget}, all_prices[best], last),
        "price of an iteration": dict(all_prices[best]),
    }
    return chosen, all_prices[best], about


def _looks(end: int, per_octave: int) -> list[int]:
    """Return the iterations up to ``end`` at which scores are read, ``end`` included.

    They are ``per_octave`` to twice that times powers of two, so that one power of an update leads
    from each to the next.
    """
    octaves = range(end.bit_length())
    found = {(per_octave + part) << octave for octave in octaves for part in range(per_octave)}
    return sorted(k for k in {*range(1, per_octave), *found, end} if k <= end)


def _bias(
    path: Laws | Chains, due: Sequence[int], problems: Sequence[Problem]
) -> dict[str, np.ndarray]:
    """Return b² by level, each (iterations, versions), of laws or chains at iterations ``due``."""
    return path.bias(due) if isinstance(path, Chains) else _of_law(path.marginals_at(due), problems)


def _of_law(seen: Marginals, problems: Sequence[Problem]) -> dict[str, np.ndarray]:
    """Return b² of laws by level, (iterations, versions), each against its problem's posterior."""
    if all(problem is problems[0] for problem in problems):
        return scores.bias(seen, _posterior(problems[0]))
    each = [
        scores.bias(seen.select(np.s_[:, v]), _posterior(problem))
        for v, problem in enumerate(problems)
    ]
    return {level: np.stack([one[level] for one in each], axis=1) for level in scores.LEVELS}


def _posterior(problem: Problem) -> Gaussian:
    """Return a problem's Gaussian posterior, which must exist."""
    assert problem.posterior is not None  # laws are of Gaussian problems
    return problem.posterior


def _judged(
    path: Laws | Chains,
    task: Task,
    arena: Arena,
    name: str,
    budget: float,
    price: Mapping[str, float],
    run: Run,
) -> Iterator[Row]:
    """Yield the scores of the chosen setting on the judging data sets."""
    last, judges = run.iterations, task.problems[1:]
    score = "b2" if known(judges[0]) else "log_loss"
    end = prices.count_iterations({name: budget}, price, last)
    if end < 1:  # too dear: it stays where it starts
        yield from _scores(last, f"{score}_by_{name}", _ends(_bias(path, [0], judges)))
        for number in range(arena.sets):
            yield _network(last, f"status.{name}_set_{number + 1}", 0.0)
        return
    due = _looks(end, PER_OCTAVE)
    if isinstance(path, Laws):
        seen = path.marginals_at(due)
        b2 = _of_law(seen, judges)
        final = _ends(b2)
        yield from _scores(last, f"b2_by_{name}", final)
        yield from _parts(path, seen, end, judges, name, last, final)
    else:
        b2, more = path.told(due, run.metrics)
        final = _ends(b2)
        yield from _scores(last, f"{score}_by_{name}", final)
        for metric, levels in more.items():
            if metric in ("ergodic_b2", "floor.b2"):
                yield from _scores(last, f"{metric}_by_{name}", levels)
                continue
            for level, values in levels.items():
                yield _mean(last, level, f"{metric}_by_{name}", values)
    if score != "b2":
        return
    paid = np.append(np.array(due) * price[name], np.inf)
    for target in scores.TARGETS:
        first = {level: scores.solved_at(values, target) for level, values in b2.items()}
        hit = {level: paid[places] for level, places in first.items()}
        yield from _scores(last, f"{name}_to_{target:g}", hit)
    worst = final[arena.level]
    solved = np.where(worst <= max(scores.TARGETS), 1, np.where(np.isfinite(worst), 0, -1))
    for number, value in enumerate(solved):
        yield _network(last, f"status.{name}_set_{number + 1}", float(value))
    if arena.curve:
        for row, k in enumerate(due):
            yield _network(k, f"spent.{name}", k * price[name])
            of_row = {level: values[row] for level, values in b2.items()}
            yield from _scores(k, f"curve.{name}", of_row, each=False)


def _ends(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the last values along the first axis, by level."""
    return {level: of[-1] for level, of in values.items()}


def _parts(
    path: Laws,
    seen: Marginals,
    end: int,
    problems: Sequence[Problem],
    name: str,
    last: int,
    final: Mapping[str, np.ndarray],
) -> Iterator[Row]:
    """Yield a law's further metrics at the end of the budget; infinite where b² is."""

    def lost(values: Sequence[Any], level: str) -> dict[str, np.ndarray]:
        """Return values by level, infinite where the final b² is infinite."""
        numbers = np.array(values, dtype=float)
        return {level: np.where(np.isposinf(final[level]), np.inf, numbers)}

    targets = [_posterior(problem) for problem in problems]
    averaged = path.time_average(end)
    if averaged is not None:
        over = [scores.ergodic(averaged.select(v), target) for v, target in enumerate(targets)]
        for level in scores.LEVELS:
            values = lost([one[level] for one in over], level)
            yield from _scores(last, f"ergodic_b2_by_{name}", values)
    ends = [seen.select((-1, v)) for v in range(len(targets))]
    parts = [scores.distance(*pair) for pair in zip(ends, targets, strict=True)]
    for level in ("worst", "average"):
        for what in parts[0][level]:
            values = lost([one[level][what] for one in parts], level)
            yield from _scores(last, f"{what}_by_{name}", values, each=False)
    tested = [p for p in problems if isinstance(p, HeldOut) and p.test is not None]
    if len(tested) == len(problems):
        yield from _predicted(f"log_predictive_by_{name}", ends, tested, last, final)


def _predicted(
    metric: str,
    ends: Sequence[Marginals],
    problems: Sequence[Any],
    last: int,
    final: Mapping[str, np.ndarray],
) -> Iterator[Row]:
    """Yield the log predictive density of held-out rows, of agents, average, and the posterior."""
    found: dict[str, list[float]] = {"worst": [], "average": [], "network": []}
    for seen, problem in zip(ends, problems, strict=True):
        exact = _posterior(problem)
        every = (seen.mean, seen.cov), seen[2:], (exact.mean, exact.cov)
        for values, moments in zip(found.values(), every, strict=True):
            with np.errstate(all="ignore"):
                values.append(float(problem.held_out_log_density(*moments).mean(axis=-1).min()))
    for level in ("worst", "average"):
        lost = np.isposinf(final[level])
        yield _mean(last, level, metric, np.where(lost, -np.inf, found[level]))
    yield _mean(last, "network", f"{metric}_exact", np.array(found["network"]))


def _limit(path: Laws, task: Task) -> Iterator[Row]:
    """Yield the b² of the stationary law, where the update repeats."""
    seen = path.limit()
    if seen is not None:
        values = _ends(_of_law(seen.select(None), task.problems[1:]))
        yield from _scores(FOREVER, "stationary_b2", values)


def _mean(k: int, level: str, metric: str, values: np.ndarray) -> Row:
    """Return the row of a mean over data sets with its interval."""
    return Row(k, level, metric, *over_chains(values), trials=len(values))


def _scores(
    k: int, metric: str, values: Mapping[str, np.ndarray], each: bool = True
) -> Iterator[Row]:
    """Yield the geometric mean over data sets with its interval, and each set's number."""
    for level, of_sets in values.items():
        if len(of_sets) == 1:
            yield Row(k, level, metric, float(of_sets[0]), chance=False)
            continue
        with np.errstate(all="ignore"):
            logs = np.log(np.maximum(of_sets, 1e-300))
            mean, *ends = (np.exp(end) for end in mean_interval(logs))
        lo, hi = (float(end) for end in widen(mean, *ends))
        yield Row(k, level, metric, float(mean), lo, hi, trials=len(of_sets))
        for number, value in enumerate(of_sets if each else ()):
            yield Row(k, level, f"{metric}_set_{number + 1}", float(value), chance=False)
