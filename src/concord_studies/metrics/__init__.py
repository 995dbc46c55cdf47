"""Metrics: long-format tables computed from a trace, with an interval for every random number.

A run lists *families* of metrics, each a module with a function ``rows(measurement)`` decorated by
``yields``; rows have the columns iteration, agent, metric, value, lo, hi, trials. Agents are
numbers, ``average`` (the network average) or ``network``. ``trials`` is the number of independent
trials behind an interval, most often the chains; 0 for deterministic numbers, which need no
interval; empty for others without.

The values of diverged chains are removed from the trace (``Trace.mask_diverged``), so that a number
that needs them is infinite (an error, a distance) or nan, and never a finite one of other chains.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from msgspec import structs

from concord import kinds
from concord.arguments import ChosenSampler
from concord.contracts import Stream
from concord.errors import ConcordError, nearest, short
from concord.laws.exact import Law
from concord.laws.intervals import widen
from concord.laws.law import exact_law
from concord.laws.read_off import NoLaw, StepReader
from concord.minibatches import batches_of
from concord.networks.conditions import Conditions
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.problem import Problem
from concord.problems.quadratic_problem import QuadraticProblem
from concord.progress import each
from concord.sampler import Algorithm
from concord.sampling import initial
from concord.sampling.trace import Trace
from concord_studies.contracts import PRICES, Label
from concord_studies.datasets.tables import Recorded
from concord_studies.runs.keys import Keys

TRIED = 5  # agents on which it is tried whether a sampler's step is affine
COLUMNS = ("iteration", "agent", "metric", "value", "lo", "hi", "trials")


class Row(NamedTuple):
    """A row of metrics: the value of a metric, for an agent at an iteration, with its interval.

    chance: whether the value is random. trials: the number of independent trials behind the
    interval; None: that of the chains. A random value without an interval has an unknown error.
    ``measure`` widens intervals to contain their values, and removes those of a single chain.
    """

    iteration: int
    agent: str
    metric: str
    value: float
    lo: float | None = None
    hi: float | None = None
    chance: bool = True
    trials: int | None = None


@dataclass(frozen=True)
class Measurement:
    """The input of a metric: a run's trace, problem, network and random streams.

    network
        The run's network, as it stands before the first iteration.
    sampler
        The sampler with its options.
    initial
        Distribution of x^(0).
    stream
        Stream of random numbers for resampling, by label.
    burn_in
        Iterations up to this one are left out where draws stand for a sample; -1: the first tenth.
    recorded, resources
        What a paper's authors recorded of the run, and the folder of the data files.
    """

    trace: Trace
    problem: Problem
    network: Network
    sampler: Algorithm
    initial: initial.Law
    iterations: int
    stream: Stream
    burn_in: int = -1
    recorded: Recorded | None = None
    resources: Path = Path("resources")

    @cached_property
    def law(self) -> Law | None:
        """The exact law of the run at its recorded iterations; None where it is not known."""
        return exact_law(self)

    @property
    def late(self) -> np.ndarray:
        """The indices of the recorded iterations after burn-in, increasing."""
        return self.trace.rows_after_warm_up(self.burn_in)

    @property
    def last(self) -> int:
        """The last recorded iteration."""
        return int(self.trace.draw[-1])

    @property
    def agents(self) -> list[str]:
        """The numbers of the recorded agents, as texts."""
        return [str(agent) for agent in self.trace.agent]


Names = Sequence[str]  # of metrics, or patterns of them
# What a family asks of the run's network: a property of its conditions, in words.
NETWORKS = {
    "clocked": ("keeps_time", "a network with compute or link, whose clock it shows"),
    "privacy": ("privacy", "a network with privacy"),
    "delivers": ("delivers_all", "a network on which every vector arrives"),
    "perfect": ("is_lossless", "a network on which everything arrives"),
}


Rows = Callable[[Measurement], Iterator[Row]]


@dataclass(frozen=True, eq=False)
class MetricFamily:
    """A family of metrics: the function that yields their rows, and what ``yields`` declares."""

    rows: Rows
    metrics: Names
    labels: Mapping[str, Label]
    records: Names
    network: str | None
    exact: Names
    of_law: Names
    averaged: Names | None
    apart: bool
    conditions: Names
    check_problem: Callable[[Problem], None] | None

    def __call__(self, m: Measurement) -> Iterator[Row]:
        """Yield the rows of a run. A ConcordError if it lacks something that the family needs."""
        return self.rows(m)


class MetricKind(Protocol):
    """A kind of metrics, a module of ``concord_studies.metrics``."""

    rows: MetricFamily


def yields(
    metrics: str | Names,
    *,
    labels: Mapping[str, Label | str] | None = None,
    records: Names = (),
    network: Literal["clocked", "privacy", "delivers", "perfect"] | None = None,
    exact: Names = (),
    of_law: Names = (),
    averaged: Names | None = None,
    apart: bool = False,
    conditions: Names = (),
    check_problem: Callable[[Problem], None] | None = None,
) -> Callable[[Rows], MetricFamily]:
    """Return a decorator for a module's ``rows`` that declares the metrics they have.

    metrics: one or several names, where ``*`` matches anything.
    labels: phrases for readers, or more (``Label``), by metric.
    records: the ``draws``, probes and averages that the family reads and not every run records.
    network: the property that the run's network must have (``NETWORKS``).
    exact: metrics that are computed without chains.
    of_law: metrics of the sampler's exact law, absent where it is not known.
    averaged: metrics that exist for the network average; None: unknown, as of plug-ins.
    apart: whether the metrics of an iteration need no other iteration.
    conditions: metrics that are 1 where a condition is met, and 0 where it is not.
    check_problem: raises for a problem for which the family is not defined.
    """

    def declare(rows: Rows) -> MetricFamily:
        """Return the metric family of a function that yields rows."""
        names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
        words = {
            metric: Label(label) if isinstance(label, str) else label
            for metric, label in (labels or {}).items()
        }
        stated = names, words, records, network, exact, of_law, averaged
        return MetricFamily(rows, *stated, apart, conditions, check_problem)

    return declare


def find_family(name: str, where: str = "metrics") -> MetricFamily:
    """Return the family of metrics of a name; ``where`` is the place that has it, for errors."""
    rows = kinds.find("metrics", name, where).rows
    if not isinstance(rows, MetricFamily):
        raise ConcordError(
            f"{kinds.location('metrics', name)}: it does not say which metrics rows yields; write "
            "@yields(('a', 'b')) above it, with their names"
        )
    return rows


def series(
    iterations: Iterable[int],
    agents: str | Sequence[str],
    numbers: Mapping[str, Any],
    chance: bool = True,
) -> Iterator[Row]:
    """Yield the rows of metrics along iterations, for one agent or several.

    numbers: by metric, the values, or a sequence of values, lower and upper ends of intervals; each
    an array with (iterations, agents) entries. chance: whether chance enters the numbers.
    """
    names, ticks = [agents] if isinstance(agents, str) else list(agents), list(iterations)
    shape = len(ticks), len(names)
    columns = {}
    for metric, values in numbers.items():
        parts = values if isinstance(values, tuple) else (values,)
        whole = [np.reshape(part, shape).tolist() for part in parts]
        columns[metric] = [*whole, *[np.full(shape, None).tolist()] * (3 - len(whole))]
    for column, agent in enumerate(names):
        for row, k in enumerate(ticks):
            for metric, (value, lo, hi) in columns.items():
                ends = lo[row][column], hi[row][column]
                yield Row(k, agent, metric, value[row][column], *ends, chance)


def final_rows(m: Measurement, numbers: Mapping[str, float]) -> Iterator[Row]:
    """Yield rows of deterministic numbers, by metric, of the network at the last iteration."""
    return series([m.iterations], "network", numbers, chance=False)


def check_network(name: str, conditions: Conditions | None, where: str = "") -> None:
    """Refuse a metric family on a network to which it does not apply."""
    about = find_family(name).network
    if about is not None and not getattr(conditions or Conditions(), NETWORKS[about][0]):
        raise ConcordError(f"{where}{unmet_need(name, NETWORKS[about][1])}")


def check_families(run: Keys, where: str) -> None:
    """Refuse metric families that do not exist, or do not suit a run's record, network or chains.

    run: the keys of a run. where: the place of ``metrics`` in a file.
    """
    record = run.record
    for number, family in enumerate(run.metrics):
        if not kinds.exists("metrics", family):
            raise ConcordError(
                f"{where}[{number}]: there is no metric {short(family)}; {_family_remedy(family)}"
            )
        check_network(family, run.network, f"{where}[{number}]: ")
        if not run.chains and not find_family(family).exact:
            raise ConcordError(f"{where}[{number}]: {unmet_need(family, 'chains')}")
        recorded = {*record.probes, *record.averages, *(["draws"] if record.draws else [])}
        for name in find_family(family).records:
            if name not in recorded:
                key = {"draws": "draws: true", "predictive": "averages: [predictive]"}
                raise ConcordError(
                    f"{where}[{number}]: {family} reads {name}, which the run does not record; "
                    f"add {key.get(name, f'probes: [{name}]')} to its record"
                )


# Families by the names that they had before those of their metrics.
RENAMED = {
    "chains_distance": "chains_w2",
    "marginal_distance": "w1_marginal",
    "posterior_width": "posterior_trace",
    "privacy": "epsilon",
}


def _family_remedy(word: str) -> str:
    """Return the advice for a word that names no family of metrics."""
    if word in RENAMED:
        return f"it is called {RENAMED[word]!r} now"
    if yielding := families(word):
        return f"{' or '.join(map(repr, yielding))} computes it: write that"
    return nearest(word, kinds.names("metrics"))


ALWAYS = ("diverged", "diverged_first")
AGENTS = ("average", "network")  # what has numbers beside the agents themselves
LABELS = {
    "diverged": Label(head="chains that diverged, share"),
    "b2": Label("b²"),
    "ergodic_b2": Label("b² of one run's time average"),
    "stationary_b2": Label("b² of the stationary law"),
    **{f"{price}_to": Label(f"{price} until b² is {{}}") for price in PRICES},
}
# Of a cell of the arena (``concord_arena.cells``), whatever its run's metrics.
OF_CELLS = (
    *("applicable", "exact", "stationary_b2", "stable.*"),
    *(f"*_by_{price}*" for price in PRICES),
    *(f"{price}_to_*" for price in PRICES),
    *(f"{head}.{price}*" for price in PRICES for head in ("curve", "spent")),
)


def computes(family: str, metric: str) -> bool:
    """Return whether a family declares a metric, or one that matches a pattern with ``*``."""
    return any(matches(metric, name) for name in find_family(family).metrics)


def is_exact(family: str, metric: str) -> bool:
    """Return whether a family computes a metric without chains."""
    exact = any(matches(metric, name) for name in find_family(family).exact)
    return exact and computes(family, metric)


@cache  # planning asks for every run of a figure
def matches(metric: str, name: str) -> bool:
    """Return whether a metric matches a name; both may be patterns with ``*``."""
    return fnmatchcase(metric, name) or fnmatchcase(name, metric)


def is_computed(run: Keys, metric: str) -> bool:
    """Return whether a run of these keys computes a metric."""
    if run.arena is not None:
        return any(matches(metric, name) for name in OF_CELLS)
    return metric in ALWAYS or any(computes(family, metric) for family in run.metrics)


def refusal(run: Keys, metric: str, agents: Sequence[int | str] = ()) -> str | None:
    """Return the reason and remedy if a run will not have a metric of some agents; None if it will.

    run: the keys of a run. Whether a metric has values of ``average`` or ``network`` may be known
    only from the table of metrics.
    """
    if not is_computed(run, metric):
        return f"does not compute {metric!r}; {remedy(metric)}"
    if run.arena is not None:
        return None
    if _is_of_law(run, metric) and not _has_law(run.sampler, min(run.agents, TRIED)):
        return f"has no {metric!r}, since sampler {run.sampler.kind!r} states no exact law"
    if not run.chains and not any(is_exact(family, metric) for family in run.metrics):
        return f"has no {metric!r}, since it has no chains; give it some"
    unknown = [a for a in agents if isinstance(a, str) and not a.isdigit() and a not in AGENTS]
    if unknown:
        choice = nearest(unknown[0], [*AGENTS, "an agent's number"])
        return f"has no {metric!r} of {unknown[0]!r}; {choice}"
    if "average" in agents and not _is_averaged(run, metric):
        return f"has no {metric!r} of the network average; choose agents' numbers or network"
    recorded = range(run.agents) if run.record.agents is None else run.record.agents
    for agent in agents:
        if isinstance(agent, int) and agent not in recorded:
            return (
                f"has no {metric!r} of agent {agent}, which it does not record; "
                f"choose one of {short([*recorded])}, or add it to record.agents"
            )
    return None


def _is_of_law(run: Keys, metric: str) -> bool:
    """Return whether a run's families compute a metric from the exact law alone."""
    computing = (find_family(f) for f in run.metrics if computes(f, metric))
    return any(matches(metric, name) for family in computing for name in family.of_law)


def _is_averaged(run: Keys, metric: str) -> bool:
    """Return whether a run's families may have a metric of the network average.

    True for plug-ins that do not declare it.
    """
    for family in filter(lambda family: computes(family, metric), run.metrics):
        averaged = find_family(family).averaged
        if averaged is None and family not in kinds.built_in("metrics"):
            return True
        if any(matches(metric, name) for name in averaged or ()):
            return True
    return False


@cache  # planning asks for every run of a figure
def _has_law(sampler: ChosenSampler, agents: int) -> bool:
    """Return whether the step of a sampler with its options is affine (``states_law``)."""
    return states_law(sampler.params, agents)


def states_law(sampler: Algorithm, agents: int = TRIED) -> bool:
    """Return whether a sampler's step is affine, tried on a network of at most ``TRIED`` agents.

    True where none of the networks tried suits the sampler, or its step fails.
    """
    size = min(agents, TRIED)
    problem = QuadraticProblem(np.ones((size, 1, 1)), np.zeros((size, 1)))
    if batches_of(sampler) is not None:  # their errors change no step's form
        sampler = structs.replace(sampler, batch_size=None)
    for graph in ("ring", "server", "no_edges"):
        try:
            network = Network(build_graph(graph, size))
            sampler.check(problem, network)
        except ConcordError:
            continue
        try:
            reader = StepReader(sampler, problem, network)
            begin, period = reader.cycle or (0, 1)
            for k in range(begin + period):
                reader.read_step(k)
        except NoLaw:
            return False
        except Exception:  # a plug-in's, in which its jobs will end
            return True
        return True
    return True


def families(metric: str) -> list[str]:
    """Return the names of the families that yield a metric."""
    return [family for family in kinds.names("metrics") if computes(family, metric)]


def remedy(metric: str) -> str:
    """Return the advice how a run gets a metric, to end an error with."""
    if yielding := families(metric):
        return f"add {' or '.join(yielding)} to the metrics of the experiment"
    every = (find_family(family) for family in kinds.names("metrics"))
    return nearest(metric, {*ALWAYS, *(name for family in every for name in family.metrics)})


def find_label(metric: str) -> tuple[str, str]:
    """Return a metric's longest prefix that has a label, and the label's text; "" twice if none."""
    labels, part = _labels(_loaded_families()), metric
    while part and not labels.get(part, Label()).says:
        part = part.rpartition("_")[0]
    return part, labels[part].says if part else ""


def column_heading(metric: str) -> str:
    """Return a metric's own column heading; "" where its description serves as heading."""
    return _labels(_loaded_families()).get(metric, Label()).head


def prices() -> dict[str, Label]:
    """Return the labels of metrics that an x axis may count in place of iterations, by metric."""
    return {metric: label for metric, label in _labels(_loaded_families()).items() if label.axis}


def is_condition(metric: str) -> bool:
    """Return whether a metric says by 1 or 0 if a condition is met."""
    names = _conditions(_loaded_families())
    side = metric.endswith((".value", ".limit"))
    return not side and any(fnmatchcase(metric, name) for name in names)


def _loaded_families() -> tuple[MetricFamily, ...]:
    """Return the metric families that are built in, and those of plug-ins imported by now."""
    plug_ins = sorted({*kinds.names("metrics")} - {*kinds.built_in("metrics")})
    loaded = [find_family(family) for family in plug_ins if kinds.is_loaded("metrics", family)]
    return (*_built_in_families(), *loaded)


@cache
def _built_in_families() -> tuple[MetricFamily, ...]:
    """Return all metric families that are built in."""
    return tuple(map(find_family, kinds.built_in("metrics")))


@cache
def _labels(families: tuple[MetricFamily, ...]) -> dict[str, Label]:
    """Return the labels of metrics by name, common labels and labels of families."""
    labels = (family.labels for family in families)
    return LABELS | {name: label for part in labels for name, label in part.items()}


@cache
def _conditions(families: tuple[MetricFamily, ...]) -> list[str]:
    """Return the names of conditions that families declare."""
    return [name for family in families for name in family.conditions]


def unmet_need(family: str, need: str) -> ConcordError:
    """Return the error of a metric family for a run that lacks ``need``."""
    return ConcordError(f"metric {family} needs {need}; remove it from this run's metrics")


def measure(families: Sequence[str], measurement: Measurement) -> list[Row]:
    """Compute the rows of metric families, and of divergence, for a run."""
    chains = len(measurement.trace["diverged_at"])
    rows: list[Row] = []
    marked = replace(measurement, trace=measurement.trace.mask_diverged())
    for family in each(families, "metrics"):
        check_network(family, marked.network.conditions)
        rows += find_family(family).rows(marked)
    numbers = ((row.value, row.lo, row.hi) for row in rows)
    columns = np.array([[np.nan if n is None else n for n in row] for row in numbers], dtype=float)
    ends = np.stack(widen(*columns.reshape(-1, 3).T), axis=1).tolist()
    widened = (_with_interval(*each, chains) for each in zip(rows, ends, strict=True))
    return [*_divergence_rows(measurement), *widened]


def _with_interval(row: Row, ends: Sequence[float], chains: int) -> Row:
    """Return a row with these ends of its interval, or without an interval for a single chain."""
    over_chains = row.trials is None and row.chance
    if math.isnan(ends[0]) or (over_chains and chains == 1):
        return row._replace(lo=None, hi=None)
    return row._replace(lo=ends[0], hi=ends[1], trials=chains if over_chains else row.trials)


def cells(row: Row) -> list[Any]:
    """Return a row as the cells of a table; ends that are unknown are empty.

    Numbers are texts in the shortest form that reads back exactly.
    """
    ends = ("" if n is None or math.isnan(n) else repr(float(n)) for n in (row.lo, row.hi))
    trials = row.trials if row.chance else 0
    return [int(row.iteration), row.agent, row.metric, repr(float(row.value)), *ends, trials]


def _divergence_rows(m: Measurement) -> Iterator[Row]:
    """Yield rows of the share of chains that diverged, and of the first iteration of divergence."""
    at = m.trace["diverged_at"]
    if not at.size:
        return
    gone = at[at >= 0]
    yield Row(m.iterations, "network", "diverged", gone.size / at.size)
    if gone.size:
        yield Row(int(gone.min()), "network", "diverged_first", gone.min())
