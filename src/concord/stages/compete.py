"""compete: an entry of the arena on all tasks of an experiment, scored.

Beside a cell's ``metrics.csv`` are its ``run.yaml`` and ``choice.yaml``, which says what was chosen
and why. Cells are scored together since each takes less time than a command does to start.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concord import integrity, metrics, results
from concord.arena import cells
from concord.arena.cards import task_of
from concord.errors import ConcordError, nearest
from concord.integrity import Made
from concord.io import dump_yaml, whole
from concord.plugins import kinds, provided
from concord.progress import each
from concord.provenance import code
from concord.runs import assemble, complete, keys_of, kinds_of
from concord.scores import missing

if TYPE_CHECKING:
    from concord.results import Measured
    from concord.studies.paper import Paper, Run


def compete(paper: Paper, experiment: str, entry: str, below: Path, resources: Path) -> None:
    """Score an entry on every task of an experiment, and write the cells below a folder."""
    runs = paper.select({"experiment": experiment, "entry": entry}, "experiments")
    for run in each(runs, "tasks"):
        mapping, where = run.mapping, f"{paper.path}: {experiment}"
        begun = time.process_time()
        parts = assemble(mapping, where)
        arena = keys_of(mapping, where).arena
        assert arena is not None
        task = cells.task_of(mapping, parts, arena, resources)
        scored = cells.score(mapping, parts, arena, task)
        more: dict[str, Any] = {"cpu_seconds": round(time.process_time() - begun, 3)}
        folder = below / run.folder
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("run.yaml", dump_yaml(mapping)),
            ("choice.yaml", dump_yaml(scored.choice)),
            ("metrics.csv", metrics.to_csv(scored.rows)),
        ):
            with whole(folder / name) as path:
                path.write_text(text, encoding="utf-8")
        if used := provided(kinds_of(mapping)):
            more["plugins"] = used
        outputs = [folder / name for name in ("metrics.csv", "choice.yaml", "run.yaml")]
        integrity.seal(outputs, cells.made(mapping, resources), **more)


def compare(
    paper: Paper, experiment: str, names: Sequence[str], words: Sequence[str], resources: Path
) -> Iterator[str]:
    """Yield lines that compare entries, or samplers that are none yet, on tasks of an experiment.

    Parameters
    ----------
    names
        Entries of the experiment, or kinds of samplers, whose ``step_size`` is tuned then.
    words
        Parts of tasks' names, of which a task must have one; none: all tasks.
    """
    from concord.tables import head_to_head

    if experiment not in paper.arenas:
        raise ConcordError(
            f"--experiment: {paper.path} has no arena {experiment!r}; "
            f"{nearest(experiment, paper.arenas)}"
        )
    runs = [paper.runs[key] for key in paper.runs if key[0] == experiment]
    entries = list(dict.fromkeys(run.mapping["labels"]["entry"] for run in runs))
    tasks = [run.mapping for run in runs if run.mapping["labels"]["entry"] == entries[0]]
    chosen = [run for run in tasks if not words or any(word in task_of(run) for word in words)]
    if not chosen:
        known = {label for run in tasks for key, label in run["labels"].items() if key != "entry"}
        raise ConcordError(f"--tasks: no task has {words[0]!r}; {nearest(words[0], known)}")
    for name in names:  # before any is scored
        _entered(paper, chosen[0], name, entries)
    measured: list[Measured] = []
    reasons: dict[str, str] = {}  # why an entry has no score, of the first task
    lines: list[tuple[str, dict[str, Measured]]] = []
    for run in each(chosen, "tasks"):
        own = {}
        for name in names:
            mapping = _entered(paper, run, name, entries)
            parts = assemble(mapping, name)
            arena = keys_of(mapping, name).arena
            assert arena is not None
            scored = cells.score(
                mapping, parts, arena, cells.task_of(mapping, parts, arena, resources)
            )
            own[name] = results.of_text(mapping, metrics.to_csv(scored.rows))
            why = scored.choice.get("not applicable", scored.choice.get("not run"))
            if why is not None and name not in reasons:
                reasons[name] = f"{name} on {task_of(run)}: {why}"
        measured += own.values()
        lines.append((task_of(run), own))
    budget = keys_of(chosen[0], experiment).arena
    assert budget is not None
    yield from reasons.values()
    for price, amount in budget.budget.items():
        yield f"b2 of the worst agent after {amount:g} {price}, mean over {budget.sets} data sets:"
        width = max(len(task) for task, _ in lines)
        yield "  ".join([" " * width, *(f"{name:>14}" for name in names)])
        for task, own in lines:
            texts = [_shown(cell, f"b2_by_{price}") for cell in own.values()]
            yield "  ".join([f"{task:{width}}", *(f"{text:>14}" for text in texts)])
        scores = head_to_head.of_tasks(measured, f"b2_by_{price}", "entry", "worst")
        for one, other in itertools.combinations(names, 2):
            logs = head_to_head.meet(scores, one, other)
            if not logs:
                yield f"{one} and {other} have no task in common."
                continue
            won, tied, lost = head_to_head.record(logs, 1.05)
            ratio, lo, hi = head_to_head.median_ratio(logs)
            yield (
                f"{one} against {other}: {won} won, {tied} tied, {lost} lost; median ratio of "
                f"{other}'s score to {one}'s {ratio:.3g} [{lo:.3g}, {hi:.3g}]"
            )
        yield ""


def _entered(paper: Paper, run: Mapping[str, Any], name: str, entries: Sequence[str]) -> Any:
    """Return a task's run with another entry."""
    experiment, labels = run["experiment"], {**run["labels"], "entry": name}
    if name in entries:
        return paper.run(experiment, "+".join(f"{k}={v}" for k, v in labels.items())).mapping
    if name not in kinds("samplers"):
        known = {*entries, *kinds("samplers")}
        raise ConcordError(f"there is no entry or sampler {name!r}; {nearest(name, known)}")
    arena = {**run["arena"], "tune": "step_size", "second": {}}
    mapping = {**run, "labels": labels, "sampler": {"kind": name, "step_size": 0.01}}
    return complete({**mapping, "arena": arena}, name)


def _shown(cell: Measured, metric: str) -> str:
    lacking = missing(cell)
    table = cell.metrics[(cell.metrics["metric"] == metric) & (cell.metrics["agent"] == "worst")]
    if lacking or not len(table):
        return lacking or "not applicable"
    value = float(table["value"].iloc[0])
    return f"{value:.3g}" if np.isfinite(value) else "diverged"


def board(paper: Paper, results: Path, outputs: Path) -> None:
    """Write what a study's arena says into a folder: scores, costs, and the entries' cards.

    ``scores.csv``, ``cost.csv`` (the CPU seconds of each cell, tuning included) and ``cards/*``
    (.md .html).
    """
    from concord.arena import cards
    from concord.catalog import described
    from concord.report import markup
    from concord.report.pages import markdown_page, page
    from concord.stages.draw import checked

    runs = [run for run in paper.runs.values() if "arena" in run.mapping]
    cells = [checked(run, results) for run in runs]
    texts = {
        "scores.csv": markup.table(cards.COLUMNS, cards.scores(cells)),
        "cost.csv": markup.table(
            ("experiment", "task", "entry", "cpu_seconds"), (_cost(run, results) for run in runs)
        ),
    }
    for entry in dict.fromkeys(cell.run["labels"]["entry"] for cell in cells):
        own = [cell for cell in cells if cell.run["labels"]["entry"] == entry]
        about = described("samplers", own[0].run["sampler"]["kind"])
        sections = cards.card(entry, own, about)
        texts[f"cards/{entry}.md"] = markdown_page(entry, about["is"], sections)
        texts[f"cards/{entry}.html"] = page(entry, about["is"], sections)
    for name, text in texts.items():
        with whole(outputs / name) as path:
            path.write_text(text, encoding="utf-8")
    integrity.seal([outputs / name for name in texts], board_made(paper, results))


def _cost(run: Run, results: Path) -> list[Any]:
    seconds = integrity.document(results / run.folder / "metrics.csv")["cpu_seconds"]
    entry = run.mapping["labels"]["entry"]
    return [run.experiment, task_of(run.mapping), entry, seconds]


def board_made(paper: Paper, results: Path) -> Made:
    """Return what the scores and cards of a study are made from."""
    from concord.stages.draw import metrics_digest

    runs = [run for run in paper.runs.values() if "arena" in run.mapping]
    return {"metrics": metrics_digest(runs, results), "code": code(__name__)}
