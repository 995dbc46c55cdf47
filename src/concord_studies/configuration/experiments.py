"""The experiments of a study, expanded into runs: what jobs that make these read of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace as with_changes
from functools import cached_property
from pathlib import Path
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord_studies.configuration.expansion import Change, expand
from concord_studies.configuration.stated import Stated
from concord_studies.configuration.sweep import check_label, leaves, merge, nest
from concord_studies.runs.run import Run


class Experiments(Stated):
    """A study with its runs, expanded from sweeps.

    runs: every run, keyed by (experiment, run name), in the order of the file.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], checked: bool = False) -> None:
        """Read a study's folder; ``checked`` skips the checks of values."""
        super().__init__(path, config, checked)
        self._resolved: dict[str, list[Run]] = {}  # by experiment

    @cached_property
    def alternatives(self) -> dict[str, dict[str, Change]]:
        """Return the change of each alternative, by assumption and label."""
        found: dict[str, dict[str, Change]] = {}
        for name, entry in self.assumptions.items():
            for number, alternative in enumerate(entry.alternatives):
                place, label = f"assumptions.{name}.alternatives[{number}]", alternative.label
                check_label(name, f"assumptions.{name}", self.files["assumptions"])
                if label in found.setdefault(name, {}):
                    raise ConcordError(
                        f"{self.at(place)}.label: another one is called {label}; rename one"
                    )
                keys: dict[str, Any] = {}
                for key, value in alternative.set.items():
                    keys = merge(keys, nest(key, value))
                places = {key: self.at(f"{place}.set.{key}") for key in leaves(keys)}
                reads = alternative.reads
                found[name][label] = Change(name, keys, places, alternative.when or {}, reads)
        return found

    def varied(self, run: Run, changes: Sequence[Change] = (), seed: int | None = None) -> Run:
        """Return a run with alternatives of assumptions, or another master seed, in effect.

        Alternatives of assumptions that the run does not rest on leave it as it is.

        A ConcordError if a run cannot be so; it names the alternative.
        """
        changes = [change for change in changes if change.keys and change.holds_for(run)]
        if changes:
            (run,) = expand(self, run.experiment, run.name, changes)
        return run if seed is None else with_changes(run, seed=seed)

    @cached_property
    def runs(self) -> dict[tuple[str, str], Run]:
        """Return every run, keyed by (experiment, run name), in the order of the file."""
        return {(name, run.name): run for name in self.experiments for run in self._runs_of(name)}

    def _runs_of(self, experiment: str) -> list[Run]:
        """Return the runs of an experiment, without resolving others."""
        if experiment not in self._resolved:
            self._resolved[experiment] = list(expand(self, experiment))
        return self._resolved[experiment]

    @cached_property
    def arenas(self) -> tuple[str, ...]:
        """Return the experiments whose runs are cells of the arena: they have the axis entry."""
        sweeps = {name: entry.get("sweep", {}) for name, entry in self.experiments.items()}
        return tuple(name for name, sweep in sweeps.items() if "entry" in sweep)

    def run(self, experiment: str, name: str) -> Run:
        """Return one run, without resolving others."""
        return self.chosen(experiment, [name])[0]

    def chosen(self, experiment: str, names: Sequence[str]) -> list[Run]:
        """Return some runs of an experiment, without resolving others."""
        if experiment not in self.experiments:
            raise ConcordError(
                f"{self.at('experiments')}: there is no experiment {short(experiment)}; "
                f"{nearest(experiment, self.experiments)}"
            )
        found = {run.name: run for run in expand(self, experiment, only=names)}
        for name in names:
            if name not in found:
                known = [run.name for run in expand(self, experiment)]
                raise ConcordError(
                    f"{self.at('experiments')}: {experiment} has no run {short(name)}; "
                    f"{nearest(name, known)}"
                )
        return [found[name] for name in names]
