"""A paper's folder: experiments expanded into runs, figures, tables and claims, all checked.

An experiment is one problem with a sweep; each cell of the sweep is a run, and its resolved mapping
(``run.yaml``) states every parameter, nothing implicit.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace as with_changes
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from concord import plugins
from concord.errors import ConcordError, nearest, short
from concord.io import load_yaml
from concord.options import build, build_file
from concord.plugins import plugin
from concord.runs.keys import STUDY, Keys
from concord.runs.run import Run
from concord.studies import assumptions, families, named
from concord.studies.starts import resolved_sampler
from concord.studies.sweep import (
    LONGEST_NAME,
    MOST_RUNS,
    cells_of,
    check_label,
    label_texts,
    leaves,
    merge,
    nest,
    relocate,
)

if TYPE_CHECKING:
    from concord.claims.model import Case, Claim
    from concord.claims.quantities import Quantity
    from concord.contracts import Read

# Words that a paper's key cannot be: rules, which are targets as keys are, folders and files beside
# the papers' among the results, and the report's own targets.
RESERVED = {
    *("default", "reproduce", "everything", "ledger", "unknown", "made"),
    *("fetch", "resolve", "sample", "measure", "figure", "table", "judge", "join", "compare"),
    *("site", "smoke", "full", "logs", "benchmarks", "claims", "workflow", "statistics"),
    *("board", "scores", "cards", "small", "many", "multiverse", "vary", "survey"),
}


EXPERIMENTS_ONLY = ("sweep", "overrides", "smoke", "full", "title")


DEFAULTS: dict[str, Any] = {
    "partition": {"kind": "equal"},
    "initial": {"kind": "normal", "mean": 0.0, "sd": 1.0},
    "record": {},
    "metrics": [],
    "reading": "published",
}

READINGS = {  # what a paper need not declare
    "published": "the equations as printed",
    "released": "what the authors' released code computes",
    "corrected": "what the text says is meant, where print is inconsistent",
}


class Change(NamedTuple):
    """What an alternative of an assumption sets: nested keys, and where the file has them.

    ``when`` are the runs that it changes, of those that rest on the assumption, and ``reads`` what
    claims read of them in the place of what they name (``model.Reads``).
    """

    assumption: str
    keys: dict[str, Any]
    places: dict[str, str]
    when: Mapping[str, Any] = {}
    reads: Mapping[str, Any] = {}

    def holds_for(self, run: Run) -> bool:
        """Return whether it changes this run of the study."""
        rests = self.assumption in run.assumptions
        return rests and assumptions.holds_for(run.document, self.when)


class Paper:
    """One paper: its experiments expanded into runs, its figures, tables and claims.

    Parameters
    ----------
    path
        The folder; its name is the paper's key. Each section is in one of its YAML files. Its
        plug-ins are then those at work.
    config
        The validated ``config/config.yaml``.
    checked
        The files have been checked before (jobs take over what the workflow checked at its start):
        no more than reading them is needed, which spares every job the start-up of all its modules.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], checked: bool = False) -> None:
        self.path, self.config, self.checked = path, config, checked
        self.key = path.name
        if path.is_file():
            raise ConcordError(f"{path}: it is a file; a paper is a folder of them, name that")
        if not STUDY.fullmatch(self.key):
            raise ConcordError(
                f"{path}: a paper's key has letters and digits only (at most 60); rename the folder"
            )
        if self.key.lower() in RESERVED:
            raise ConcordError(
                f"{path}: {self.key!r} is a word of the workflow's own; rename the folder, "
                "to the first author and the year for example"
            )
        self.mapping: dict[str, Any] = {}
        self.files: dict[str, Path] = {}  # of each section
        self._resolved: dict[str, list[Run]] = {}  # by experiment
        self._selected: dict[str, list[Run]] = {}  # by selection
        plugins.use(path)
        self._read()

    @property
    def printed(self) -> bool:
        """Whether it is a paper, not a study of one's own beside them (``config/studies``)."""
        return self.path.parent.name != "studies"

    def _read(self) -> None:
        """Join the sections of all files, checked one by one."""
        files = sorted(self.path.glob("[!.]*.yaml"))
        if not files:
            raise ConcordError(f"{self.path}: cannot be read (no folder with YAML files)")
        for file in files:
            sections = load_yaml(file)
            if not isinstance(sections, dict):
                raise ConcordError(f"{file}: it is not a mapping of sections to their contents")
            if not self.checked:
                from concord.studies.model import Study  # costs a job its start-up

                build_file(Study, sections, file)
            for section in sections:
                if section in self.files:
                    other = self.files[section].name
                    raise ConcordError(f"{file}: {section}: it is in {other}, too; join them")
                self.files[section] = file
            self.mapping |= sections
        if not self.checked:
            for section in ("paper", "experiments"):
                if self.mapping.get(section) is None:
                    raise ConcordError(
                        f"{self.path}: the key {section!r} is missing; add it to a file"
                    )
            for key in EXPERIMENTS_ONLY:
                if key in self.mapping.get("defaults", {}):
                    raise ConcordError(
                        f"{self.at('defaults')}.{key}: it belongs to one experiment; move it there"
                    )

    def at(self, place: str) -> str:
        """Return file and key of a place such as ``figures.fig1.runs[0]``, for messages."""
        section = re.match(r"\w*", place)[0]  # type: ignore[index]  # it matches
        return f"{self.files.get(section, self.path)}: {place}"

    @property
    def experiments(self) -> dict[str, Any]:
        """Return the experiments section."""
        return self.mapping["experiments"]

    @property
    def assumptions(self) -> dict[str, Any]:
        """Return the assumptions section; one without a reason is just not stated."""
        entries = self.mapping.get("assumptions", {}).items()
        return {name: {"reason": "not stated", **entry} for name, entry in entries}

    @cached_property
    def alternatives(self) -> dict[str, dict[str, Change]]:
        """Return what the alternatives of assumptions set, by assumption and label."""
        found: dict[str, dict[str, Change]] = {}
        for name, entry in self.assumptions.items():
            for number, alternative in enumerate(entry.get("alternatives", ())):
                place, label = f"assumptions.{name}.alternatives[{number}]", alternative["label"]
                check_label(name, f"assumptions.{name}", self.files["assumptions"])
                if label in found.setdefault(name, {}):
                    raise ConcordError(
                        f"{self.at(place)}.label: another one is called {label}; rename one"
                    )
                keys: dict[str, Any] = {}
                for key, value in alternative.get("set", {}).items():
                    keys = merge(keys, nest(key, value))
                places = {key: self.at(f"{place}.set.{key}") for key in leaves(keys)}
                when, reads = (alternative.get(key, {}) for key in ("when", "reads"))
                found[name][label] = Change(name, keys, places, when, reads)
        return found

    def varied(self, run: Run, changes: Sequence[Change] = (), seed: int | None = None) -> Run:
        """Return a run as it is with alternatives of assumptions, or another master seed.

        Alternatives of assumptions that it does not rest on leave it as it is.

        Raises
        ------
        ConcordError
            If a run cannot be so; it names the alternative.
        """
        changes = [change for change in changes if change.keys and change.holds_for(run)]
        if changes:
            (run,) = self._expand(run.experiment, run.name, changes)
        return run if seed is None else with_changes(run, seed=seed)

    @property
    def readings(self) -> dict[str, str]:
        """Return the readings that runs may follow, with their meaning."""
        return {**READINGS, **self.mapping.get("readings", {})}

    @cached_property
    def runs(self) -> dict[tuple[str, str], Run]:
        """Return every run, keyed by (experiment, run name), in the order of the file."""
        return {(name, run.name): run for name in self.experiments for run in self._runs_of(name)}

    def _runs_of(self, experiment: str) -> list[Run]:
        """Return the runs of an experiment, without resolving others."""
        if experiment not in self._resolved:
            self._resolved[experiment] = list(self._expand(experiment))
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
        found = {run.name: run for run in self._expand(experiment, only=names)}
        for name in names:
            if name not in found:
                known = [run.name for run in self._expand(experiment)]
                raise ConcordError(
                    f"{self.at('experiments')}: {experiment} has no run {short(name)}; "
                    f"{nearest(name, known)}"
                )
        return [found[name] for name in names]

    def select(self, selection: Mapping[str, Any] | str, where: str) -> list[Run]:
        """Return the runs of an experiment whose labels match.

        ``selection`` is an experiment's id, or ``{experiment: id, axis: label or [labels]}``.
        """
        if isinstance(selection, str):
            selection = {"experiment": selection}
        experiment = selection.get("experiment")
        if not isinstance(experiment, str) or experiment not in self.experiments:
            raise ConcordError(
                f"{self.at(where)}: there is no experiment {short(experiment)}; "
                f"{nearest(experiment, self.experiments)}"
            )
        if (asked := str(selection)) not in self._selected:
            self._selected[asked] = self._select(experiment, selection, where)
        return list(self._selected[asked])

    def _select(self, experiment: str, selection: Mapping[str, Any], where: str) -> list[Run]:
        wanted = {k: v for k, v in selection.items() if k != "experiment"}
        axes = self.experiments[experiment].get("sweep", {})
        runs = self._runs_of(experiment)
        for axis, value in wanted.items():
            if axis not in axes:
                raise ConcordError(
                    f"{self.at(where)}.{axis}: {experiment} has no such axis; {nearest(axis, axes)}"
                )
            labels = list(dict.fromkeys(run.labels[axis] for run in runs))
            chosen = label_texts(value)
            for label in chosen:
                if label not in labels:
                    raise ConcordError(
                        f"{self.at(where)}.{axis}: no run of {experiment} has {short(label)}; "
                        f"{nearest(label, labels)}"
                    )
            runs = [run for run in runs if run.labels[axis] in chosen]
        if not runs:
            raise ConcordError(
                f"{self.at(where)}: no run of {experiment} has {short(wanted)}; "
                f"its axes are {', '.join(axes)}"
            )
        return runs

    def output(self, section: str, name: str) -> dict[str, Any]:
        """Return the entry of a figure or table (``section``: figures or tables)."""
        entries = self.mapping.get(section, {})
        if name not in entries:
            raise ConcordError(
                f"{self.at(section)}: there is no entry {short(name)}; {nearest(name, entries)}"
            )
        return entries[name]

    def output_runs(self, section: str, name: str) -> list[Run]:
        """Return the runs that a figure or table shows, in the order of its file."""
        chosen: dict[str, Run] = {}
        for number, selection in enumerate(self.output(section, name)["runs"]):
            for run in self.select(selection, f"{section}.{name}.runs[{number}]"):
                chosen[run.folder] = run
        return list(chosen.values())

    @cached_property
    def claims(self) -> dict[str, Claim]:
        """Return the paper's claims by id, checked."""
        from concord.claims.model import Claim

        found = {}
        members = families.members(self.mapping.get("claims", {}), self.at("claims"))
        for name, member in members.items():
            where = self.at(f"claims.{member.key}")
            claim = build(Claim, member.shared, where)
            shown = {*self.mapping.get("figures", {}), *self.mapping.get("tables", {})}
            if claim.figure is not None and claim.figure not in shown:
                raise ConcordError(
                    f"{where}.figure: there is no figure or table {short(claim.figure)}; "
                    f"{nearest(claim.figure, shown)}"
                )
            for reading in claim.readings:
                self._check_reading(reading, f"{where}.readings")
            cases = {
                label: self._case(claim, case, f"claims.{member.key}")
                for label, case in member.cases.items()
            }
            found[name] = replace(claim, cases=cases)
        for name, entry in self.mapping.get("discrepancies", {}).items():
            claim_id = entry.get("checked_by")
            if claim_id is not None and claim_id not in found:
                raise ConcordError(
                    f"{self.at('discrepancies')}.{name}.checked_by: there is no claim "
                    f"{short(claim_id)}; {nearest(claim_id, found)}"
                )
        return found

    def _case(self, claim: Claim, mapping: Mapping[str, Any], place: str) -> Case:
        """Return a case of a claim, with the readings it is judged in."""
        from concord import metrics
        from concord.claims import checks, model

        where = self.at(place)
        case = model.case(mapping, claim.rule, where)
        checker = case.checker(where)
        read = checks.quantities(checker)
        readings = claim.readings or self._shared_readings(read, place)
        for number, quantity in enumerate(read):
            if quantity.reading is not None:
                self._check_reading(quantity.reading, f"{where}.check[{number}].reading")
            for reading in readings:
                runs = self.quantity_runs(quantity, reading, f"{place}.check[{number}]")
                for run in runs:
                    lacking = metrics.absent(run.document, quantity.metric, quantity.agents or ())
                    if lacking:
                        raise ConcordError(f"{where}: {run.experiment}/{run.name} {lacking}")
                    if self.config["scale"] != "smoke":
                        self._check_iterations(quantity, run, where)
                if not runs:
                    raise ConcordError(
                        f"{where}: no run of {' or '.join(quantity.experiments)} that it reads "
                        f"follows the reading {(quantity.reading or reading)!r}; change readings "
                        "or runs"
                    )
        for reading in readings:
            found = [self.quantity_runs(quantity, reading, place) for quantity in read]
            checks.require_pairs(checker, [[r.document for r in runs] for runs in found], where)
        return replace(case, readings=readings)

    @staticmethod
    def _check_iterations(quantity: Quantity, run: Run, where: str) -> None:
        """Refuse iterations that a run does not record, unless its metric has its own."""
        at = (quantity.at,) if isinstance(quantity.at, int) else quantity.at
        if not isinstance(at, str):
            who = f"{run.experiment}/{run.name} does not record"
            named.check_iterations(at, [run.document], f"{where}.check.at", who)

    def _shared_readings(self, read: Sequence[Quantity], place: str) -> tuple[str, ...]:
        """Return the readings that runs of every quantity follow, in the order of the file."""
        found = [
            [run.reading for run in self._quantity_runs(quantity, f"{place}.check")]
            for quantity in read
            if quantity.reading is None
        ]
        first, *others = found or [["published"]]
        shared = [r for r in dict.fromkeys(first) if all(r in other for other in others)]
        if not shared:
            raise ConcordError(
                f"{self.at(place)}: runs of its quantities share no reading; "
                "choose others, or state the reading of a quantity"
            )
        return tuple(shared)

    def _check_reading(self, reading: str, where: str) -> None:
        if reading not in self.readings:
            raise ConcordError(
                f"{where}: {short(reading)} is not declared under readings; "
                f"{nearest(reading, self.readings)}"
            )

    def quantity_runs(self, quantity: Quantity, reading: str, where: str) -> list[Run]:
        """Return the runs a claim's quantity is taken from, in a reading."""
        wanted = quantity.reading or reading
        runs = self._quantity_runs(quantity, where)
        return [run for run in runs if run.reading == wanted]

    def _quantity_runs(self, quantity: Quantity, where: str) -> list[Run]:
        return [
            run
            for experiment in quantity.experiments
            for run in self.select({**(quantity.runs or {}), "experiment": experiment}, where)
        ]

    def claim_runs(self) -> list[Run]:
        """Return every run that the claims read, in the order of the file."""
        return [self.runs[key] for key in self.claim_reads]

    @cached_property
    def claim_reads(self) -> dict[tuple[str, str], list[Quantity]]:
        """Return what the claims read, by experiment and name of the run."""
        from concord.claims.checks import quantities

        found: dict[tuple[str, str], list[Quantity]] = {}
        for name, claim in self.claims.items():
            where = f"claims.{name}"
            for case in claim.cases.values():
                read = quantities(case.checker(self.at(where)))
                for reading in case.readings:
                    for quantity in read:
                        for run in self.quantity_runs(quantity, reading, where):
                            found.setdefault((run.experiment, run.name), []).append(quantity)
        return found

    def check_outputs(self) -> None:
        """Check the kinds, options and runs of all figures, tables and claims."""
        self.claims  # noqa: B018 (reading them checks them)
        runs = [run.document for run in self.runs.values()]
        for name, entry in self.assumptions.items():
            mistake = assumptions.mistake(runs, entry.get("rests", {}))
            if mistake is not None:
                raise ConcordError(f"{self.at(f'assumptions.{name}.rests')}: {mistake}")
            self._check_caption(name, entry, runs)
        self._check_alternatives()
        for section in ("figures", "tables"):
            for name, entry in self.mapping.get(section, {}).items():
                where = self.at(f"{section}.{name}")
                kind = plugin(section, entry["kind"], where)
                params = build(kind.Params, entry.get("options"), f"{where}.options")
                runs = [run.document for run in self.output_runs(section, name)]
                named.check(params, runs, f"{where}.options", self.config["scale"] == "smoke")
                try:
                    reads = kind.reads(params)
                except ConcordError as error:
                    raise ConcordError(f"{where}.options: {error}") from None
                for read in reads:
                    self._check_read(read, runs, where)
                if section == "figures":
                    from concord.figures import style  # the kind has imported it

                    style.check_formulas(entry.get("options"), f"{where}.options")

    def _check_caption(self, name: str, entry: Mapping[str, Any], runs: Sequence[Any]) -> None:
        """Refuse an assumption that captions leave out where nothing is so."""
        from concord import metrics

        where = self.at(f"assumptions.{name}")
        if entry.get("shown") is not None:
            named.check_selection(entry["shown"], runs, f"{where}.shown")
        for number, beginning in enumerate(entry.get("of") or ()):
            if not any(metrics.computes(f, f"{beginning}*") for f in plugins.kinds("metrics")):
                raise ConcordError(
                    f"{where}.of[{number}]: no metric begins with {short(beginning)}; "
                    f"{nearest(beginning, plugins.kinds('metrics'))}"
                )

    def _check_alternatives(self) -> None:
        """Refuse alternatives that change nothing, or read what runs do not have."""
        for name, found in self.alternatives.items():
            where = self.at(f"assumptions.{name}")
            if found and self.assumptions[name].get("fixed"):
                raise ConcordError(f"{where}.fixed: it has alternatives; remove one or the other")
            for number, change in enumerate(found.values()):
                place = f"{where}.alternatives[{number}]"
                resting = [run for run in self.runs.values() if name in run.assumptions]
                mistake = assumptions.mistake([run.document for run in resting], change.when)
                if mistake is not None:
                    raise ConcordError(f"{place}.when: {mistake}")
                runs = [run for run in resting if change.holds_for(run)]
                if change.reads:
                    self._check_reads(change, runs, f"{place}.reads")
                elif self.config["scale"] == "smoke":  # its limits may leave nothing of the change
                    continue
                elif not any(self.varied(run, [change]).document != run.document for run in runs):
                    raise ConcordError(
                        f"{place}.set: it changes no run; correct it, or remove the alternative"
                    )

    def _check_reads(self, change: Change, runs: Sequence[Run], where: str) -> None:
        """Refuse metrics and agents that runs, one of each experiment, will not have."""
        from concord import metrics

        claimed = {run.experiment for run in self.claim_runs()}
        read = {quantity.metric for found in self.claim_reads.values() for quantity in found}
        for metric in change.reads.get("metric", {}):
            if metric not in read:
                raise ConcordError(
                    f"{where}.metric: no claim names {short(metric)}; {nearest(metric, read)}"
                )
        agents = [change.reads["agent"]] if "agent" in change.reads else []
        names = change.reads.get("metric", {}).values()
        for run in {run.experiment: run for run in runs if run.experiment in claimed}.values():
            other = self.varied(run, [change]).document
            for key, metric in [("agent", metrics.ALWAYS[0]), *(("metric", n) for n in names)]:
                if lacking := metrics.absent(other, metric, agents):
                    raise ConcordError(f"{where}.{key}: {run.folder} {lacking}")

    @staticmethod
    def _check_read(read: Read | str, runs: Sequence[Mapping[str, Any]], where: str) -> None:
        """Refuse a metric that the runs of a figure or table will not have."""
        from concord import metrics
        from concord.results import matches

        if isinstance(read, str):
            if not any(metrics.computed(run, read) for run in runs):
                raise ConcordError(
                    f"{where}: no run that it shows computes {read!r}; {metrics.remedy(read)}"
                )
            return
        chosen = [run for run in runs if matches(run, read.select or {})]
        if not chosen:
            raise ConcordError(
                f"{where}: no run that it shows has all of {short(dict(read.select or {}))}; "
                "correct select"
            )
        for run in chosen:
            if lacking := metrics.absent(run, read.metric, read.agents):
                raise ConcordError(f"{where}: {run['experiment']}/{run['run']} {lacking}")

    def _expand(
        self,
        experiment: str,
        only: str | Collection[str] | None = None,
        changes: Sequence[Change] = (),
    ) -> Iterator[Run]:
        """Yield the runs of an experiment, or just those of these names, which may be changed."""
        where, file = f"experiments.{experiment}", self.files["experiments"]
        wanted = {only} if isinstance(only, str) else only or ()
        base = merge(
            merge(DEFAULTS, self.mapping.get("defaults", {})), self.experiments[experiment]
        )
        for key in ("smoke", "full"):
            self._check_keys(base.get(key, {}), f"{where}.{key}")
        full = base.pop("full", {})
        if self.config["scale"] == "full":
            base = merge(base, full)
        sweep = base.pop("sweep", {})
        overrides = base.pop("overrides", [])
        smoke = base.pop("smoke", {})
        base.pop("title", None)
        axes = []
        for axis, values in sweep.items():
            place = f"{where}.sweep.{axis}"
            check_label(axis, place, file)
            axes.append([(axis, *cell) for cell in cells_of(axis, values, place, file)])
        count = math.prod(map(len, axes))
        if count > MOST_RUNS:
            raise ConcordError(
                f"{file}: {where}.sweep: {count} runs are more than {MOST_RUNS}; "
                "shorten an axis, or divide the experiment"
            )
        labels_of = {cells[0][0]: [cell[1] for cell in cells] for cells in axes}
        for combination in itertools.product(*axes):
            name = "+".join(f"{axis}={label}" for axis, label, *_ in combination) or "run"
            if only is not None and name not in wanted:
                continue
            if len(name) > LONGEST_NAME:
                raise ConcordError(
                    f"{file}: {where}.sweep: the name {short(name)} has more than "
                    f"{LONGEST_NAME} characters, too many for a folder; shorten axes or labels"
                )
            mapping, labels, origins = base, {}, {}
            for axis, label, change, places in combination:
                labels[axis] = label
                mapping = merge(mapping, change)
                origins.update(places)
            for number, override in enumerate(overrides):
                if all(labels.get(axis) in label_texts(v) for axis, v in override["when"].items()):
                    mapping = merge(mapping, override["set"])
                    place = f"{where}.overrides[{number}].set"
                    origins.update({key: f"{place}.{key}" for key in leaves(override["set"])})
            for alternative in changes:
                mapping = merge(mapping, alternative.keys)
                origins.update(alternative.places)
            if self.config["scale"] == "smoke":
                mapping = self._shrink(mapping, smoke)
            try:
                yield self._resolve(experiment, name, labels, mapping, bool(changes))
            except ConcordError as error:
                raise ConcordError(relocate(str(error), f"{file}: {where}", origins)) from None
        # After the runs: what is wrong with a label itself is told first.
        for number, override in enumerate(overrides):
            place = f"{file}: {where}.overrides[{number}].when"
            for axis, value in override["when"].items():
                if axis not in labels_of:
                    raise ConcordError(
                        f"{place}: {short(axis)} is not an axis; {nearest(axis, labels_of)}"
                    )
                for label in label_texts(value):
                    if label not in labels_of[axis]:
                        raise ConcordError(
                            f"{place}.{axis}: no run has {short(label)}; "
                            f"{nearest(label, labels_of[axis])}"
                        )

    def _check_keys(self, changes: Mapping[str, Any], where: str) -> None:
        """Refuse keys, set at another scale, that no run has."""
        known = {*Keys.__struct_fields__, "sweep"}
        for key in changes:
            if key.partition(".")[0] not in known:
                raise ConcordError(
                    f"{self.at(where)}: there is no key {short(key)}; {nearest(key, known)}"
                )

    def _shrink(self, mapping: dict[str, Any], smoke: Mapping[str, Any]) -> dict[str, Any]:
        limits = self.config["smoke"]
        most = mapping.get("iterations")
        record = mapping.get("record")
        late = record.get("burn_in") if isinstance(record, dict) else None
        shrunk: dict[str, Any] = {
            key: min(mapping[key], limits[key])
            for key in ("chains", "iterations")
            if isinstance(mapping.get(key), int)
        }
        if isinstance(late, int) and isinstance(most, int):
            burn_in = late * min(most, limits["iterations"]) // max(most, 1)
            shrunk["record"] = {"burn_in": burn_in}
        return merge(merge(mapping, shrunk), smoke)

    def _resolve(
        self,
        experiment: str,
        name: str,
        labels: dict[str, str],
        mapping: dict[str, Any],
        changed: bool = False,
    ) -> Run:
        where = self.at(f"experiments.{experiment}")
        keys: Keys = build(Keys, mapping, where)
        mapping = dict(mapping)
        problem = keys.problem
        if isinstance(problem, str):
            problems = self.mapping.get("problems", {})
            if problem not in problems:
                raise ConcordError(
                    f"{where}.problem: there is no problem {short(problem)}; "
                    f"{nearest(problem, problems)}"
                )
            mapping["problem"] = {"name": problem, **problems[problem]}
        else:
            base = problem.get("name")
            if base is not None and not isinstance(base, str):
                raise ConcordError(f"{where}.problem.name: {short(base)} is not a text")
            named = self.mapping.get("problems", {}).get(base)
            if named is None and "kind" not in problem and base is not None:
                raise ConcordError(
                    f"{where}.problem: there is no problem {short(base)}; "
                    f"{nearest(base, self.mapping.get('problems', {}))}"
                )
            if named is not None:
                mapping["problem"] = merge({"name": base, **named}, problem)
        mapping["problem"] = {"name": experiment, **mapping["problem"]}
        if isinstance(mapping["topology"], str):
            mapping["topology"] = {"kind": mapping["topology"]}
        mapping["sampler"] = resolved_sampler(mapping, where)
        self._check_reading(keys.reading, f"{where}.reading")
        arena = mapping.get("arena") is not None
        if arena != ("entry" in labels):
            raise ConcordError(
                f"{where}.sweep: cells of the arena, which have the key arena, are told apart by "
                "an axis called entry, and no other runs have one; add the other, or rename it"
            )
        stated = {
            **mapping,
            "paper": self.key,
            "experiment": experiment,
            "run": name,
            "labels": labels,
            "scale": self.config["scale"],
            "seed": self.config["seed"],
            "assumptions": (),
        }
        run = Run.of(stated, where, keys)
        if not self.checked and not changed:  # what a universe cannot have is a result
            from concord import metrics

            run.check()
            metrics.check(run.metrics, f"{where}.metrics", run.record, run.network)
        rests = tuple(
            name
            for name, entry in self.assumptions.items()
            if assumptions.holds_for(run.document, entry.get("rests", {}))
        )
        return with_changes(run, assumptions=rests)
