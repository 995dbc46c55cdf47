"""What a figure is drawn from: resolved runs and their metric tables, and how rows are selected.

Nothing is estimated here: a figure shows numbers that are in a ``metrics.csv``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from concord.errors import ConcordError, nearest

if TYPE_CHECKING:
    import pandas

AVERAGE = "average"


@dataclass(frozen=True)
class Measured:
    """A run and its metrics.

    Attributes
    ----------
    run
        What its ``run.yaml`` holds.
    metrics
        Columns iteration, agent (text: an index, ``average`` or ``network``), metric, value, lo,
        hi, trials (as ``concord.metrics`` has them); ordered by iteration within a metric and an
        agent.
    """

    run: Mapping[str, Any]
    metrics: pandas.DataFrame

    @property
    def name(self) -> str:
        """The run as messages call it."""
        return f"{self.run.get('experiment', '?')}/{self.run.get('run', '?')}"


@dataclass(frozen=True)
class Series:
    """One metric of one agent over iterations: fields of shape (rows,); lo and hi may be NaN."""

    iteration: np.ndarray
    value: np.ndarray
    lo: np.ndarray
    hi: np.ndarray

    def before(self, iteration: float) -> Series:
        """The rows before ``iteration`` whose value is finite."""
        keep = (self.iteration < iteration) & np.isfinite(self.value)
        return Series(self.iteration[keep], self.value[keep], self.lo[keep], self.hi[keep])


def paired(
    first: Measured, second: Measured, metric: str, agent: int | str, where: str
) -> np.ndarray:
    """Return the differences, second minus first, of ``<metric>_set_<d>``, for every data set d.

    Raises
    ------
    ConcordError
        If the runs have fewer than two data sets, or different ones; it begins with ``where``.
    """
    values = []
    for run in (first, second):
        table = run.metrics
        mine = table["metric"].str.startswith(f"{metric}_set_") & (table["agent"] == str(agent))
        values.append(table[mine].set_index("metric")["value"])
    if set(values[0].index) != set(values[1].index) or len(values[0]) < 2:
        raise ConcordError(
            f"{where}: {first.name} and {second.name} do not have {metric!r} of the same two or "
            f"more replicates ({len(values[0])} and {len(values[1])}); measure it for both"
        )
    return (values[1] - values[0]).to_numpy(float)


@dataclass(frozen=True)
class Divergence:
    """The first iteration at which a chain left the finite range, and the part that did so."""

    iteration: float
    fraction: float


COLUMNS = {
    **{"iteration": int, "agent": str, "metric": str},
    **dict.fromkeys(("value", "lo", "hi", "trials"), float),
}


def read(run: Mapping[str, Any], metrics_csv: Path) -> Measured:
    """Read the ``metrics.csv`` of a run.

    Raises
    ------
    ConcordError
        If it is not a table of metrics.
    """
    import pandas

    try:
        metrics = pandas.read_csv(metrics_csv, dtype=COLUMNS)
        absent = [column for column in COLUMNS if column not in metrics]
        if absent:
            raise ValueError(f"it has no column {absent[0]}")
        if metrics[["agent", "metric"]].isna().any(axis=None):
            raise ValueError("an agent or a metric has no name")
    except (ValueError, OverflowError) as error:  # pandas' own errors, and undecodable bytes
        detail = " ".join(str(error).split())
        raise ConcordError(
            f"{metrics_csv}: it is not a table of metrics ({detail}); "
            "delete the file to have it made again"
        ) from error
    return Measured(run, metrics)


def of_text(run: Mapping[str, Any], text: str) -> Measured:
    """Return a run with the metrics of a table's text."""
    import io

    import pandas

    return Measured(run, pandas.read_csv(io.StringIO(text), dtype=COLUMNS))


def is_smoke(runs: Iterable[Measured]) -> bool:
    """Whether any of the runs was made at smoke scale, so that its figure needs the watermark."""
    return any(measured.run.get("scale") == "smoke" for measured in runs)


def lookup(run: Mapping[str, Any], key: str) -> Any:
    """Return what ``key`` is in a run, ``None`` if it has no such key.

    A swept label comes first, then the run's own parameters by dotted path
    (``sampler.step_size``). A component, such as ``topology``, stands for its name or kind.
    """
    found = _find(run, key)
    return None if found is _MISSING else found


_MISSING = object()


def _find(run: Mapping[str, Any], key: str) -> Any:
    labels = run.get("labels") or {}
    if key in labels:
        return _number(labels[key])
    found: Any = run
    for part in key.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return _MISSING
        found = found[part]
    if isinstance(found, Mapping):
        return found.get("name", found.get("kind", str(dict(found))))
    return found


def labelled(run: Mapping[str, Any], key: str) -> bool:
    """Whether a run has a label or parameter, were it null (full gradients)."""
    return _find(run, key) is not _MISSING


def _number(label: Any) -> Any:
    """Labels are text; one that was written from a number is that number again."""
    if not isinstance(label, str):
        return label
    try:
        value = float(label)
    except ValueError:
        return label
    return int(value) if value.is_integer() and "e" not in label.lower() else value


def same(a: Any, b: Any) -> bool:
    """Equality that lets a label read as text match the number it was written from."""
    return a == b or str(a) == str(b)


def select(runs: Sequence[Measured], wanted: Mapping[str, Any] | None, kind: str) -> list[Measured]:
    """Return the runs that match every entry of ``wanted``.

    An entry is ``label: value`` or ``label: [value, ...]``; a list also sets the order.

    Raises
    ------
    ConcordError
        If no run has the label, or none matches.
    """
    chosen = list(runs)
    if not chosen:
        raise ConcordError(f"figure {kind}: there are no runs to draw; name an experiment")
    # Last key first: sorting is stable, so the first list of the selection rules the order.
    for key, value in reversed(list((wanted or {}).items())):
        _require(runs, key, kind)
        options = value if isinstance(value, (list, tuple)) else [value]
        chosen = [m for option in options for m in having(chosen, key, option)]
    if not chosen:
        present = {key: distinct(runs, key) for key in wanted or {}}
        raise ConcordError(
            f"figure {kind}: no run matches select {dict(wanted or {})}; "
            f"the runs given have {present}"
        )
    return chosen


def distinct(runs: Sequence[Measured], key: str) -> list[Any]:
    """The different values of ``key``, in the order in which the runs show them."""
    values: list[Any] = []
    for measured in runs:
        value = lookup(measured.run, key)
        if not any(same(value, other) for other in values):
            values.append(value)
    return values


def having(runs: Sequence[Measured], key: str, value: Any) -> list[Measured]:
    """Return the runs of which ``key`` is the value."""
    return [m for m in runs if same(lookup(m.run, key), value)]


def split(runs: Sequence[Measured], key: str, kind: str) -> list[tuple[Any, list[Measured]]]:
    """Group runs by the value of ``key``, in order of appearance; the key must exist."""
    _require(runs, key, kind)
    return [(value, having(runs, key, value)) for value in distinct(runs, key)]


def only(runs: Sequence[Measured], what: str, kind: str) -> Measured:
    """Return the single run that is to be drawn as ``what``; two of them are a user's mistake."""
    if len(runs) > 1:
        first, second = runs[0].name, runs[1].name
        raise ConcordError(
            f"figure {kind}: runs {first} and {second} would both be {what}; "
            "tell them apart with rows, columns or lines, or keep one with select"
        )
    return runs[0]


def series(
    measured: Measured, metric: str, agent: int | str, kind: str, family: str | None = None
) -> Series:
    """Return a metric of an agent over iterations.

    ``family`` is what an experiment lists under ``metrics`` to get it, if it has another name.

    Raises
    ------
    ConcordError
        If the run has no such metric, or has it for other agents only.
    """
    table = measured.metrics
    rows = table[(table["metric"] == metric).to_numpy()]
    if rows.empty:
        experiment = measured.run.get("experiment", "?")
        raise ConcordError(
            f"figure {kind}: run {measured.name} has no metric {metric!r}; "
            f"add {family or metric!r} to the metrics of experiment {experiment!r}"
        )
    mine = rows[(rows["agent"] == str(agent)).to_numpy()]
    if mine.empty:
        recorded = ", ".join(dict.fromkeys(rows["agent"]))
        add = "record all agents" if agent == "network" else "add it to record.agents"
        raise ConcordError(
            f"figure {kind}: run {measured.name} has {metric!r} for agents {recorded}, not for "
            f"{agent!r}; {add} of the experiment or choose one of those"
        )
    columns = (mine[name].to_numpy(float) for name in ("iteration", "value", "lo", "hi"))
    return Series(*columns)


def has(measured: Measured, metric: str) -> bool:
    """Whether the run's table holds the metric."""
    return bool((measured.metrics["metric"] == metric).any())


def divergence(measured: Measured) -> Divergence | None:
    """Return when a chain of the run first left the finite range, ``None`` if none did.

    Read from ``diverged``, the fraction of chains that did, and ``diverged_first``, the iteration.
    """
    table = measured.metrics
    fraction = table["value"].to_numpy()[(table["metric"] == "diverged").to_numpy()]
    first = table["value"].to_numpy()[(table["metric"] == "diverged_first").to_numpy()]
    if not first.size:
        return None
    return Divergence(float(first[0]), float(fraction[-1]) if fraction.size else math.nan)


def diverged(params: Any, runs: Sequence[Measured]) -> str | None:
    """Return a sentence that names the runs shown that diverged, None if none did.

    What a figure or table shows of its runs is what its options select, or those of its panels or
    columns do.
    """
    selects = _selections(params)
    chosen = [m for m in runs if any(matches(m.run, select or {}) for select in selects)]
    axes = [key for key in _axes(chosen) if len(distinct(chosen, key)) > 1]
    found = []
    for measured in chosen:
        lost = divergence(measured)
        if lost is not None:
            labels = [f"{key} {lookup(measured.run, key)}" for key in axes]
            chains = measured.run.get("chains", 1)
            part = f"{lost.fraction * chains:.0f} of {chains} chains"
            name = ", ".join(labels) or measured.name
            found.append(f"{name} ({part}, first at iteration {lost.iteration:g})")
    if not found:
        return None
    more = [f"and {len(found) - _NAMED} more runs"] if len(found) > _NAMED else []
    return "Diverged: " + "; ".join(found[:_NAMED] + more)


_NAMED = 6


@runtime_checkable
class _Selecting(Protocol):
    select: Mapping[str, Any] | None


@runtime_checkable
class _Panelled(Protocol):
    panels: tuple[_Selecting, ...]


@runtime_checkable
class _Columned(Protocol):
    columns: Any  # where they are a tuple, each selects


def _selections(params: Any) -> list[Mapping[str, Any] | None]:
    """Return what a kind's options select, or those of its panels or columns if it has such."""
    if isinstance(params, _Panelled) and params.panels:
        return [panel.select for panel in params.panels]
    if isinstance(params, _Columned) and isinstance(params.columns, tuple):
        return [column.select for column in params.columns]
    return [params.select if isinstance(params, _Selecting) else None]


def matches(run: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a run is among those that ``select`` would choose."""
    for key, value in wanted.items():
        options = value if isinstance(value, (list, tuple)) else [value]
        if not any(same(lookup(run, key), option) for option in options):
            return False
    return True


def _axes(runs: Sequence[Measured]) -> list[str]:
    return list(
        dict.fromkeys(["experiment", *(k for m in runs for k in m.run.get("labels") or {})])
    )


def _require(runs: Sequence[Measured], key: str, kind: str) -> None:
    if not any(labelled(m.run, key) for m in runs):
        options = {name for m in runs for name in [*(m.run.get("labels") or {}), *m.run]}
        raise ConcordError(
            f"figure {kind}: no run has {key!r} as a label or parameter; {nearest(key, options)}"
        )


def of_sets(measured: Measured, metric: str, agent: int | str) -> np.ndarray:
    """Return a metric at its last iteration, on every data set if the run has several.

    Empty where the run has none, such as of a sampler that refuses the task.
    """
    table = measured.metrics[(measured.metrics["agent"] == str(agent)).to_numpy()]
    own = table[table["metric"].str.startswith(f"{metric}_set_").to_numpy()]
    if own.empty:
        return table["value"][(table["metric"] == metric).to_numpy()].to_numpy(float)[-1:]
    return own["value"].to_numpy(float)


def missing(measured: Measured) -> str | None:
    """Return why a cell of the arena has no scores, None if it has some."""
    table = measured.metrics
    value = table["value"][(table["metric"] == "applicable").to_numpy()]
    if not len(value) or value.iloc[0] > 0:
        return None
    return "not run" if value.iloc[0] < 0 else "not applicable"


def estimated(measured: Measured) -> bool:
    """Return whether the scores of a cell of the arena are estimated from chains."""
    return bool((measured.metrics["value"][(measured.metrics["metric"] == "exact")] == 0).any())
