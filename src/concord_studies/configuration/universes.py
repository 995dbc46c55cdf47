"""The multiverse of a study: what its runs are with another defensible value, or another seed.

A universe is the study with one alternative of one assumption in the place of ours, or with another
master seed, or (``pairs``) with two alternatives. It consists of the runs that it changes; all
others are those of the study. A run that an earlier universe has as well is computed there.
"""

import itertools
from dataclasses import dataclass

from msgspec.structs import replace

from concord_studies import metrics
from concord_studies.claims.robustness import BASE, SEED
from concord_studies.configuration.expansion import Change
from concord_studies.configuration.sections import Reads
from concord_studies.configuration.study import Study
from concord_studies.experiment import Experiment, UniverseExperiment, cost
from concord_studies.runs.run import Run

SEEDS = range(1, 6)
LONG_RUN = 2e6  # updates of a run, a second or two: such runs may be left out (``not_varied``)


@dataclass(frozen=True)
class Universe:
    """A variation of a study: alternatives of one or two assumptions, or another master seed."""

    name: str
    changes: tuple[Change, ...] = ()
    seed: int | None = None

    def find_replacements(self, run: Run) -> list[Reads]:
        """Return the metrics and agents that claims read instead of those they name, of a run."""
        return [c.reads for c in self.changes if c.reads != Reads() and c.holds_for(run)]


def universes(study: Study, pairs: bool) -> dict[str, Universe]:
    """Return a study's universes by name, without the study itself; ``pairs``: two changes, too."""
    alone = [
        Universe(f"{name}.{label}", (change,))
        for name, changes in study.alternatives.items()
        for label, change in changes.items()
    ]
    all_universes = alone + [
        Universe(f"{SEED}{seed}", seed=seed) for seed in SEEDS if seed != study.config["seed"]
    ]
    if pairs:
        all_universes += [
            Universe(f"{one.name}+{other.name}", one.changes + other.changes)
            for one, other in itertools.combinations(alone, 2)
            if one.changes[0].assumption != other.changes[0].assumption
        ]
    return {universe.name: universe for universe in all_universes}


class Multiverse:
    """A study's universes, with the runs that each universe changes and computes.

    runs: by universe, then by experiment and name of the study's run: the run in its place.
    experiments: the runs that each universe computes, by universe, reduced by ``reduce_run``. Runs
    that an earlier universe computes are left out, and long ones of experiments that the
    configuration's key ``not_varied`` lists.
    """

    def __init__(self, study: Study) -> None:
        """Vary every run that the study's claims read, in each universe."""
        self.study, self.universes = study, universes(study, study.config["pairs"])
        self.runs: dict[str, dict[tuple[str, str], Run]] = {}
        self.experiments: dict[str, Experiment] = {}
        base = {(run.experiment, run.name): run for run in study.claim_runs() if run.arena is None}
        self._base_runs = {self._digest_claimed(run): run for run in base.values()}
        self._homes = dict.fromkeys(self._base_runs, BASE)
        for name, universe in self.universes.items():
            self.runs[name], computed = {}, {}
            for key, run in base.items():
                other = study.vary_run(run, universe.changes, universe.seed)
                if other.document == run.document and not universe.find_replacements(run):
                    continue
                self.runs[name][key] = other
                reduced = reduce_run(study, other)
                spared = f"{study.key}/{run.experiment}" in study.config["not_varied"]
                is_first = self._homes.setdefault(reduced.digest, name) == name
                if is_first and not (spared and cost(reduced) > LONG_RUN):
                    computed[f"{run.experiment}/{run.name}"] = reduced
            if computed:
                self.experiments[name] = UniverseExperiment(study.path, computed)

    def _digest_claimed(self, run: Run) -> str:
        """Return the digest of what a run is reduced to by ``reduce_run``, its identity here."""
        return reduce_run(self.study, run).digest

    def find_equal_run(self, run: Run) -> Run:
        """Return the study's run that equals a universe's run in all that claims read of it."""
        return self._base_runs[self._digest_claimed(run)]

    def find_universe_of(self, run: Run) -> str:
        """Return the name of the universe that computes a run; "base" if the study itself does."""
        return self._homes[self._digest_claimed(run)]


def reduce_run(study: Study, run: Run) -> Run:
    """Return a run reduced to the metrics and iterations that claims read of it.

    It has no chains where all of these are exact. A run of which claims read nothing stays whole.
    """
    read = study.claim_reads.get((run.experiment, run.name), [])
    changes = [change for labels in study.alternatives.values() for change in labels.values()]
    others = [change.reads.metric for change in changes]
    names = {other.get(q.metric, q.metric) for q in read for other in ({}, *others)}
    families = tuple(f for f in run.metrics if any(metrics.computes(f, name) for name in names))
    if not families:
        return run
    apart = all(metrics.find_family(family).apart for family in families)
    if all(any(metrics.is_exact(family, name) for family in families) for name in names):
        legacy = run.document["problem"].get("legacy_seed")
        draws_nothing = legacy and run.partition.kind == "consecutive"
        return run.vary(
            metrics=families,
            chains=0,
            record=replace(run.record, probes=()),
            seed=study.config["seed"] if draws_nothing else run.seed,
        )
    if apart and all(quantity.at != "all" for quantity in read):
        at = {k for q in read for k in (q.at if isinstance(q.at, tuple) else [q.at])} - {"last"}
        due = run.record.iterations(run.iterations).tolist()
        iterations = tuple(k for k in due if k in {*at, due[-1]})
        return run.vary(metrics=families, record=replace(run.record, at=iterations))
    return run.vary(metrics=families)
