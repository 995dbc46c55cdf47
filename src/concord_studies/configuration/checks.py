"""What is checked of a study: its runs, figures, tables, claims and assumptions."""

from collections.abc import Mapping, Sequence
from typing import Any

from concord import kinds
from concord.errors import ConcordError, nearest, short
from concord_studies import metrics, selection
from concord_studies.configuration import named
from concord_studies.configuration.expansion import Change
from concord_studies.configuration.sections import Assumption
from concord_studies.configuration.study import Study
from concord_studies.contracts import Read
from concord_studies.runs.run import Run


def check_study(study: Study) -> None:
    """Check every run of a study, and all figures, tables, claims and assumptions."""
    study.runs  # noqa: B018 (expands and so checks every run)
    _check_claims(study)
    runs = [run.document for run in study.runs.values()]
    for name, entry in study.assumptions.items():
        mistake = selection.mistake(runs, entry.rests or {})
        if mistake is not None:
            raise ConcordError(f"{study.at(f'assumptions.{name}.rests')}: {mistake}")
        _check_caption(study, name, entry, runs)
    _check_alternatives(study)
    for section in ("figures", "tables"):
        for name, output in study.outputs(section).items():
            where = study.at(f"{section}.{name}")
            kind, params = study.kind_of(section, name)
            runs = [run.document for run in study.output_runs(section, name)]
            named.check(params, runs, f"{where}.options", study.config["scale"] == "smoke")
            try:
                reads = kind.reads(params)
            except ConcordError as error:
                raise ConcordError(f"{where}.options: {error}") from None
            for read in reads:
                metric = read if isinstance(read, str) else read.metric
                place = _find_option(output.options, metric, f"{where}.options")
                _check_read(read, runs, place or where)
            if section == "figures":
                from concord_studies.figures import style  # matplotlib, which not all kinds need

                style.check_formulas(output.options, f"{where}.options")


def _check_claims(study: Study) -> None:
    """Refuse claims that name what does not exist, and cases that cannot be judged."""
    shown = {*study.sections.figures, *study.sections.tables}
    for key, claim, _ in study.stated_claims.values():
        where = study.at(f"claims.{key}")
        if claim.figure is not None and claim.figure not in shown:
            raise ConcordError(
                f"{where}.figure: there is no figure or table {short(claim.figure)}; "
                f"{nearest(claim.figure, shown)}"
            )
        for reading in claim.readings or ():
            study.check_reading(reading, f"{where}.readings")
    for name, entry in study.sections.discrepancies.items():
        if entry.checked_by and entry.checked_by not in study.claims:
            raise ConcordError(
                f"{study.at('discrepancies')}.{name}.checked_by: there is no claim "
                f"{short(entry.checked_by)}; {nearest(entry.checked_by, study.claims)}"
            )
    study.cases  # noqa: B018 (reading them checks them)


def _check_caption(study: Study, name: str, entry: Assumption, runs: Sequence[Any]) -> None:
    """Refuse an assumption that names no run in ``shown``, or no metric in ``of``."""
    where = study.at(f"assumptions.{name}")
    if entry.shown is not None:
        named.check_selection(entry.shown, runs, f"{where}.shown")
    for number, beginning in enumerate(entry.of or ()):
        if not any(metrics.computes(f, f"{beginning}*") for f in kinds.names("metrics")):
            raise ConcordError(
                f"{where}.of[{number}]: no metric begins with {short(beginning)}; "
                f"{nearest(beginning, kinds.names('metrics'))}"
            )


def _check_alternatives(study: Study) -> None:
    """Refuse alternatives that change nothing, or read metrics that runs do not have."""
    for name, found in study.alternatives.items():
        where = study.at(f"assumptions.{name}")
        if found and study.assumptions[name].fixed:
            raise ConcordError(f"{where}.fixed: it has alternatives; remove one or the other")
        for number, change in enumerate(found.values()):
            place = f"{where}.alternatives[{number}]"
            resting = [run for run in study.runs.values() if name in run.assumptions]
            mistake = selection.mistake([run.document for run in resting], change.when)
            if mistake is not None:
                raise ConcordError(f"{place}.when: {mistake}")
            runs = [run for run in resting if change.holds_for(run)]
            if change.reads.metric or change.reads.agent is not None:
                _check_reads(study, change, runs, f"{place}.reads")
            elif study.config["scale"] == "smoke":  # its limits may leave nothing of the change
                continue
            elif not any(study.vary_run(run, [change]).document != run.document for run in runs):
                raise ConcordError(
                    f"{place}.set: it changes no run; correct it, or remove the alternative"
                )


def _check_reads(study: Study, change: Change, runs: Sequence[Run], where: str) -> None:
    """Refuse metrics and agents that an alternative reads and the runs will not have."""
    claimed = {run.experiment for run in study.claim_runs()}
    read = {quantity.metric for found in study.claim_reads.values() for quantity in found}
    for metric in change.reads.metric:
        if metric not in read:
            raise ConcordError(
                f"{where}.metric: no claim names {short(metric)}; {nearest(metric, read)}"
            )
    agents = [] if change.reads.agent is None else [change.reads.agent]
    names = change.reads.metric.values()
    for run in {run.experiment: run for run in runs if run.experiment in claimed}.values():
        other = study.vary_run(run, [change]).document
        for key, metric in [("agent", metrics.ALWAYS[0]), *(("metric", n) for n in names)]:
            if lacking := metrics.refusal(other, metric, agents):
                raise ConcordError(f"{where}.{key}: {run.folder} {lacking}")


def _find_option(options: Any, metric: str, where: str) -> str | None:
    """Return where options name a metric. None if they do not."""
    if options == metric:
        return where
    inside = options.items() if isinstance(options, Mapping) else ()
    found = [_find_option(value, metric, f"{where}.{key}") for key, value in inside]
    if isinstance(options, list | tuple):
        found = [_find_option(v, metric, f"{where}[{i}]") for i, v in enumerate(options)]
    return next(filter(None, found), None)


def _check_read(read: Read | str, runs: Sequence[Mapping[str, Any]], where: str) -> None:
    """Refuse a metric that the runs of a figure or table will not have."""
    if isinstance(read, str):
        if not any(metrics.is_computed(run, read) for run in runs):
            raise ConcordError(
                f"{where}: no run that it shows computes {read!r}; {metrics.remedy(read)}"
            )
        return
    chosen = [run for run in runs if selection.matches(run, read.select or {})]
    if not chosen:
        raise ConcordError(
            f"{where}: no run that it shows has all of {short(dict(read.select or {}))}; "
            "correct select"
        )
    for run in chosen:
        if lacking := metrics.refusal(run, read.metric, read.agents):
            raise ConcordError(f"{where}: {run['experiment']}/{run['run']} {lacking}")
