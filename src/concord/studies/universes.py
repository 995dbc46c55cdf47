"""The multiverse of a study: what its runs are with another defensible value, or another seed.

A universe is the study with one alternative of one assumption in the place of ours, or with another
master seed, or (``pairs``) with two alternatives. It consists of the runs that it changes; all
others are those of the study. A run that an earlier universe has as well is computed there.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as with_changes
from typing import Any

from concord import metrics
from concord.contracts import OfIterations
from concord.errors import ConcordError, nearest, short
from concord.options import build
from concord.plugins import plugin
from concord.provenance import digest
from concord.sampling.recorder import Record
from concord.studies.paper import Change, Paper, Run
from concord.studies.small import SMALL, cost

SEEDS = range(1, 6)
BASE = "base"
SMALL_RUNS = "small-runs"  # a batch


@dataclass(frozen=True)
class Universe:
    """What differs from the study: alternatives of assumptions, or the master seed."""

    name: str
    changes: tuple[Change, ...] = ()
    seed: int | None = None

    def reads(self, run: Run) -> list[Mapping[str, Any]]:
        """Return what claims read of a run of the study in the place of what they name."""
        return [c.reads for c in self.changes if c.reads and c.holds_for(run.mapping)]


def universes(paper: Paper, pairs: bool) -> dict[str, Universe]:
    """Return a study's universes by name, but for the study itself."""
    alone = [
        Universe(f"{name}.{label}", (change,))
        for name, changes in paper.alternatives.items()
        for label, change in changes.items()
    ]
    found = alone + [
        Universe(f"seed_{seed}", seed=seed) for seed in SEEDS if seed != paper.config["seed"]
    ]
    if pairs:
        found += [
            Universe(f"{one.name}+{other.name}", one.changes + other.changes)
            for one, other in itertools.combinations(alone, 2)
            if one.changes[0].assumption != other.changes[0].assumption
        ]
    return {universe.name: universe for universe in found}


def universe(paper: Paper, name: str) -> Universe:
    """Return one universe by its name."""
    known = universes(paper, "+" in name)
    if name not in known:
        assumption, dot, label = name.partition(".")
        labels = paper.alternatives.get(assumption, {})
        if dot and assumption not in paper.assumptions:
            remedy = f"{paper.at('assumptions')} has no {short(assumption)}"
            raise ConcordError(f"{remedy}; {nearest(assumption, paper.assumptions)}")
        if dot and "+" not in label:
            place = paper.at(f"assumptions.{assumption}.alternatives")
            raise ConcordError(f"{place}: none is called {short(label)}; {nearest(label, labels)}")
        raise ConcordError(f"there is no universe {short(name)}; {nearest(name, known)}")
    return known[name]


class Multiverse:
    """A study's universes, and the runs that each of them changes.

    Attributes
    ----------
    runs
        By universe, then by experiment and name of the study's run: the run in its place.
    batches
        By universe and batch: the runs that one job computes, as ``lean`` has them. Small runs are
        a batch, those of any other experiment another; what an earlier universe has is there.
    """

    def __init__(self, paper: Paper) -> None:
        self.paper, self.universes = paper, universes(paper, paper.config["pairs"])
        self.runs: dict[str, dict[tuple[str, str], Run]] = {}
        self.batches: dict[tuple[str, str], list[Run]] = {}
        read = {
            (run.experiment, run.name): run
            for run in paper.claim_runs()
            if "arena" not in run.mapping
        }
        self._own = {self._key(run): run for run in read.values()}
        self._homes = dict.fromkeys(self._own, (BASE, ""))
        for name, changes in self.universes.items():
            others = {
                key: paper.varied(run, changes.changes, changes.seed) for key, run in read.items()
            }
            self.runs[name] = {
                key: run
                for key, run in others.items()
                if run.mapping != read[key].mapping or changes.reads(read[key])
            }
            for whole in self.runs[name].values():
                run = lean(paper, whole)
                batch = SMALL_RUNS if cost(run.mapping) <= SMALL else run.experiment
                home = self._homes.setdefault(digest(run.mapping), (name, batch))
                if home == (name, batch):
                    self.batches.setdefault(home, []).append(run)

    def _key(self, run: Run) -> str:
        return digest(lean(self.paper, run).mapping)

    def twin(self, run: Run) -> Run:
        """Return the run of the study that is the same."""
        return self._own[self._key(run)]

    def home(self, run: Run) -> tuple[str, str]:
        """Return universe and batch that compute a run; the universe BASE is the study."""
        return self._homes[self._key(run)]

    def batch(self, name: str, batch: str) -> list[Run]:
        """Return the runs of a batch of a universe."""
        universe(self.paper, name)
        found = [own for known, own in self.batches if known == name]
        if batch not in found:
            raise ConcordError(
                f"{self.paper.path}: {name} computes no {short(batch)}; {nearest(batch, found)}"
            )
        return self.batches[name, batch]


def lean(paper: Paper, run: Run) -> Run:
    """Return a run with the metrics, and iterations, that claims read of it, and no others.

    It has no chains where all of these are exact. A run of which claims read nothing stays whole.
    """
    read, whole = paper.claim_reads.get((run.experiment, run.name), []), run.mapping
    changes = [change for labels in paper.alternatives.values() for change in labels.values()]
    others = [change.reads.get("metric", {}) for change in changes]
    names = {other.get(q.metric, q.metric) for q in read for other in ({}, *others)}
    families = [f for f in whole["metrics"] if any(metrics.computes(f, name) for name in names)]
    if not families:
        return run
    record = build(Record, whole["record"], "record")
    apart = all(isinstance(plugin("metrics", f, "metrics"), OfIterations) for f in families)
    if all(any(metrics.exact(family, name) for family in families) for name in names):
        kept: dict[str, Any] = {"chains": 0, "record": {**whole["record"], "probes": []}}
        if whole["problem"].get("legacy_seed") and whole["partition"]["kind"] == "consecutive":
            kept["seed"] = paper.config["seed"]  # it draws nothing
    elif apart and all(quantity.at != "all" for quantity in read):
        at = {k for q in read for k in (q.at if isinstance(q.at, tuple) else [q.at])} - {"last"}
        due = record.iterations(whole["iterations"]).tolist()
        kept = {"record": {**whole["record"], "at": [k for k in due if k in {*at, due[-1]}]}}
    else:
        kept = {}
    return with_changes(run, mapping={**whole, "metrics": families, **kept})
