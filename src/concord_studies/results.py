"""What runs measured: their tables of metrics, read from files, and curves and divergences of them.

Nothing is estimated here: what is shown of a run is in its ``metrics.csv``. Which runs are meant is
said in ``selection``; what numbers of several runs say together is in ``scores``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concord import kinds
from concord.errors import ConcordError
from concord_studies import metrics, words
from concord_studies.digests import digest
from concord_studies.io import read_text
from concord_studies.provenance import AGAIN, read_provenance
from concord_studies.selection import distinct, lookup, matches

if TYPE_CHECKING:
    import pandas

AVERAGE = "average"
NAMED = 6  # the most diverged runs that a note names


@dataclass(frozen=True)
class Measured:
    """A run's document with the table of its metrics.

    run: its document, what ``runs.yaml`` states of it.
    metrics: columns iteration, agent (text: an index, ``average`` or ``network``), metric, value,
    lo, hi, trials (as ``metrics`` has them); ordered by iteration within a metric and an agent.
    names: the study's texts for its labels' values, {value: text}.
    """

    run: Mapping[str, Any]
    metrics: pandas.DataFrame
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the run in messages."""
        return f"{self.run.get('experiment', '?')}/{self.run.get('run', '?')}"

    def values(self, metric: str, agent: int | str | None = None) -> np.ndarray:
        """Return a metric's values, of all agents or one, in the table's order; may be empty.

        Rows are in the order of iterations, so that the last value is the last iteration's.
        """
        rows = (self.metrics["metric"] == metric).to_numpy()
        if agent is not None:
            rows = rows & (self.metrics["agent"] == str(agent)).to_numpy()
        return self.metrics["value"].to_numpy(float)[rows]


@dataclass(frozen=True)
class Series:
    """One metric of one agent over iterations: fields of shape (rows,); lo and hi may be NaN."""

    iteration: np.ndarray
    value: np.ndarray
    lo: np.ndarray
    hi: np.ndarray

    @classmethod
    def without_intervals(cls, iteration: np.ndarray, value: np.ndarray) -> Series:
        """Return a series of values whose interval ends are NaN."""
        return cls(iteration, value, *np.full((2, len(value)), np.nan))

    def take(self, rows: Any) -> Series:
        """Return the rows that a mask or indices choose."""
        return Series(self.iteration[rows], self.value[rows], self.lo[rows], self.hi[rows])

    def finite_before(self, iteration: float) -> Series:
        """Return the rows before ``iteration`` whose value is finite."""
        return self.take((self.iteration < iteration) & np.isfinite(self.value))


@dataclass(frozen=True)
class Divergence:
    """The first iteration at which a chain left the finite range, and the share that did."""

    iteration: float
    fraction: float


COLUMNS = {
    **{"iteration": int, "agent": str, "metric": str},
    **dict.fromkeys(("value", "lo", "hi", "trials"), float),
}


def read(
    folder: Path, names: Mapping[str, str] | None = None, planned: str | None = None
) -> dict[str, Measured]:
    """Return the runs of an experiment by name, each with its metrics, from its folder.

    names: the study's texts for labels' values.
    planned: the digest of the runs.yaml that it is to be made from. None: of any.
    A ConcordError if the table was cut or edited, or made from another runs.yaml than that, or than
    the one that lies beside it.
    """
    import pandas  # a quarter of a second

    path, runs = folder / "metrics.csv", folder / "runs.yaml"
    made_from, text = read_provenance(path)["planned"], read_text(runs) if runs.is_file() else ""
    if made_from != digest(text) or planned not in (None, made_from):
        raise ConcordError(f"{path}: it was made from another runs.yaml; {AGAIN}")
    documents = json.loads(text)["runs"]
    types: Any = {"run": str, **COLUMNS}
    table = pandas.read_csv(path, dtype=types, usecols=list(types))
    for family in {name for run in documents.values() for name in run.get("metrics", ())}:
        kinds.find("metrics", family)  # whose labels are shown, and which may be a plug-in
    rows = dict(list(table.groupby("run", sort=False)[list(COLUMNS)]))
    nothing = table.iloc[:0][list(COLUMNS)]
    return {
        name: Measured(document, rows.get(name, nothing).reset_index(drop=True), names or {})
        for name, document in documents.items()
    }


def from_rows(run: Mapping[str, Any], rows: Iterable[metrics.Row]) -> Measured:
    """Return a measured run from a run's document and the rows of its metrics."""
    import pandas  # a quarter of a second

    cells = [[None if cell == "" else cell for cell in metrics.cells(row)] for row in rows]
    return Measured(run, pandas.DataFrame(cells, columns=list(COLUMNS)).astype(COLUMNS))


@contextmanager
def name_in_errors(section: str, make: Callable[..., Any]) -> Iterator[None]:
    """Prefix the errors of a block with the kind of output: "figure curves: ...".

    make: the kind's ``draw`` or ``tabulate``, whose module has its name.
    """
    try:
        yield
    except ConcordError as error:
        raise ConcordError(f"{section} {make.__module__.rpartition('.')[2]}: {error}") from error


def is_smoke(runs: Iterable[Measured]) -> bool:
    """Return whether any run was made at smoke scale, so that its figure needs the watermark."""
    return any(measured.run.get("scale") == "smoke" for measured in runs)


def series(measured: Measured, metric: str, agent: int | str) -> Series:
    """Return a metric of an agent over iterations, with interval ends.

    The ends are nan where an interval is from 0 to infinity, as of heavy-tailed chains: none is
    drawn. A ConcordError if the run has no such metric, or has it for other agents only.
    """
    table = measured.metrics
    rows = table[(table["metric"] == metric).to_numpy()]
    if rows.empty:
        family = next(iter(metrics.families(metric)), metric)
        raise ConcordError(
            f"run {measured.name} has no metric {metric!r}; add {family!r} to the metrics of "
            f"experiment {measured.run.get('experiment', '?')!r}"
        )
    of_agent = rows[(rows["agent"] == str(agent)).to_numpy()]
    if of_agent.empty:
        recorded = ", ".join(dict.fromkeys(rows["agent"]))
        add = "record all agents of the experiment or " if agent == "network" else ""
        if str(agent).isdigit():
            add = "add it to record.agents of the experiment or "
        raise ConcordError(
            f"run {measured.name} has {metric!r} for agents {recorded}, not for {agent!r}; "
            f"{add}choose one of those"
        )
    columns = (of_agent[name].to_numpy(float) for name in ("iteration", "value", "lo", "hi"))
    iteration, value, lo, hi = columns
    shown = np.where(np.isfinite(value) & (lo <= 0) & np.isposinf(hi), np.nan, 1.0)
    return Series(iteration, value, lo * shown, hi * shown)


def divergence(measured: Measured) -> Divergence | None:
    """Return the first divergence of a run's chains. None if no chain diverged.

    Read from ``diverged``, the fraction of chains that did, and ``diverged_first``, the iteration.
    """
    fraction, first = measured.values("diverged"), measured.values("diverged_first")
    if not first.size:
        return None
    return Divergence(float(first[0]), float(fraction[-1]) if fraction.size else math.nan)


def divergence_note(params: Any, runs: Sequence[Measured]) -> str | None:
    """Return a sentence with the diverged runs of a figure or table. None if there are none.

    What a figure or table shows of its runs is what its options select, or those of its panels or
    columns do.
    """
    parts = getattr(params, "panels", ())
    if isinstance(columns := getattr(params, "columns", None), tuple):  # not a label's name
        parts = columns
    shown = getattr(params, "shows", None)  # of a table; a figure may have a text there
    alone = shown if isinstance(shown, Mapping) else getattr(params, "select", None)
    selects = [part.select for part in parts] or [alone]
    chosen = [m for m in runs if any(matches(m.run, select or {}) for select in selects)]
    keys = (key for m in chosen for key in m.run.get("labels") or {})
    axes = [k for k in dict.fromkeys(["experiment", *keys]) if len(distinct(chosen, k)) > 1]
    names = getattr(params, "names", None)
    texts = []
    for measured in chosen:
        if (lost := divergence(measured)) is not None:
            chains = measured.run.get("chains", 1)
            part = f"{lost.fraction * chains:.0f} of {chains} chains, " if chains > 1 else ""
            labels = (words.label(key, lookup(measured.run, key), names) for key in axes)
            name = ", ".join(labels) or measured.name
            texts.append(f"{name} ({part}first at iteration {lost.iteration:g})")
    if len(texts) > NAMED:
        texts[NAMED:] = [f"and {len(texts) - NAMED} more runs"]
    return "Diverged: " + "; ".join(texts) if texts else None
