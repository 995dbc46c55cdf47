"""What is checked of a study: its runs, figures, tables, claims and assumptions."""

from bisect import bisect
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from msgspec.structs import asdict

from concord import kinds
from concord.errors import ConcordError, nearest, prefix_errors, require_known, short
from concord.options import Options, plain
from concord_studies import metrics, selection
from concord_studies.claims import checks
from concord_studies.claims.quantities import Quantity
from concord_studies.claims.texts import check_placeholders
from concord_studies.claims.verdicts import REASON_NUMBERS
from concord_studies.configuration.expansion import Change
from concord_studies.configuration.study import Study
from concord_studies.configuration.study_files import FOLDERS
from concord_studies.contracts import Read
from concord_studies.option_notes import NamesIterations, NamesLabel, NamesRuns
from concord_studies.runs.run import Run

SHOWN = "no run that it shows"
# What lines and columns of a table may be of, beside labels.
WITHIN_RUNS = {"lines": ("agent",), "across": ("metric", "agent", "iteration")}


def check_study(study: Study) -> None:
    """Check every run of a study, and all figures, tables, claims and assumptions."""
    for name in study.experiments:
        if name.lower() in FOLDERS:
            raise ConcordError(
                f"{study.locate(f'experiments.{name}')}: the folder {name} of the study's results "
                f"is not an experiment's; rename it, to {name}_runs for example"
            )
    runs = [run.document for run in study.runs.values()]  # expanding them checks them
    _check_problems(study)
    _check_claims(study)
    for name, entry in study.assumptions.items():
        where = study.locate(f"assumptions.{name}")
        _refuse(f"{where}.rests", selection.describe_mistake(runs, entry.rests or {}))
        _refuse(f"{where}.shown", selection.describe_mistake(runs, entry.shown or {}))
        texts = {f"{where}.value": entry.value, f"{where}.reason": entry.reason}
        check_placeholders(texts, (), [run for run in runs if name in run["assumptions"]])
        for number, beginning in enumerate(entry.of or ()):
            if not any(metrics.computes(f, f"{beginning}*") for f in kinds.names("metrics")):
                raise ConcordError(
                    f"{where}.of[{number}]: no metric begins with {short(beginning)}; "
                    f"{nearest(beginning, kinds.names('metrics'))}"
                )
    _check_alternatives(study)
    for section in ("figures", "tables"):
        for name in study.outputs(section):
            _check_output(study, section, name)
    outputs = [(kind, name) for kind in ("figures", "tables") for name in study.outputs(kind)]
    used = {key for output in outputs for key in study.output_numbers(*output)}
    _require_used(study.sections.numbers, used, study.locate("numbers"))


def _refuse(where: str, mistake: str | None) -> None:
    """Raise a ConcordError at a place if there is a mistake."""
    if mistake is not None:
        raise ConcordError(f"{where}: {mistake}")


def _check_problems(study: Study) -> None:
    """Refuse metrics that a run's problem has not, where no data file has to be there to tell."""
    checked = set()
    for run in study.runs.values():
        stated = {family: metrics.find_family(family).check_problem for family in run.metrics}
        checks = {family: check for family, check in stated.items() if check is not None}
        key = str(run.document["problem"]), *checks
        if not checks or key in checked or run.data_sets or run.unavailable:
            continue
        checked.add(key)
        problem = run.build_problem(Path("resources"))
        for family, check in checks.items():
            with prefix_errors(f"{run.where}.metrics[{run.metrics.index(family)}]"):
                check(problem)


def _check_output(study: Study, section: str, name: str) -> None:
    """Refuse a figure or table whose options name what its runs do not have."""
    output, where = study.output(section, name), study.locate(f"{section}.{name}")
    kind, params = study.kind_of(section, name)
    runs = study.output_runs(section, name)
    check_names(params, runs, f"{where}.options", study.config["scale"] == "smoke")
    with prefix_errors(f"{where}.options"):
        reads = kind.reads(params)
    for read in reads:
        metric = read if isinstance(read, str) else read.metric
        place = _find_option(output.options, metric, f"{where}.options")
        _check_read(read, runs, place or where)
    _check_numbers(study, section, name)
    if section == "figures":
        from concord_studies.figures import style  # matplotlib, which not all kinds need

        style.check_formulas(output.options, f"{where}.options")


def _check_numbers(study: Study, section: str, name: str) -> None:
    """Refuse numbers and placeholders of a figure's or table's texts that there will not be."""
    entry, where = study.output(section, name), study.locate(f"{section}.{name}")
    numbers = study.output_numbers(section, name)
    documents = [run.document for run in study.output_runs(section, name)]
    texts = {f"{where}.{key}": getattr(entry, key) for key in ("caption", "ours")}
    options = plain(study.kind_of(section, name)[1])
    stated = {key: plain(number) for key, (number, _) in numbers.items()}
    names = {**study.sections.numbers, **entry.numbers}
    check_placeholders(texts, names, [*documents, {"options": options, **stated}])
    _require_used(entry.numbers, numbers, f"{where}.numbers")
    for key, (number, runs_of_each) in numbers.items():
        place = f"{where}.numbers.{key}"
        for quantity, runs in zip(number.list_quantities(), runs_of_each, strict=True):
            reading = quantity.reading or documents[0]["reading"]
            _check_quantity(study, quantity, runs, reading, place)
        number.check(place, runs_of_each)


def _require_used(numbers: Iterable[str], used: Container[str], where: str) -> None:
    """Refuse stated numbers whose placeholders stand in no text.

    numbers: their names. used: the names of the placeholders.
    """
    for key in numbers:
        if key not in used:
            raise ConcordError(f"{where}.{key}: no text has {{{key}}}; use it, or remove it")


def check_names(options: Options, runs: Sequence[Run], where: str, smoke: bool) -> None:
    """Refuse a figure or table whose options name a label or value that none of its runs has.

    where: the figure's or table's place in the study's file, for the error. What an option names
    (labels, runs, iterations) is part of its declared type (``option_notes``). At smoke scale
    iterations are few, and those that it leaves out are not missed.
    """
    documents = [run.document for run in runs]
    for name, note, value in _notes(options):
        place = f"{where}.{name}"
        if isinstance(note, NamesRuns):
            _refuse(place, selection.describe_mistake(documents, value, SHOWN))
        elif isinstance(note, NamesLabel):
            for label in [value] if isinstance(value, str) else value:
                if label not in WITHIN_RUNS.get(name.rpartition(".")[2], ()):
                    _refuse(place, selection.describe_unknown(documents, label, SHOWN))
        elif not smoke:
            _check_iterations(value, runs, place, f"{SHOWN} records")


def _notes(options: Options) -> Iterator[tuple[str, str, Any]]:
    """Yield place, description and value of every option that is set and names parts of runs."""
    for name, hint in get_type_hints(type(options), include_extras=True).items():
        value = getattr(options, name)
        if value is None:
            continue
        for note in getattr(hint, "__metadata__", ()):
            if isinstance(note, (NamesIterations, NamesLabel, NamesRuns)):
                yield name, note, value
        for number, part in enumerate(value if isinstance(value, tuple) else ()):
            if isinstance(part, Options):
                for key, note, of_part in _notes(part):
                    yield f"{name}[{number}].{key}", note, of_part


def _check_iterations(choice: Sequence[int], runs: Sequence[Run], where: str, who: str) -> None:
    """Refuse iterations that none of the runs records; ``who`` begins the message."""
    recorded = [run.recorded_iterations for run in runs]
    for k in choice:
        if not any(k in iterations for iterations in recorded):
            nearby = {n for i in recorded for n in i[max(bisect(i, k) - 1, 0) : bisect(i, k) + 1]}
            nearest_two = ", ".join(map(str, sorted(nearby, key=lambda n: abs(n - k))[:2]))
            raise ConcordError(
                f"{where}: {who} iteration {k}; the nearest recorded are {nearest_two}; "
                "choose one, or add it to record.at"
            )


def _find_option(options: Any, metric: str, where: str) -> str | None:
    """Return the place of the option that names a metric. None without one."""
    if options == metric:
        return where
    inside = options.items() if isinstance(options, Mapping) else ()
    places = [_find_option(value, metric, f"{where}.{key}") for key, value in inside]
    if isinstance(options, list | tuple):
        places = [_find_option(v, metric, f"{where}[{i}]") for i, v in enumerate(options)]
    return next(filter(None, places), None)


def _check_read(read: Read | str, runs: Sequence[Run], where: str) -> None:
    """Refuse a metric that the runs of a figure or table will not have.

    read: the metric, or what is asked of it (``Read``).
    """
    if isinstance(read, str):
        if not any(metrics.is_computed(run, read) for run in runs):
            raise ConcordError(f"{where}: {SHOWN} computes {read!r}; {metrics.remedy(read)}")
        return
    documents, wanted = [run.document for run in runs], read.select or {}
    _refuse(where, selection.describe_mistake(documents, wanted, SHOWN))
    for run, document in zip(runs, documents, strict=True):
        if selection.matches(document, wanted):
            _check_metric(run, read.metric, read.agents, where)


def _check_metric(run: Run, metric: str, agents: Any, where: str) -> None:
    """Refuse a metric of agents that a run will not have."""
    if lacking := metrics.refusal(run, metric, agents or ()):
        raise ConcordError(f"{where}: {run.experiment}/{run.name} {lacking}")


def _check_claims(study: Study) -> None:
    """Refuse claims that name what does not exist, and cases that cannot be judged."""
    shown = {*study.sections.figures, *study.sections.tables}
    for key, claim, _ in study.claims_with_cases.values():
        where = study.locate(f"claims.{key}")
        if claim.figure is not None:
            require_known("figure or table", claim.figure, shown, f"{where}.figure")
        for reading in claim.readings or ():
            study.check_reading(reading, f"{where}.readings")
        reasons = {f"{where}.because.{key}": text for key, text in asdict(claim.because).items()}
        check_placeholders(reasons, REASON_NUMBERS, [])
    for name, entry in study.sections.discrepancies.items():
        if entry.checked_by:
            place = study.locate(f"discrepancies.{name}.checked_by")
            require_known("claim", entry.checked_by, study.claims, place)
    for (name, _, reading), case in study.cases.items():
        where = study.locate(f"claims.{study.claims_with_cases[name].key}")
        for quantity, runs in case.reads:
            _check_quantity(study, quantity, runs, quantity.reading or reading, f"{where}.check")
        checks.require_pairs(case.check, [runs for _, runs in case.reads], where)


def _check_quantity(
    study: Study, quantity: Quantity, runs: Sequence[Run], reading: str, where: str
) -> None:
    """Refuse a quantity that selects no runs, or a run without its metric."""
    study.check_reading(reading, f"{where}.reading")
    if not runs:
        of = " or ".join(quantity.experiments) or "those shown"
        raise ConcordError(
            f"{where}: no run of {of} that it reads follows the reading {reading!r}; "
            "change readings or runs"
        )
    at = (quantity.at,) if isinstance(quantity.at, int) else quantity.at
    for run in runs:
        _check_metric(run, quantity.metric, quantity.agents, where)
        if not isinstance(at, str) and study.config["scale"] != "smoke":
            who = f"{run.experiment}/{run.name} does not record"
            _check_iterations(at, [run], f"{where}.at", who)


def _check_alternatives(study: Study) -> None:
    """Refuse alternatives that change nothing, or read metrics that runs do not have."""
    for name, changes in study.alternatives.items():
        where = study.locate(f"assumptions.{name}")
        if changes and study.assumptions[name].fixed:
            raise ConcordError(f"{where}.fixed: it has alternatives; remove one or the other")
        for number, change in enumerate(changes.values()):
            place = f"{where}.alternatives[{number}]"
            resting = [run for run in study.runs.values() if name in run.assumptions]
            documents = [run.document for run in resting]
            _refuse(f"{place}.when", selection.describe_mistake(documents, change.when))
            runs = [run for run in resting if change.holds_for(run)]
            if change.reads.metric or change.reads.agent is not None:
                _check_replaced_reads(study, change, runs, f"{place}.reads")
            elif study.config["scale"] == "smoke":  # its limits may leave nothing of the change
                continue
            elif not any(study.vary_run(run, [change]).document != run.document for run in runs):
                raise ConcordError(
                    f"{place}.set: it changes no run; correct it, or remove the alternative"
                )


def _check_replaced_reads(study: Study, change: Change, runs: Sequence[Run], where: str) -> None:
    """Refuse metrics and agents that an alternative reads and the runs will not have.

    change: the alternative.
    """
    claimed = {run.experiment for run in study.claim_runs()}
    read = {quantity.metric for quantities in study.claim_reads.values() for quantity in quantities}
    for metric in change.reads.metric:
        if metric not in read:
            raise ConcordError(
                f"{where}.metric: no claim names {short(metric)}; {nearest(metric, read)}"
            )
    agents = [] if change.reads.agent is None else [change.reads.agent]
    names = change.reads.metric.values()
    for run in {run.experiment: run for run in runs if run.experiment in claimed}.values():
        other = study.vary_run(run, [change])
        for key, metric in [("agent", metrics.ALWAYS[0]), *(("metric", n) for n in names)]:
            _check_metric(other, metric, agents, f"{where}.{key}")
