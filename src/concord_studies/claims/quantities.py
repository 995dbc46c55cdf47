"""Quantities of claims: numbers with intervals, taken from the metrics of some runs.

A deterministic number (0 ``trials`` in ``metrics.csv``) is its own interval. A check often reads
many numbers, and one interval in twenty misses its value. Therefore the intervals of all numbers
that enter a check are widened so that they hold jointly at 95 % (Bonferroni: with m of them each is
taken at 1 - 0.05/m, its half-width growing as that of Student's t does for as many independent
trials as are behind it). Either verdict, ``holds`` or ``does not hold``, is then wrong with
probability 5 % at most, however many agents and iterations the check looks at.

A value that is not a number, though its run did not diverge, is refused, and so is a random number
without an interval. One whose interval reaches from 0 to infinity is known to have none
(``wasserstein.has_heavy_tails``): no rule is decided by it, and the verdict says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from concord.laws.intervals import quantile
from concord.options import Options, Positive, Some
from concord_studies import words
from concord_studies.intervals import replication_reach
from concord_studies.results import AVERAGE, Measured, divergence
from concord_studies.runs.run import Run, amplifies
from concord_studies.selection import lookup

# Columns by name, of as many rows each.
Table = Mapping[str, np.ndarray]

MEAN = "mean of"  # so many agents


class Missing(Exception):
    """The error that a claim needs a number that does not exist, with the reason."""


class DivergedQuantity(Exception):
    """The error that a claim's quantities are undefined, since a run diverged."""

    def __init__(self, quantities: Sequence[Quantity], run: str) -> None:
        """Name the run that diverged, and the quantities that are undefined for it."""
        super().__init__(f"{run} diverged: its {quantities[0].metric} is not a number")
        self.quantities = quantities


class Quantity(Options):
    """The numbers that a claim is about: a metric of selected runs."""

    experiment: Annotated[
        str | Some[str], "id of the experiment, or ids where readings have experiments of their own"
    ]
    metric: Annotated[str, "name of the metric"]
    runs: Annotated[dict[str, Any] | None, "axis: label or [labels]; none: all runs"] = None
    reading: Annotated[
        str | None, "reading of these runs; none: the one the claim is judged in"
    ] = None
    agents: Annotated[
        Some[int | str] | None,
        "agents: indices, average or network; none: all in the table",
    ] = None
    at: Annotated[
        Literal["last", "all"] | int | Some[int], "iteration: last, all, a number, or several"
    ] = "last"
    reduce: Annotated[
        Literal["none", "mean", "max"],
        "one number per run: its mean or largest; none: all numbers",
    ] = "none"
    scale: Annotated[Positive, "factor, such as 100 for per cent"] = 1.0

    @property
    def experiments(self) -> tuple[str, ...]:
        """Return the ids of the experiments whose runs the quantity selects."""
        return (self.experiment,) if isinstance(self.experiment, str) else self.experiment


class Reach(NamedTuple):
    """How far the intervals of random numbers reach, beside those that they have.

    narrow: factor of all half-widths: 1/sqrt(m) shows what m times as many chains would.
    again: whether they are as wide as another set of as many chains may move them.
    """

    narrow: float = 1.0
    again: bool = False

    def factor(self, count: int, trials: float) -> float:
        """Return the factor of the half-widths of ``count`` joint intervals, besides ``widening``.

        trials: how many chains are behind each.
        """
        return self.narrow * (replication_reach(trials, max(count, 1)) if self.again else 1)


AS_MEASURED = Reach()


@dataclass(frozen=True)
class Numbers:
    """Values with intervals, (count,) each, and the run, agent and iteration of each value.

    quantity: which they are of. axes: labels in which the runs of the check differ. what: the
    quantity's name, where the quantities of the check differ in it. reach: of their intervals.
    """

    value: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    run: list[Measured]
    agent: list[str]
    iteration: np.ndarray
    quantity: Quantity
    axes: tuple[str, ...] = ()
    what: str = ""
    reach: Reach = AS_MEASURED

    def value_text(self, index: int) -> str:
        """Return one number as text, with its interval where it has one."""
        return number_text(self.value[index], self.lo[index], self.hi[index])

    def owner_text(self, index: int) -> str:
        """Return the owner of a number as text: run, agent and iteration."""
        agent = self.agent[index]
        run = self.run[index]
        parts = [words.label(axis, lookup(run.run, axis), run.names) for axis in self.axes]
        parts += [] if agent == "network" else [f"the {AVERAGE}"] if agent == AVERAGE else []
        parts += [words.agent(agent)] if agent.isdigit() else []
        parts += [agent] if agent.startswith(MEAN) else []
        if len(set(self.iteration)) > 1:
            parts.append(f"iteration {self.iteration[index]:g}")
        none = {"worst": "the worst agent", "pooled": "all agents' draws", "": "the only number"}
        none["each"] = "the mean of all agents' scores"
        return ", ".join(parts) or none.get(agent, "the network")

    def describe(self, index: int) -> str:
        """Return a number as text with its metric and its owner."""
        text = "; ".join(filter(None, [self.what, self.owner_text(index)]))
        return f"{self.value_text(index)} ({text})"

    def varying_axes(self) -> list[str]:
        """Return the names of sweep axes, agent or iteration in which numbers differ."""
        labels = [run.run.get("labels") or {} for run in self.run]
        names = [n for n in labels[0] if len({str(other.get(n)) for other in labels}) > 1]
        runs = [run.name for run in self.run]
        for name, values in (("agent", self.agent), ("iteration", self.iteration)):
            if len(set(zip(runs, values, strict=True))) > len(set(runs)):  # within a run
                names.append(name)
        return names

    def keys(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """Return, for every number, its values under ``names``."""
        columns = {"agent": self.agent, "iteration": [f"{k:g}" for k in self.iteration]}
        return [
            tuple(columns[n][i] if n in columns else str(run.run["labels"].get(n)) for n in names)
            for i, run in enumerate(self.run)
        ]

    def axis(self, name: str) -> np.ndarray:
        """Return the value of an axis of the sweep for every number, or the iteration plus one."""
        if name == "iteration":
            return self.iteration + 1.0
        try:
            return np.array([float(lookup(run.run, name)) for run in self.run])
        except (TypeError, ValueError):
            raise Missing(f"the axis {name} is not a number in {self.run[0].name}") from None


def number_text(value: float, lo: float, hi: float) -> str:
    """Return a number as text, with its interval if that has a width.

    lo, hi: the ends of the interval, of which one may be infinite; if both are there is none.
    """
    half = (hi - lo) / 2 if lo != hi and np.isfinite([lo, hi]).any() else 0
    exact = half <= 1e-9 * abs(value)
    return words.number(value) if exact else words.format_number(value, lo, hi)


def plan_numbers(quantity: Quantity, runs: Sequence[Run]) -> Numbers:
    """Return the numbers that planned runs will yield; their values are nan."""
    rows: list[tuple[Run, str, int]] = []
    for run in runs:
        recorded = run.recorded_iterations
        ends = {"last": recorded[-1:], "all": sorted({recorded[0], recorded[-1]})}
        at = ends.get(str(quantity.at), quantity.at)
        iterations = [at] if isinstance(at, int) else [int(k) for k in at]
        many = [(run, str(who), k) for who in quantity.agents or [""] for k in iterations]
        rows += many if quantity.reduce == "none" else many[:1]
    unknown = np.full(len(rows), np.nan)
    measured = [Measured(run.document, None) for run, _, _ in rows]  # type: ignore[arg-type]  # not yet
    agents, k = [who for _, who, _ in rows], np.array([float(k) for _, _, k in rows])
    return Numbers(unknown, unknown, unknown, measured, agents, k, quantity)


@dataclass(frozen=True)
class Evidence:
    """The rows of a check's quantities, and what is behind the random numbers among them.

    rows: of each quantity its runs, and their rows as one table.
    trials: how many independent trials are behind each random number.
    unit: what these trials are.
    endless: how many random numbers have no interval, since chains are heavy-tailed.
    amplified: whether runs amplify rounding errors.
    """

    rows: list[tuple[Quantity, Sequence[Measured], Table]]
    trials: list[float]
    unit: str
    endless: int
    amplified: bool

    @property
    def names(self) -> list[str]:
        """The quantities' names in words."""
        return [words.metric(quantity.metric, quantity.scale) for quantity, *_ in self.rows]

    @property
    def what(self) -> str:
        """What the numbers are, in words; "" where they are of several kinds."""
        return self.names[0] if len(set(self.names)) == 1 else ""

    def numbers(self, reach: Reach = AS_MEASURED) -> list[Numbers]:
        """Return the numbers of all quantities, with joint 95 % intervals of a reach."""
        count, axes = len(self.trials), _axes([run for _, runs, _ in self.rows for run in runs])
        return [
            _numbers(*of, count, reach, axes, "" if self.what else what)
            for of, what in zip(self.rows, self.names, strict=True)
        ]


def gather(read: Iterable[tuple[Quantity, Sequence[Measured]]]) -> Evidence:
    """Return the rows of all quantities of a check in their runs.

    ``Missing`` if there is no run, or a run lacks the metric, an agent, an iteration, or the
    interval of a random number; ``DivergedQuantity`` if a value is none because its run diverged.
    read: pairs of a quantity and its measured runs.
    """
    rows = [(quantity, runs, _table(quantity, runs)) for quantity, runs in read]
    lost = [
        (quantity, runs[place].name)
        for quantity, runs, table in rows
        for place in table["place"][np.isnan(table["value"])][:1]
    ]
    if lost:
        raise DivergedQuantity([quantity for quantity, _ in lost], lost[0][1])
    trials = [n for _, _, table in rows for n in table["trials"][table["chance"]].tolist()]
    documents = [run.run for _, runs, _ in rows for run in runs]
    return Evidence(
        rows,
        trials,
        unit="data sets" if any(run.get("arena") for run in documents) else "chains",
        endless=sum(int(table["endless"].sum()) for *_, table in rows),
        amplified=bool(trials) and any(map(amplifies, documents)),
    )


def _axes(runs: Sequence[Measured]) -> tuple[str, ...]:
    """Return the axes of sweeps in which runs differ, or else "experiment"."""
    labels = dict.fromkeys(label for run in runs for label in run.run.get("labels") or {})
    shared = [axis for axis in labels if all(axis in (r.run.get("labels") or {}) for r in runs)]
    axes = [axis for axis in shared if len({str(lookup(run.run, axis)) for run in runs}) > 1]
    apart = len({run.run.get("experiment") for run in runs}) > 1
    return ("experiment", *axes) if apart else tuple(axes)


def widening(count: int, trials: float) -> float:
    """Return the factor of half-widths with which ``count`` 95 % intervals hold jointly.

    The ratio of Student's t quantiles at 1 - 0.025/count and 0.975, for means of so many trials.
    """
    return quantile(trials, max(count, 1)) / quantile(trials)


def _table(quantity: Quantity, runs: Sequence[Measured]) -> Table:
    """Return the rows of all runs as one table; its column ``place`` has the index of the run."""
    if not runs:
        raise Missing(f"no run of {' or '.join(quantity.experiments)} in this reading")
    tables = [_rows(quantity, run) for run in runs]
    if quantity.reduce == "mean":
        tables = [_mean(rows) for rows in tables]
    table = {name: np.concatenate([rows[name] for rows in tables]) for name in tables[0]}
    return {**table, "place": np.repeat(np.arange(len(runs)), [len(r["value"]) for r in tables])}


def _rows(quantity: Quantity, run: Measured) -> Table:
    """Return a run's rows of the quantity, by agent and iteration, with interval ends."""
    what = f"{run.name} has no {quantity.metric}"
    keep = np.flatnonzero(run.metrics["metric"] == quantity.metric)
    if not keep.size:
        raise Missing(what)
    agent, iteration = (run.metrics[name].to_numpy()[keep] for name in ("agent", "iteration"))
    agent, chosen = agent.astype(str), np.full(len(keep), True)
    if quantity.agents is not None:
        names = [str(who) for who in quantity.agents]
        absent = [who for who in names if who not in agent]
        if absent:
            raise Missing(f"{what} of agent {absent[0]}")
        chosen = np.isin(agent, names)
    if quantity.at == "last":
        chosen &= iteration == iteration[chosen].max()
    elif quantity.at != "all":
        at = quantity.at if isinstance(quantity.at, tuple) else (quantity.at,)
        gone = [k for k in at if k not in iteration[chosen]]
        if gone:
            raise Missing(f"{what} at iteration {gone[0]}")
        chosen &= np.isin(iteration, at)
    order = np.lexsort((iteration, agent))
    order = order[chosen[order]]
    columns = (run.metrics[name] for name in ("value", "lo", "hi", "trials"))
    value, lo, hi, trials = (column.to_numpy(float)[keep[order]] for column in columns)
    if np.isnan(value).any() and divergence(run) is None:
        raise Missing(f"{quantity.metric} of {run.name} is not a number")
    chance, random = trials != 0, (trials != 0) & np.isfinite(value)
    unknown = random & np.isnan(lo) & np.isnan(hi)
    if run.run.get("chains") == 1:  # which says nothing of the spread over chains
        trials = np.where(unknown, 1, trials)
    elif unknown.any():
        raise Missing(f"{quantity.metric} of {run.name} is random but has no interval")
    lo, hi = np.where(random, lo, value), np.where(random, hi, value)
    endless = random & (lo <= 0) & np.isposinf(hi)
    lo = np.where(endless, -math.inf, lo)  # which no number of chains narrows
    return {
        "agent": agent[order],
        "iteration": iteration[order],
        "value": value,
        "lo": np.where(np.isnan(lo), -math.inf, lo),
        "hi": np.where(np.isnan(hi), math.inf, hi),
        "trials": trials,
        "chance": chance,
        "endless": endless,
    }


def _mean(rows: Table) -> Table:
    """Return rows averaged to one row, whose interval's ends are the means of the ends.

    Conservative without widening: however the numbers depend on each other, the standard deviation
    of their mean is at most the mean of their standard deviations.
    """
    agents = len(set(rows["agent"]))
    with np.errstate(invalid="ignore"):  # infinite values and ends, whose mean may be none
        means = {name: rows[name].mean(keepdims=True) for name in ("value", "lo", "hi")}
    return {
        "agent": np.array([f"{MEAN} {agents} agents"]) if agents > 1 else rows["agent"][:1],
        "iteration": rows["iteration"][:1],
        **means,
        "trials": np.fmin.reduce(rows["trials"][rows["chance"]], initial=np.nan, keepdims=True),
        "chance": rows["chance"].any(keepdims=True),
        "endless": rows["endless"].any(keepdims=True),
    }


def _numbers(
    quantity: Quantity,
    runs: Sequence[Measured],
    table: Table,
    count: int,
    reach: Reach,
    axes: tuple[str, ...],
    what: str,
) -> Numbers:
    """Return the numbers of a table's rows, with intervals widened for ``count`` of them.

    runs: to which the table's column ``place`` points. axes: in which the check's runs differ.
    what: the quantity's name, where the check's quantities differ in it.
    """
    trials = np.where(table["trials"] > 1, table["trials"], math.inf)
    factor = np.array([reach.factor(count, n) * widening(count, n) for n in trials])
    value, lo, hi = (table[name] for name in ("value", "lo", "hi"))
    with np.errstate(invalid="ignore"):  # infinite values, which keep their ends
        wide_lo = value - factor * np.maximum(value - lo, 0)
        wide_hi = value + factor * np.maximum(hi - value, 0)
    lo = np.where(np.isfinite(value) & np.isfinite(lo), wide_lo, lo)
    hi = np.where(np.isfinite(value) & np.isfinite(hi), wide_hi, hi)
    # Resampled medians of counts may all be equal: a tie of estimates is not certain.
    tied = table["chance"] & (lo == hi) & np.isfinite(lo)
    if reach.again:  # nor do chains that agree tell what others would be
        lo, hi = np.where(tied, -np.inf, lo), np.where(tied, np.inf, hi)
    lo = np.where(tied, np.nextafter(lo, -np.inf), lo)
    hi = np.where(tied, np.nextafter(hi, np.inf), hi)
    place, index = table["place"], np.arange(len(value))
    if quantity.reduce == "max":
        # The largest of the true values lies between the largest lower and the largest upper end.
        groups = [index[place == number] for number in range(len(runs))]
        value, lo, hi = (np.array([x[group].max() for group in groups]) for x in (value, lo, hi))
        index = np.array([group[0] for group in groups])
    return Numbers(
        value * quantity.scale,
        lo * quantity.scale,
        hi * quantity.scale,
        [runs[number] for number in place[index]],
        [str(agent) for agent in table["agent"][index]],
        table["iteration"][index].astype(float),
        *(quantity, axes, what, reach),
    )
