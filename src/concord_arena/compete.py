"""compete: entries of the arena against each other on tasks, and the board of all their scores."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concord import kinds
from concord.arguments import ChosenSampler
from concord.errors import ConcordError, nearest
from concord.options import plain
from concord.progress import each
from concord_arena import board as scored
from concord_arena import cards, cells
from concord_arena.board import short_name, task_of
from concord_studies import markup, metrics, provenance, results, words
from concord_studies.catalog import described
from concord_studies.runs.run import Run
from concord_studies.scores import missing
from concord_studies.tables import head_to_head

if TYPE_CHECKING:
    from concord_studies.configuration.study import Study
    from concord_studies.results import Measured


def compare(
    study: Study,
    experiment: str | None,
    names: Sequence[str],
    parts: Sequence[str],
    resources: Path,
) -> Iterator[str]:
    """Yield lines that compare entries, or other samplers, on the tasks of an experiment.

    experiment: none: ``tasks``, whose scores are exact, or ``sampled`` where one of them has no
    law.
    names: entries of the experiment, or kinds of samplers (``entry_of``).
    parts: parts of tasks' names, of which a task must have one; none: all tasks.
    """
    known = {*kinds.names("samplers"), *(r.labels["entry"] for r in study.runs.values() if r.arena)}
    if unknown := [name for name in names if name not in known]:
        remedy = nearest(unknown[0], known)
        raise ConcordError(f"there is no entry or sampler {unknown[0]!r}; {remedy}")

    def task(run: Run) -> str:
        """Return the name of a run's task."""
        return short_name(run.document)

    lawless = _lawless(study, names)
    # What has no name is called as it is typed; that of a plug-in is known once it is executed.
    shown = {name: words.called(name, study.sections.names) or name for name in names}
    experiment = experiment or ("sampled" if lawless else "tasks")
    if lawless and experiment == "sampled":
        stated = words.either(shown[name] for name in lawless)
        yield f"Scores are estimated from chains, since no exact law is known of {stated}."
    if experiment not in study.arenas:
        raise ConcordError(
            f"--experiment: {study.path} has no arena {experiment!r}; "
            f"{nearest(experiment, study.arenas)}"
        )
    runs = [study.runs[key] for key in study.runs if key[0] == experiment]
    entries = list(dict.fromkeys(run.labels["entry"] for run in runs))
    tasks = [run for run in runs if run.labels["entry"] == entries[0]]
    chosen = [run for run in tasks if not parts or any(part in task(run) for part in parts)]
    if not chosen:
        known = {label for run in tasks for key, label in run.labels.items() if key != "entry"}
        raise ConcordError(f"--tasks: no task has {parts[0]!r}; {nearest(parts[0], known)}")
    far = [run for run in chosen if not all((resources / d).is_dir() for d in run.data_sets)]
    if far and len(far) < len(chosen):
        chosen = [run for run in chosen if run not in far]
        yield (
            f"Left out: {', '.join(map(task, far))}, whose data are not in "
            f"{resources}; `snakemake arena` makes or downloads them."
        )
    for name in names:  # before any is scored
        entered(study, chosen[0], name, entries)
    measured: list[Measured] = []
    said: dict[str, str] = {}  # what was tuned of an entry, on the first task
    reasons: dict[str, str] = {}  # why an entry has no score, of the first task
    lines: list[tuple[str, dict[str, Measured]]] = []
    for run in each(chosen, "tasks"):
        own = {}
        for name in names:
            cell = entered(study, run, name, entries)
            scored = cells.score(cell, cells.task_of(cell, resources))
            own[name] = results.from_rows(cell.document, scored.rows)
            why = scored.choice.get("not applicable", scored.choice.get("not run"))
            if name not in said:
                said[name] = _tuned(shown[name], task(run), cell, scored.choice)
            if why is not None and name not in reasons:
                reasons[name] = f"{shown[name]} on {task(run)}: {why}"
        measured += own.values()
        lines.append((task(run), own))
    budget = chosen[0].arena
    assert budget is not None
    yield from said.values()
    yield from reasons.values()
    for price, amount in budget.budget.items():
        yield (
            f"The worst agent's squared bias in posterior variances after {amount:g} {price} "
            f"per agent, mean over {budget.sets} data sets:"
        )
        table = [["", *shown.values()]]
        for text, own in lines:
            table.append([text, *(_shown(cell, f"b2_by_{price}") for cell in own.values())])
        yield from _columns(table)
        scores = head_to_head.of_tasks(measured, f"b2_by_{price}", "entry", "worst")
        for one, other in itertools.combinations(names, 2):
            logs = head_to_head.meet(scores, one, other)
            if not logs:
                yield f"{shown[one]} and {shown[other]} have no task in common."
                continue
            won, tied, lost = head_to_head.record(logs, 1.05)
            ratio = head_to_head.describe_ratio(logs, 3)
            what = "median over all data sets"
            if len(logs) > 1:
                what += f", with a 95 % interval over the {len(logs)} tasks"
            yield (
                f"{shown[one]} against {shown[other]}, over all data sets: {won} won, {tied} tied, "
                f"{lost} lost; {shown[other]}'s squared bias is {ratio} times {shown[one]}'s "
                f"({what})"
            )
        yield ""


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a text table whose first column names the row."""
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    for head, *row in rows:
        numbers = (f"{cell:>{width}}" for cell, width in zip(row, others, strict=True))
        yield "  ".join([f"{head:{first}}", *numbers])


def entered(study: Study, run: Run, name: str, entries: Sequence[str]) -> Run:
    """Return the run of a task with its entry replaced by another."""
    labels = {**run.labels, "entry": name}
    if name in entries:
        return study.run(run.experiment, "+".join(f"{k}={v}" for k, v in labels.items()))
    if name not in kinds.names("samplers"):
        known = {*entries, *kinds.names("samplers")}
        raise ConcordError(f"there is no entry or sampler {name!r}; {nearest(name, known)}")
    own, tuned = entry_of(name)
    arena = {**run.document["arena"], "second": {}, **tuned}
    stated = {**run.document, "labels": labels, "sampler": {"kind": name, **own}, "arena": arena}
    return Run.from_document(stated, name)


def _tuned(name: str, task: str, cell: Run, choice: Mapping[str, Any]) -> str:
    """Return a sentence on the options tuned on a task, their values and the fixed ones."""
    arena, options = cell.arena, plain(cell.sampler.params)
    assert arena is not None
    tuned = {arena.tune, *arena.second} - {None}
    fixed = words.options({k: v for k, v in options.items() if k not in tuned and v is not None})
    found = next((c for c in choice.values() if isinstance(c, dict) and "chosen" in c), None)
    if found is None or not tuned:
        return f"{name}: nothing was tuned on {task}; fixed: {fixed or 'nothing'}"
    lo, hi = found["values tried"]
    tried = words.options(
        {str(arena.tune): f"from {lo:.3g} to {hi:.3g}"}
        | {k: f"of {words.value(v)}" for k, v in arena.second.items()}
    )
    chosen = {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in found["chosen"].items()}
    return (
        f"{name}, tuned on each task: {tried} ({found['settings']} settings); "
        f"on {task}: {words.options(chosen)}; fixed: {fixed or 'nothing else'}"
    )


def entry_of(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of a sampler that is no entry, and its options to tune.

    A sampler that has no ``step_size``, or a second option to tune, says so as ``ENTRY``; budgets,
    data sets and the rest are the same for all. A ConcordError if it says more.
    """
    stated = getattr(kinds.find("samplers", name, "sampler"), "ENTRY", {})
    own = {"sampler": {"step_size": 0.01}, "arena": {"tune": "step_size"}} | stated
    if more := sorted(own["arena"].keys() - OF_ENTRIES):
        raise ConcordError(
            f"{name}: ENTRY says {more[0]}, which is the same for all; it may say "
            + ", ".join(OF_ENTRIES)
        )
    return own["sampler"], own["arena"]


OF_ENTRIES = ("tune", "second", "share", "read")


def _lawless(study: Study, names: Sequence[str]) -> list[str]:
    """Return the names of entries or samplers whose steps are not affine."""
    entries = {run.labels["entry"]: run.sampler for run in study.runs.values() if run.arena}
    samplers = {
        name: entries[name]
        if name in entries
        else ChosenSampler.parse({"kind": name, **entry_of(name)[0]}, name)
        for name in names
    }
    return [name for name, chosen in samplers.items() if not metrics.states_law(chosen.params)]


def _shown(cell: Measured, metric: str) -> str:
    """Return the worst agent's score of a cell as text, or why there is none."""
    lacking = missing(cell)
    table = cell.metrics[(cell.metrics["metric"] == metric) & (cell.metrics["agent"] == "worst")]
    if lacking or not len(table):
        return lacking or "not applicable"
    value = float(table["value"].iloc[0])
    return f"{value:.3g}" if np.isfinite(value) else "diverged"


def board(study: Study, tables: Sequence[Path], outputs: Sequence[Path], folder: Path) -> None:
    """Write the scores, costs and entries' cards of a study's arena.

    tables: the metrics.csv of its experiments. Costs are the CPU seconds of each cell, tuning
    included. Cards are Markdown.
    """
    measured: list[Measured] = []
    costs: list[list[Any]] = []
    for table in tables:
        seconds = provenance.read_provenance(table)["cpu_seconds"]
        for name, cell in results.read(table.parent).items():
            measured.append(cell)
            entry = cell.run["labels"]["entry"]
            costs.append([table.parent.name, task_of(cell.run), entry, seconds[name]])
    scores, cost = outputs
    columns = "experiment", "task", "entry", "cpu_seconds"
    texts = {
        scores: markup.table(scored.COLUMNS, scored.scores(measured)),
        cost: markup.table(columns, costs),
    }
    for entry in dict.fromkeys(cell.run["labels"]["entry"] for cell in measured):
        own = [cell for cell in measured if cell.run["labels"]["entry"] == entry]
        about = described("samplers", own[0].run["sampler"]["kind"])
        name = words.name("entry", entry, study.sections.names)
        texts[folder / f"{entry}.md"] = cards.card(name, own, about, study.sections.names)
    provenance.write(texts)
