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
``chosen.<option>_by_<price>``, ``stable.<option>``: the choice, and the largest stable value on the
graph alone, whatever happens on the network;
``steps_by_<price>``: over what factor the tuned option may vary with at most twice the best score.
``stationary_b2``: that of the limit, of the first price's choice. ``applicable``: 0 where the
sampler refuses the task, -1 where it has no exact law and is not run. ``exact``: 1 where scores are
those of laws, 0 where they are estimated from chains.

``floor.b2_by_<price>``: of scores that are estimated from chains, what they are never less than.

``log_predictive_by_<price>``: where rows are held out, the log of their density over the law, with
that over the posterior (``_exact``); means over the data sets.

Of chains, where no law is known: ``w1_by_<price>``, ``sliced_w2_by_<price>``,
``coverage_<level>_by_<price>`` in place of what is Gaussian, and what the families of the run's
``metrics`` say; means over the data sets. Where no posterior is known predictions are scored:
``nll_by_<price>`` takes the place of ``b2_by_<price>``, ``ece_by_<price>`` and
``accuracy_by_<price>`` stand beside it, of agents ``each``, too (the mean of their scores), and no
targets are set.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from concord import streams
from concord.errors import ConcordError
from concord.laws.intervals import mean_interval, widen
from concord.laws.paths import FOREVER
from concord.laws.read_off import NoLaw
from concord.networks.network import Network
from concord.problem import Problem
from concord.sampler import Algorithm
from concord_arena import prices, scores
from concord_arena.chains import Chains
from concord_arena.laws import Laws
from concord_arena.read_outs import bytes_of, read_out
from concord_arena.scores import Levels
from concord_arena.tuning import (
    SETTINGS,
    WIDER,
    Setting,
    count_settings,
    extend,
    group_settings,
    has_posterior,
    refine,
)
from concord_studies.intervals import mean_over_chains
from concord_studies.metrics import Row
from concord_studies.metrics.epsilon import sigma
from concord_studies.runs.run import Run

PER_OCTAVE, PER_OCTAVE_OF_TUNING = 4, 2  # scores that are looked at
TUNING = 4  # of so many chains one is tuned with
# Metrics whose mean over data sets is geometric, and those with each set's number besides.
EACH = ("ergodic_b2", "floor.b2", "ece")
GEOMETRIC = (*EACH, "w2", "mean_error", "covariance_error")


class Scored(NamedTuple):
    """A cell's score: rows of metrics, and the setting chosen for each price with its reasons."""

    rows: list[Row]
    choice: dict[str, Any]


class Task(NamedTuple):
    """A network with problems: the first to choose settings on, the others to judge on.

    stream_names: the name of each problem's random streams. event_rng: returns a new generator of
    the events on the network. cache: reference draws and floors, shared by the scores of entries.
    """

    problems: list[Problem]
    stream_names: list[str]
    network: Network
    event_rng: Callable[[], np.random.Generator]
    cache: dict[Any, Any]


_OF_PROBLEMS = ("paper", "problem", "partition", "agents")
# Of the last task, and what scores of them share.
_problems: dict[tuple[Any, str], tuple[list[Problem], dict[Any, Any]]] = {}


def build_task(run: Run, resources: Path) -> Task:
    """Return the task of a run, the same for all entries: problems, network and events.

    Tasks built in a row on the same problems share the problem objects, so that their posteriors
    are computed once. resources: the folder of downloaded data.
    """
    assert run.arena is not None

    def event_rng() -> np.random.Generator:
        """Return a new generator of the events on the network."""
        return streams.generator(run.seed, "network", run.paper, run.problem.name)

    problem_name = run.problem.name
    names = [problem_name, *(f"{problem_name}/{number + 1}" for number in range(run.arena.sets))]
    module, document = run.problem.module, run.document
    stated = [run.seed, run.data_digest(), *(document[key] for key in _OF_PROBLEMS)]
    known_as = module, json.dumps([names, stated], sort_keys=True)
    if known_as not in _problems:
        _problems.clear()
        _problems[known_as] = [run.build_problem(resources, name) for name in names], {}
    problems, cache = _problems[known_as]
    return Task(problems, names, run.network_of_agents, event_rng, cache)


class Group(NamedTuple):
    """Settings that are tried together, their laws or chains, and the price of an iteration."""

    settings: list[Setting]
    laws: Laws | Chains
    price: Mapping[str, float]


class ScoredSetting(NamedTuple):
    """A setting with its score at a budget.

    price: of an iteration, by unit. paid: the price until b² stays below the arena's ``aim``.
    """

    setting: Setting
    price: Mapping[str, float]
    score: float
    paid: float


class Chosen(NamedTuple):
    """The setting chosen at a budget; ``about`` holds the reason and the numbers to report."""

    setting: Setting
    price: Mapping[str, float]
    about: dict[str, Any]


def score(run: Run, task: Task) -> Scored:
    """Choose an entry's setting for each budget on a task, and score it on the judging problems."""
    sampler, arena = run.sampler.params, run.arena
    assert arena is not None
    try:
        sampler.check(task.problems[0], task.network)
        read = read_out(arena.read, task.network)
        prices.try_step(sampler, task.problems[0], task.network, task.event_rng())
    except ConcordError as error:
        return Scored([_row_of_network(0, "applicable", 0.0)], {"not applicable": str(error)})
    cell = _Cell(run, task, *read)
    try:
        groups = [cell.group(settings) for settings in cell.settings]
    except NoLaw:
        why = "no exact law is known, and nothing is sampled"
        return Scored([_row_of_network(0, "applicable", -1.0)], {"not run": why})
    last, exact = run.iterations, all(group.laws.exact for group in groups)
    rows = [_row_of_network(last, "applicable", 1.0), _row_of_network(last, "exact", float(exact))]
    if arena.tune is not None:
        most = max(cell.limits, default=np.nan, key=np.nan_to_num)
        rows.append(_row_of_network(last, f"stable.{arena.tune}", most))
    choice: dict[str, Any] = {}
    for unit in arena.budget:
        chosen = cell.choose(groups, unit)
        if chosen is None:
            choice[unit] = {"not applicable": f"an iteration costs no {unit}"}
            continue
        choice[unit] = chosen.about
        rows += cell.judge(chosen, unit)
    return Scored(rows, choice)


class _Cell:
    """An entry on a task, whose settings are chosen and judged for each unit of cost in its budget.

    settings: groups of settings to try, one for each value of a second option. limits: the largest
    stable value of the tuned option in each group. ``unit``: gradients, bytes or seconds.
    ``price``: what an iteration costs, by unit.
    """

    def __init__(self, run: Run, task: Task, mix: np.ndarray | None, vectors: float) -> None:
        """Prepare the search; ``mix``, ``vectors``: the matrix and cost of ``read_out``."""
        assert run.arena is not None
        self._run, self._task, self._arena, self._mix = run, task, run.arena, mix
        self._where, self._last = f"{run.experiment}.arena", run.iterations
        self._first, arena = task.problems[0], run.arena
        self._read_bytes = bytes_of(vectors, self._first)
        self.settings, self.limits = group_settings(
            run.sampler.params, arena, self._first, task.network, self._where
        )
        self._tunes = arena.tune is not None and arena.share is None
        self._seeks = self._tunes and arena.aim is not None
        self._metric = "b2" if has_posterior(self._first) else "nll"
        count = SETTINGS if self._seeks else sum(map(len, self.settings))
        self._runs = count + 1 if arena.paid and count > 1 else 1  # that the budget pays for
        self._judges: dict[str, Laws | Chains] = {}  # often the same for several prices

    def group(self, settings: list[Setting]) -> Group:
        """Return settings with laws or chains that score them; raise ``NoLaw`` without either."""
        sampler, task, size = settings[0].sampler, self._task, len(settings)
        # The largest setting may diverge: bytes that depend on what is sent then have no mean.
        priced = (
            prices.price_per_iteration(one.sampler, self._first, task.network, task.event_rng())
            for one in settings
        )
        never = dict.fromkeys(self._arena.budget, math.inf) | {"bytes": math.inf}
        price = next((p for p in priced if all(map(math.isfinite, p.values()))), never)
        price["bytes"] += self._read_bytes
        price = {unit: self._runs * paid for unit, paid in price.items()}
        named = [(task.stream_names[0], self._first)] * size
        samplers, network = [setting.sampler for setting in settings], self._network(sampler, price)
        return Group(settings, self._make_laws(named, samplers, network, TUNING), price)

    def _make_laws(
        self,
        named: Sequence[tuple[str, Problem]],
        samplers: Sequence[Algorithm],
        network: Network,
        share: int = 1,
    ) -> Laws | Chains:
        """Return the laws of samplers, each on its named problem; chains where no law is known.

        share: the factor by which there are fewer chains than in the run.
        """
        run, problems = self._run, [problem for _, problem in named]
        try:
            positions = run.initial.moments(self._first.dim)
            return Laws(samplers, problems, network, positions, self._mix)
        except NoLaw:
            if not self._arena.sampled:
                raise
        fewer = run.vary(chains=max(run.chains // share, 2))
        return Chains(samplers, named, network, fewer, self._mix, self._task.cache)

    def _network(self, sampler: Algorithm, price: Mapping[str, float]) -> Network:
        """Return the task's network, with the privacy noise that spends epsilon over the budget."""
        network, epsilon = self._task.network, self._arena.epsilon
        if epsilon is None:
            return network
        privacy = network.conditions.privacy
        assert privacy is not None
        (unit,) = self._arena.budget
        each = prices.max_broadcasts(sampler, self._first, network, self._task.event_rng())
        sent = max(math.ceil(each * self._count(unit, price) - 1e-9), 1)
        noise = sigma(epsilon, privacy.delta, privacy.clip, sent)
        hidden = msgspec.structs.replace(privacy, sigma=noise)
        conditions = msgspec.structs.replace(network.conditions, privacy=hidden)
        return Network(network.graph, conditions)

    def _count(self, unit: str, price: Mapping[str, float]) -> int:
        """Count the iterations that the budget in a unit pays for, at most the run's."""
        return prices.count_iterations({unit: self._arena.budget[unit]}, price, self._last)

    def choose(self, groups: Sequence[Group], unit: str) -> Chosen | None:
        """Choose the best setting for a unit's budget; None if an iteration costs nothing in it.

        The search goes on beyond or between the settings of the groups, as ``tuning`` says.
        """
        candidates = [each for group in groups for each in self._score_settings(group, unit)]
        if not candidates:
            return None
        chosen, arena = self._choose_best(candidates, unit), self._arena
        if self._seeks:
            more = refine(arena, chosen.setting, self._where)
            return self._choose_best(
                [*candidates, *self._score_settings(self.group(more), unit)], unit
            )
        for _ in range(WIDER if self._tunes and not arena.paid else 0):
            if not (end := self._edge_of_search(chosen)):
                break
            size = count_settings(self._first)
            more = extend(arena, chosen.setting, end == "largest", self._where, size)
            candidates += self._score_settings(self.group(more), unit)
            chosen = self._choose_best(candidates, unit)
        return chosen

    def _score_settings(self, group: Group, unit: str) -> list[ScoredSetting]:
        """Score a group of settings at the budget of a unit, such as gradients.

        The list is empty if an iteration costs nothing in this unit.
        """
        price, aim, paid = group.price, self._arena.aim, np.full(len(group.settings), np.inf)
        if not price[unit]:
            return []
        b2, k = paid, self._count(unit, price)
        if k >= 1:
            due = [k] if aim is None else scores.grid(k, PER_OCTAVE_OF_TUNING)
            every = group.laws.bias(due)["worst"]
            b2 = every[-1]
            if aim is not None:
                paid = scores.price_until_solved(every, np.array(due) * price[unit], aim)
        numbers = zip(group.settings, b2.tolist(), paid.tolist(), strict=True)
        return [ScoredSetting(setting, price, *numbers_of) for setting, *numbers_of in numbers]

    def _choose_best(self, candidates: Sequence[ScoredSetting], unit: str) -> Chosen:
        """Choose the setting of least price to the aim, or of least score where none reaches it.

        unit: of the budget.
        """
        tune, aim, score = self._arena.tune, self._arena.aim, self._metric
        values = [each.score for each in candidates]
        reason = f"least {score} of worst after {self._arena.budget[unit]:g} {unit}"
        if any(np.isfinite(each.paid) for each in candidates):
            score, values = "price", [each.paid for each in candidates]
            reason = f"least {unit} until b2 of worst stays below {aim:g}"
        elif aim is not None:
            reason += f", since none stays below {aim:g}"
        best = int(np.argmin(values))
        (chosen, price, *_), least = candidates[best], values[best]
        second = _drop(chosen.values, tune)
        alike = [
            (each.setting.values[tune], value)
            for each, value in zip(candidates, values, strict=True)
            if tune is not None and second.items() <= each.setting.values.items()
        ]
        steps = [step for step, value in alike if value <= 2 * least]
        ends = [float(end(alike)[0]) for end in (min, max)] if alike else []
        tuned_value = chosen.values.get(str(tune)) if len(alike) > 1 else None
        about = {
            "chosen": dict(chosen.values),
            "reason": reason,
            score: least,
            "settings": len(candidates),
            "values tried": ends,
            "diverged": sum(not np.isfinite(value) for value in values),
            "least value tried": tuned_value is not None and tuned_value == ends[0],
            "largest value tried": tuned_value is not None and tuned_value == ends[1],
            "within twice the best": float(max(steps) / min(steps)) if steps else 1.0,
            "iterations": self._count(unit, price),
            "price of an iteration": dict(price),
        }
        return Chosen(chosen, price, about)

    def _edge_of_search(self, chosen: Chosen) -> str | None:
        """Return the end of the search at which the choice lies, "least" or "largest", or None.

        None, too, where all diverge, or where larger values are not stable.
        """
        about, tune = chosen.about, self._arena.tune
        if about["diverged"] == about["settings"]:
            return None
        if about["least value tried"]:
            return "least"
        unbounded = any(
            np.isinf(limit) and _drop(group[0].values, tune) == _drop(chosen.setting.values, tune)
            for group, limit in zip(self.settings, self.limits, strict=True)
        )
        return "largest" if about["largest value tried"] and unbounded else None

    def judge(self, chosen: Chosen, unit: str) -> Iterator[Row]:
        """Yield rows of a budget's chosen setting, and of its scores on the judging problems."""
        last, arena, task, setting = self._last, self._arena, self._task, chosen.setting
        for option, value in setting.values.items():
            if isinstance(value, (int, float)):
                yield _row_of_network(last, f"chosen.{option}_by_{unit}", float(value))
        yield _row_of_network(last, f"steps_by_{unit}", chosen.about["within twice the best"])
        if self._tunes:
            yield _row_of_network(last, f"end_by_{unit}", float(bool(self._edge_of_search(chosen))))
        network = self._network(setting.sampler, chosen.price)
        if arena.epsilon is not None:
            assert network.conditions.privacy is not None
            chosen.about["sigma"] = network.conditions.privacy.sigma
        if (key := f"{setting.sampler} {network.conditions}") not in self._judges:
            named = list(zip(task.stream_names[1:], task.problems[1:], strict=True))
            self._judges[key] = self._make_laws(named, [setting.sampler] * arena.sets, network)
        path = self._judges[key]
        yield from self._score(path, unit, chosen.price)
        if unit == next(iter(arena.budget)) and isinstance(path, Laws):
            yield from _rows_of_scores(FOREVER, "stationary_b2", path.stationary_bias() or {})

    def _score(self, path: Laws | Chains, unit: str, price: Mapping[str, float]) -> Iterator[Row]:
        """Yield rows of the scores of laws or chains on the judging problems at a budget."""
        last, score, end = self._last, self._metric, self._count(unit, price)
        if end < 1:  # too dear: it stays where it starts
            yield from _rows_of_scores(last, f"{score}_by_{unit}", scores.take_last(path.bias([0])))
            return
        due = scores.grid(end, PER_OCTAVE)
        b2, further = path.measure(due, self._run.metrics)
        yield from _rows_of_scores(last, f"{score}_by_{unit}", scores.take_last(b2))
        for metric, levels in further:
            if metric in GEOMETRIC:
                yield from _rows_of_scores(last, f"{metric}_by_{unit}", levels, each=metric in EACH)
                continue
            for level, values in levels.items():
                yield _row_of_mean(last, level, f"{metric}_by_{unit}", values)
        if score != "b2":
            return
        paid = np.array(due) * price[unit]
        for target in scores.TARGETS:
            hit = {level: scores.price_until_solved(of, paid, target) for level, of in b2.items()}
            yield from _rows_of_scores(last, f"{unit}_to_{target:g}", hit)
        for row, k in enumerate(due if self._arena.curve else ()):
            yield _row_of_network(k, f"spent.{unit}", k * price[unit])
            of_row = {level: values[row] for level, values in b2.items()}
            yield from _rows_of_scores(k, f"curve.{unit}", of_row, each=False)


def _drop(values: Mapping[str, Any], tune: str | None) -> dict[str, Any]:
    """Return values of options, by name, without that of the option ``tune``."""
    return {option: value for option, value in values.items() if option != tune}


def _row_of_network(k: int, metric: str, value: float) -> Row:
    """Return the row of a deterministic number of the whole network at iteration k."""
    return Row(k, "network", metric, value, chance=False)


def _row_of_mean(k: int, level: str, metric: str, values: np.ndarray) -> Row:
    """Return the row of the mean of values, one of each data set, (sets,), with its 95 % interval.

    level: of ``scores.LEVELS``, or "exact" for the posterior's score: the network's
    ``<metric>_exact``.
    """
    if level == "exact":
        level, metric = "network", f"{metric}_exact"
    return Row(k, level, metric, *mean_over_chains(values), trials=len(values))


def _rows_of_scores(k: int, metric: str, values: Levels, each: bool = True) -> Iterator[Row]:
    """Yield, by level, the row of the geometric mean of values (sets,) with its 95 % interval.

    each: whether to yield a row for each data set besides.
    """
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
