"""``compare``: entries of the arena, or other samplers, on tasks; and the board of all scores."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas

from concord import kinds
from concord.arguments import ChosenSampler
from concord.errors import ConcordError, nearest
from concord.options import plain
from concord.progress import each
from concord.sampler import Algorithm, own_options
from concord.summary import Summarized
from concord_arena import board, cards, cells, pairs
from concord_arena.board import choose_tasks, name_task
from concord_arena.entries import ARENA, name_samplers, state_entry
from concord_studies import markup, metrics, provenance, results, words
from concord_studies.catalog import describe_kind
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.guard import Guard
from concord_studies.runs.keys import Arena
from concord_studies.runs.run import Run
from concord_studies.scores import why_no_scores

if TYPE_CHECKING:
    from concord_studies.results import Measured


@dataclass(frozen=True, repr=False)
class Comparison(Summarized):
    """Samplers compared by ``concord.compare``; ``print`` shows what ``concord compare`` does.

    table: a row for each task, price and sampler: ``task``, ``price``, ``sampler``, ``b2``, the
    worst agent's squared bias in posterior variances at the budget, the geometric mean over data
    sets, and ``state``: scored, diverged, not applicable or not run.
    """

    table: pandas.DataFrame
    _lines: Sequence[str]

    def summary(self) -> dict[str, Any]:
        """Return the numbers of tasks and samplers compared."""
        return {name: self.table[name].nunique() for name in ("task", "sampler", "price")}

    def __str__(self) -> str:
        """Return the tables, and what was tuned, as text."""
        return "\n".join(self._lines)


def compare_samplers(
    *samplers: str | type[Algorithm],
    tasks: Sequence[str] = (),
    experiment: str | None = None,
    study: Study | None = None,
    resources: Path = Path("resources"),
) -> Comparison:
    """Compare entries, or other samplers, on tasks of the arena, each tuned, at the same price.

    samplers: entries of the experiment, kinds (``state_entry``), plug-ins included, or a caller's
    classes. tasks: as of ``concord.compare``. experiment: None: ``tasks``, whose scores are exact,
    or ``sampled`` where a sampler has no law. study: the arena; None: Concord's own. resources: the
    folder of data that tasks may need. A ConcordError if an entry, a task or the experiment is not
    there.
    """
    names = name_samplers(samplers)
    study = Study(ARENA, load_config()) if study is None else study
    stated = {run.labels["entry"]: run.sampler for run in study.runs.values() if run.arena}
    for name in names:
        if not kinds.exists("samplers", name) and name not in stated:
            remedy = nearest(name, {*kinds.names("samplers"), *stated})
            raise ConcordError(f"there is no entry or sampler {name!r}; {remedy}")
    chosen_samplers = {
        name: stated.get(name) or ChosenSampler.parse({"kind": name, **state_entry(name)[0]}, name)
        for name in names
    }
    lawless = [name for name, of in chosen_samplers.items() if not metrics.states_law(of.params)]
    # What has no name is called as it is typed; that of a plug-in is known once it is executed.
    shown = {name: words.declared_name(name, study.sections.names) or name for name in names}
    experiment, lines = experiment or ("sampled" if lawless else "tasks"), []
    if lawless and experiment == "sampled":
        whose = words.join_alternatives(shown[name] for name in lawless)
        lines.append(f"Scores are estimated from chains, since no exact law is known of {whose}.")
    if experiment not in study.arenas:
        raise ConcordError(
            f"--experiment: {study.path} has no arena {experiment!r}; "
            f"{nearest(experiment, study.arenas)}"
        )
    runs = [study.runs[key] for key in study.runs if key[0] == experiment]
    entries = list(dict.fromkeys(run.labels["entry"] for run in runs))
    chosen = choose_tasks([run for run in runs if run.labels["entry"] == entries[0]], tasks)
    far = [run for run in chosen if not all((resources / d).is_dir() for d in run.data_sets)]
    if far and len(far) < len(chosen):
        chosen = [run for run in chosen if run not in far]
        left = ", ".join(name_task(run.labels) for run in far)
        lines.append(
            f"Left out: {left}, whose data are not in {resources}; `snakemake arena` makes or "
            "downloads them."
        )
    for name in names:  # before any is scored
        replace_entry(study, chosen[0], name, entries)
    measured: dict[str, dict[str, Measured]] = {}  # by task and name
    tuned: dict[str, str] = {}  # what was tuned of an entry, on the first task
    reasons: dict[str, str] = {}  # why an entry has no score, of the first task
    for run in each(chosen, "tasks"):
        task = name_task(run.labels)
        for name in names:
            cell = replace_entry(study, run, name, entries)
            score = cells.score(cell, cells.build_task(cell, resources))
            cell_scores = results.from_rows(cell.document, score.rows)
            measured.setdefault(task, {})[name] = cell_scores
            tuned.setdefault(name, _describe_tuning(shown[name], task, cell, score.choice))
            why = score.choice.get("not applicable", score.choice.get("not run"))
            if why is not None:
                reasons.setdefault(name, f"{shown[name]} on {task}: {why}")
    arena = chosen[0].arena
    assert arena is not None
    table = pandas.DataFrame(
        [
            {"task": task, "price": price, "sampler": name, **_read_score(cell, f"b2_by_{price}")}
            for price in arena.budget
            for task, cells_of in measured.items()
            for name, cell in cells_of.items()
        ]
    )
    lines += [*tuned.values(), *reasons.values(), *_describe(table, measured, arena, shown)]
    return Comparison(table, lines)


def _describe(
    table: pandas.DataFrame,
    measured: Mapping[str, Mapping[str, Measured]],
    arena: Arena,
    shown: Mapping[str, str],
) -> Iterator[str]:
    """Yield the lines of a comparison: a table of scores for each price, and pairs of samplers.

    table: of ``Comparison``. measured: cells by task and sampler. shown: samplers' titles, by name.
    """
    every = [cell for cells_of_task in measured.values() for cell in cells_of_task.values()]
    for price, amount in arena.budget.items():
        yield (
            f"The worst agent's squared bias in posterior variances after {amount:g} {price} "
            f"per agent, mean over {arena.sets} data sets:"
        )
        rows = [["", *shown.values()]]
        for task, cells_of_task in table[table["price"] == price].groupby("task", sort=False):
            texts = (
                f"{b2:.3g}" if state == "scored" else state
                for b2, state in zip(cells_of_task["b2"], cells_of_task["state"], strict=True)
            )
            rows.append([str(task), *texts])
        yield from _align_columns(rows)
        scores = pairs.scores_of_tasks(every, f"b2_by_{price}")
        for one, other in itertools.combinations(shown, 2):
            logs = pairs.log_ratios(scores, one, other)
            if not logs:
                yield f"{shown[one]} and {shown[other]} have no task in common."
                continue
            won, tied, lost = pairs.count_wins(logs)
            ratio = pairs.describe_ratio(logs, 3)
            what = "median over all data sets"
            if len(logs) > 1:
                what += f", with a 95 % interval over the {len(logs)} tasks"
            yield (
                f"{shown[one]} against {shown[other]}, over all data sets: {won} won, {tied} tied, "
                f"{lost} lost; {shown[other]}'s squared bias is {ratio} times {shown[one]}'s "
                f"({what})"
            )
        yield ""


def _align_columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a text table whose first column names the row."""
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    for head, *row in rows:
        numbers = (f"{cell:>{width}}" for cell, width in zip(row, others, strict=True))
        yield "  ".join([f"{head:{first}}", *numbers])


def replace_entry(study: Study, run: Run, name: str, entries: Sequence[str]) -> Run:
    """Return the run of a task with its entry replaced by another entry, or a kind of sampler.

    entries: the names of the experiment's entries; any other name is a kind.
    """
    labels = {**run.labels, "entry": name}
    if name in entries:
        return study.run(run.experiment, "+".join(f"{k}={v}" for k, v in labels.items()))
    options, tuned = state_entry(name)
    arena = {**run.document["arena"], "second": {}, **tuned}
    stated = {
        **run.document,
        "labels": labels,
        "sampler": {"kind": name, **options},
        "arena": arena,
    }
    return Run.from_document(stated, name)


def _describe_tuning(name: str, task: str, cell: Run, choice: Mapping[str, Any]) -> str:
    """Return a sentence on an entry's tuned options, their values on a task, and the fixed ones.

    name: the entry's title. choice: of ``cells.Scored``.
    """
    arena, options = cell.arena, plain(cell.sampler.params)
    assert arena is not None
    tuned = {arena.tune, *arena.second} - {None}
    names = [each.name for each in own_options(cell.sampler.module) if each.name not in tuned]
    fixed = words.options({k: options[k] for k in names if options[k] is not None})
    setting = next((c for c in choice.values() if isinstance(c, dict) and "chosen" in c), None)
    if setting is None or not tuned:
        return f"{name}: nothing was tuned on {task}; fixed: {fixed or 'nothing'}"
    lo, hi = setting["values tried"]
    ranges = words.options(
        {str(arena.tune): f"from {lo:.3g} to {hi:.3g}"}
        | {k: f"of {words.value(v)}" for k, v in arena.second.items()}
    )
    chosen = {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in setting["chosen"].items()}
    return (
        f"{name}, tuned on each task: {ranges} ({setting['settings']} settings); "
        f"on {task}: {words.options(chosen)}; fixed: {fixed or 'nothing else'}"
    )


def _read_score(cell: Measured, metric: str) -> dict[str, Any]:
    """Return a cell's ``b2`` (of the worst agent; nan without a score) and ``state``, by name."""
    lacking = why_no_scores(cell)
    values = cell.values(metric, "worst")
    if lacking or not len(values):
        return {"b2": np.nan, "state": lacking or "not applicable"}
    return {"b2": values[-1], "state": "scored" if np.isfinite(values[-1]) else "diverged"}


def write_board(
    study: Study,
    tables: Sequence[Path],
    outputs: Sequence[Path],
    folder: Path,
    statement: Path | None = None,
) -> None:
    """Write the tables of scores and costs, and the entries' cards, of a study's arena.

    tables: the metrics.csv of its experiments. outputs: two files, for the scores and for the
    costs, the CPU seconds of each cell, tuning included. folder: of the cards, in Markdown.
    statement: the statement of this job written by the plan, with which inputs and code must agree.
    """
    guard = Guard(statement, outputs[0], [__name__])
    digests = guard.statement.get("tables", {})
    measured: list[Measured] = []
    costs: list[list[Any]] = []
    for table in tables:
        seconds = provenance.read_provenance(table)["cpu_seconds"]
        made_from = digests.get(table.parent.name)
        for name, cell in results.read(table.parent, planned=made_from).items():
            measured.append(cell)
            entry = cell.run["labels"]["entry"]
            costs.append([table.parent.name, name_task(cell.run["labels"]), entry, seconds[name]])
    scores, cost = outputs
    columns = "experiment", "task", "entry", "cpu_seconds"
    texts = {
        scores: markup.table(board.COLUMNS, board.iterate_scores(measured)),
        cost: markup.table(columns, costs),
    }
    for entry in dict.fromkeys(cell.run["labels"]["entry"] for cell in measured):
        cells_of_entry = [cell for cell in measured if cell.run["labels"]["entry"] == entry]
        about = describe_kind("samplers", cells_of_entry[0].run["sampler"]["kind"])
        name = words.name("entry", entry, study.sections.names)
        texts[folder / f"{entry}.md"] = cards.format_card(name, cells_of_entry, about)
    guard.check_again()
    provenance.write(texts, planned=guard.digest)
