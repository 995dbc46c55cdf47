"""A study: its runs, and the figures, tables and claims that show and judge them."""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from msgspec.structs import replace

from concord import kinds
from concord.errors import ConcordError, require_known
from concord.options import build
from concord_studies import selection
from concord_studies.claims import checks
from concord_studies.claims.claim import Case, Claim
from concord_studies.claims.quantities import Quantity
from concord_studies.claims.texts import Number, NumberWithRuns, list_placeholders
from concord_studies.configuration.cases import ClaimWithCases, read_claims
from concord_studies.configuration.expansion import Change, expand
from concord_studies.configuration.sections import Output
from concord_studies.configuration.study_files import StudyFiles
from concord_studies.configuration.sweep import Layer, check_label, merge, nest
from concord_studies.runs.run import Run


class Study(StudyFiles):
    """A study with its runs, expanded from sweeps, and its figures, tables and claims."""

    @cached_property
    def _resolved(self) -> dict[str, list[Run]]:
        """A cache of the runs of experiments, by name of experiment."""
        return {}

    @cached_property
    def alternatives(self) -> dict[str, dict[str, Change]]:
        """Return the change of each alternative, by assumption and label."""
        changes: dict[str, dict[str, Change]] = {}
        for name, entry in self.assumptions.items():
            for number, alternative in enumerate(entry.alternatives):
                place, label = f"assumptions.{name}.alternatives[{number}]", alternative.label
                check_label(name, self.locate(f"assumptions.{name}"))
                if label in changes.setdefault(name, {}):
                    raise ConcordError(
                        f"{self.locate(place)}.label: another one is called {label}; rename one"
                    )
                keys: dict[str, Any] = {}
                for key, value in alternative.set.items():
                    keys = merge(keys, nest(key, value))
                layer = Layer(self.locate(f"{place}.set"), keys)
                when, reads = alternative.when or {}, alternative.reads
                changes[name][label] = Change(name, layer, when, reads)
        return changes

    def vary_run(self, run: Run, changes: Sequence[Change] = (), seed: int | None = None) -> Run:
        """Return a copy of a run with alternatives of assumptions, or another master seed.

        Alternatives of assumptions that the run does not rest on leave it as it is.

        A ConcordError, which names the alternative, if such a run is not possible.
        """
        changes = [change for change in changes if change.layer.keys and change.holds_for(run)]
        if changes:
            (run,) = expand(self, run.experiment, run.name, changes)
        return run if seed is None else run.vary(seed=seed)

    @cached_property
    def runs(self) -> dict[tuple[str, str], Run]:
        """Return every run, keyed by (experiment, run name), in the order of the file."""
        return {(name, run.name): run for name in self.experiments for run in self.runs_of(name)}

    def runs_of(self, experiment: Any, where: str = "experiments") -> list[Run]:
        """Return the runs of an experiment, without resolving others; ``where`` names it."""
        require_known("experiment", experiment, self.experiments, self.locate(where))
        if experiment not in self._resolved:
            self._resolved[experiment] = list(expand(self, experiment))
        return self._resolved[experiment]

    @cached_property
    def arenas(self) -> tuple[str, ...]:
        """Return the experiments whose runs are cells of the arena: they have the axis entry."""
        sweeps = {name: entry.get("sweep", {}) for name, entry in self.experiments.items()}
        return tuple(name for name, sweep in sweeps.items() if "entry" in sweep)

    def run(self, experiment: str, name: str) -> Run:
        """Return one run."""
        runs = {run.name: run for run in self.runs_of(experiment)}
        require_known("run", name, runs, self.locate(f"experiments.{experiment}"))
        return runs[name]

    def select(self, stated: Mapping[str, Any] | str, where: str) -> list[Run]:
        """Return the runs of an experiment whose labels match a stated selection; refuse others.

        ``stated`` is an experiment's id, or ``{experiment: id, axis: label or [labels]}``.
        """
        if isinstance(stated, str):
            stated = {"experiment": stated}
        experiment: Any = stated.get("experiment")
        choice = {name: of for name, of in stated.items() if name != "experiment"}
        runs = self.runs_of(experiment, where)
        if not choice:
            return list(runs)
        labels = [{"labels": run.labels} for run in runs]
        chosen = [r for r, of in zip(runs, labels, strict=True) if selection.matches(of, choice)]
        # A run that is chosen has every value of the selection, unless there are several of a name.
        is_plain = chosen and not any(isinstance(of, (list, tuple)) for of in choice.values())
        none = f"no run of {experiment}"
        if not is_plain and (mistake := selection.describe_mistake(labels, choice, none)):
            raise ConcordError(f"{self.locate(where)}: {mistake}")
        return chosen

    @property
    def name(self) -> str:
        """The study's name for readers: first author and year of a paper, or its own title."""
        authors = self.about.authors.split(", ")
        if not self.printed or not self.about.reference:
            return self.about.title
        others = " and others" if len(authors) > 1 else ""
        words = authors[0].split()
        begin = next((i for i, word in enumerate(words) if word.islower()), -1)  # el, van der
        return f"{' '.join(words[begin:])}{others} ({self.about.year})"

    def outputs(self, section: str) -> dict[str, Output]:
        """Return the figures or tables (``section``) by id."""
        return self.sections.figures if section == "figures" else self.sections.tables

    def output(self, section: str, name: str) -> Output:
        """Return a figure or table by section and id."""
        entries = self.outputs(section)
        require_known("entry", name, entries, self.locate(section))
        return entries[name]

    @lru_cache(maxsize=1000)  # noqa: B019  # planning asks several times
    def kind_of(self, section: str, name: str) -> tuple[Any, Any]:
        """Return the module of a figure's or table's kind, and its typed options."""
        entry, where = self.output(section, name), self.locate(f"{section}.{name}")
        module = kinds.find(section, entry.kind, where)
        stated = dict(entry.options)
        for key in ("names", "colors"):
            shared = getattr(self.sections, key)
            if shared and key in module.Params.__struct_fields__:
                stated[key] = {**shared, **(stated.get(key) or {})}
        return module, build(module.Params, stated, f"{where}.options")

    @lru_cache(maxsize=1000)  # noqa: B019  # planning asks several times
    def output_runs(self, section: str, name: str) -> list[Run]:
        """Return the runs that a figure or table shows, in the order of its file."""
        chosen: dict[str, Run] = {}
        for number, stated in enumerate(self.output(section, name).runs):
            for run in self.select(stated, f"{section}.{name}.runs[{number}]"):
                chosen[run.folder] = run
        return list(chosen.values())

    @lru_cache(maxsize=1000)  # noqa: B019  # planning asks several times
    def output_numbers(self, section: str, name: str) -> dict[str, NumberWithRuns]:
        """Return the numbers in the texts of a figure or table, by name, each with its runs."""
        entry = self.output(section, name)
        stated = {**self.sections.numbers, **entry.numbers}
        used = [key for key in list_placeholders(entry.caption, entry.ours) if key in stated]
        return {
            key: NumberWithRuns(stated[key], self._select_number(stated[key], section, name, key))
            for key in used
        }

    def _select_number(self, number: Number, section: str, name: str, key: str) -> list[list[Run]]:
        """Return the runs that each quantity of a number in an output's texts reads.

        They are runs that are shown; of an experiment or a reading that the number names any, else
        of the readings of those that are shown.
        """
        shown = self.output_runs(section, name)
        own = key in self.output(section, name).numbers
        where = f"{section}.{name}.numbers.{key}" if own else f"numbers.{key}"

        def select(quantity: Quantity) -> list[Run]:
            """Return the runs that one quantity reads."""
            experiments = dict.fromkeys(quantity.experiments or (run.experiment for run in shown))
            stated = ({**(quantity.runs or {}), "experiment": name} for name in experiments)
            runs = [run for selection in stated for run in self.select(selection, where)]
            if quantity.experiments or quantity.reading:
                readings = [quantity.reading] if quantity.reading else [r.reading for r in shown]
                return [run for run in runs if run.reading in readings]
            return [run for run in runs if run.folder in {run.folder for run in shown}]

        return [select(quantity) for quantity in number.list_quantities(self.locate(where))]

    def output_reads(self, section: str, name: str) -> list[Run]:
        """Return the runs that a figure or table is made from: those shown, and of its numbers."""
        numbers = self.output_numbers(section, name).values()
        read = [run for number in numbers for runs in number.runs for run in runs]
        return list({run.folder: run for run in (*self.output_runs(section, name), *read)}.values())

    @cached_property
    def claims_with_cases(self) -> dict[str, ClaimWithCases]:
        """Return the claims by id, with their cases as the study's files state them."""
        return read_claims(self.raw.get("claims", {}), self.locate("claims"))

    @property
    def claims(self) -> dict[str, Claim]:
        """Return the claims by id."""
        return {name: stated.claim for name, stated in self.claims_with_cases.items()}

    @cached_property
    def cases(self) -> dict[tuple[str, str, str], Case]:
        """Return the cases to judge, with their runs, by claim, label of the case, and reading."""
        cases_by_key = {}
        for name, (key, claim, cases) in self.claims_with_cases.items():
            readings = {
                label: self._with_runs(claim, case, f"claims.{key}")
                for label, case in cases.items()
            }
            for reading in dict.fromkeys(reading for of in readings.values() for reading in of):
                for label, of in readings.items():
                    if reading in of:
                        cases_by_key[name, label, reading] = of[reading]
        return cases_by_key

    def _with_runs(self, claim: Claim, case: Case, place: str) -> dict[str, Case]:
        """Return a claim's case with the runs it reads, for each reading in which it is judged.

        place: of the case in the file.
        """
        reads: list[tuple[Quantity, list[Run]]] = []  # in any reading
        for number, quantity in enumerate(checks.quantities(case.check)):
            there = f"{place}.check[{number}]"
            runs = [
                run
                for experiment in quantity.experiments
                for run in self.select({**(quantity.runs or {}), "experiment": experiment}, there)
            ]
            reads.append((quantity, runs))
        free = [[run.reading for run in runs] for of, runs in reads if of.reading is None]
        first, *others = free or [["published"]]
        shared = [r for r in dict.fromkeys(first) if all(r in other for other in others)]
        if not (claim.readings or shared):
            raise ConcordError(
                f"{self.locate(place)}: runs of its quantities share no reading; "
                "choose others, or state the reading of a quantity"
            )
        return {
            reading: replace(
                case,
                reads=tuple(
                    (of, [run for run in runs if run.reading == (of.reading or reading)])
                    for of, runs in reads
                ),
            )
            for reading in claim.readings or shared
        }

    def claim_runs(self) -> list[Run]:
        """Return every run that the claims read, in the order of the claims."""
        return list({run.folder: run for case in self.cases.values() for run in case.runs}.values())

    @cached_property
    def claim_reads(self) -> dict[tuple[str, str], list[Quantity]]:
        """Return the quantities that claims read, by experiment and name of the run."""
        reads: dict[tuple[str, str], list[Quantity]] = {}
        for case in self.cases.values():
            for quantity, runs in case.reads:
                for run in runs:
                    reads.setdefault((run.experiment, run.name), []).append(quantity)
        return reads
