"""The leaderboard: ranks with intervals, and how many tasks and targets are solved.

On every data set of a task the entries are ranked by their scores; those within 5 % of each
other share the mean rank. What diverged comes last, what does not apply or was not run after all.
What does not apply is thereby mixed with what is bad, so that the mean rank
among those that apply, on the tasks to which an entry applies, stands beside it. The interval of
the mean rank is Student's over tasks, of the mean over the data sets of each, or over groups of
tasks that share a problem (``clusters``), of the mean over the tasks of each; there is none of one.
Of made-up ranks it contains the mean over all tasks in 94 % of cases with 15 of them, in 92 to 93 %
with three to eight, and in 80 to 93 % with two, whose ranks may be equal (by resampling tasks in
90, 71 and 50 %, with 15, three and two). Counts are of pairs of task (data set by data set) and
target: solved, unsolved, diverged, not applicable and not run add up to all of them. A place is a
range, such as 2-5, where an entry's interval overlaps with those of others: a tie. With fewer than
eight tasks or groups no place is sure. The range of the option is the factor over which the tuned
option may vary with at most twice the best score, the median over tasks. Tuned to the end: in so
many tasks the choice is the last value that was tried.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from concord.laws.intervals import mean_interval
from concord.options import Options, Positive, Some
from concord_studies import selection, words
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured
from concord_studies.scores import TIE, read_scores, task_of, why_no_scores
from concord_studies.tables import Layout, Table, marks_divergence

ENOUGH = 8  # tasks or groups of them, to say which entries are surely ahead of others
UNSURE = "not sure"
STATES = ("solved", "unsolved", "diverged", "not applicable", "not run")


class Params(Options):
    """Options of a leaderboard."""

    prices: Annotated[Some[str], "prices, one board after another"]
    targets: Annotated[tuple[Positive, ...], "targets of the score"] = ()
    score: Annotated[str, "score that ranks; lower ones are better"] = "b2"
    beside: Annotated[str | None, "another score, whose median is shown, too"] = None
    clusters: Annotated[
        str | None, NamesLabel("label whose values group tasks; none: each alone")
    ] = None
    among: Annotated[Some[str], NamesLabel("labels that tell apart what is ranked")] = ("entry",)
    names: Annotated[dict | None, "other texts for values, {no_edges: Isolated}"] = None


def reads(params: Params) -> list[str]:
    """Return the metrics that some of the table's runs must have."""
    return [f"{params.score}_by_{price}" for price in params.prices]


@marks_divergence
def tabulate(params: Params, runs: Sequence[Measured]) -> Table:
    """Return the leaderboard for every price, from the best to the worst mean rank."""
    rows = [row for price in params.prices for row in _rank(price, params, runs)]
    cells = [list(row.values()) for row in rows]
    return Table(list(rows[0]), cells, _lay_out(params, rows))


def _lay_out(params: Params, rows: Sequence[dict[str, Any]]) -> Layout:
    """Return the layout: price, entry, places where they are sure, ranks, and counts of failures.

    Failures that no entry has are left out, and so is how steps were tuned; both are in the CSV.
    """
    priced = ["price"] if len(params.prices) > 1 else []
    sure = ["place"] if all(row["place"] != UNSURE for row in rows) else []
    failed = [state for state in ("diverged", "not run") if any(row[state] for row in rows)]
    texts, medians = [], [name for name in rows[0] if name.startswith("median ")]
    for row in rows:
        names = [row[key].replace("_", " ") for key in priced]
        for key in params.among:
            name = words.name if key == "entry" else words.label
            names.append(name(key, row[key], params.names))
        places = dict.fromkeys((str(row["place"]), str(row["to"])))  # one, or a range under ties
        numbers = [
            words.format_number(row["mean rank"], row["lo"], row["hi"]),
            "" if row["rank where it applies"] is None else f"{row['rank where it applies']:.1f}",
            f"{row['applies']} of {row['tasks']}",
            *([f"{row['solved']} of {row['pairs']}"] if params.targets else []),
            *(words.format_number(row[name]) for name in medians),
            *(str(row[state]) for state in failed),
        ]
        texts.append([*names, *["\N{EN DASH}".join(places)] * len(sure), *numbers])
    columns = [*priced, *(words.axis(key) for key in params.among), *sure]
    solved = ["solved"][: len(params.targets)]
    counts = ["mean rank", "rank where it applies", "tasks", *solved, *medians, *failed]
    return Layout([*columns, *counts], texts, len(columns))


def _rank(price: str, params: Params, runs: Sequence[Measured]) -> list[dict[str, Any]]:
    """Return the rows of the leaderboard for one price, ranked by mean rank."""
    tasks: dict[tuple[str, ...], dict[tuple[str, ...], Measured]] = {}
    counts: dict[tuple[str, ...], dict[str, int]] = {}
    groups: dict[object, list[int]] = {}  # numbers of tasks
    for run in runs:
        name = tuple(str(selection.lookup(run.run, key)) for key in params.among)
        task = task_of(run, params.among)
        if task not in tasks:
            group = selection.lookup(run.run, params.clusters) if params.clusters else task
            groups.setdefault(str(group), []).append(len(tasks))
        tasks.setdefault(task, {})[name] = run
        counts[name] = dict.fromkeys(STATES, 0)
    scores = []
    for cells in tasks.values():
        score = f"{params.score}_by_{price}"
        values = {name: read_scores(run, score, "worst") for name, run in cells.items()}
        stated = [(run.run.get("arena") or {}).get("sets", 1) for run in cells.values()]
        sets = max(*map(len, values.values()), *stated)
        table = np.full((sets, len(counts)), np.nan)  # nan: no score
        for place, name in enumerate(counts):
            scored = values.get(name, np.empty(0))
            if len(scored) == sets:
                table[:, place] = scored
            _count_outcomes(counts[name], cells.get(name), scored, sets, price, params)
        scores.append(table)
    # (tasks, entries)
    means = np.array([np.mean([_average_ties(row) for row in table], axis=0) for table in scores])
    # Who has no score is ranked last, so that the others' ranks are those among themselves.
    applicable = np.where(np.isnan([table[0] for table in scores]), np.nan, means)
    grouped = np.array([means[numbers].mean(axis=0) for numbers in groups.values()])
    intervals = np.transpose(mean_interval(grouped)).clip(1, len(counts))  # (entries, 3)
    rows: list[dict[str, Any]] = []
    for name, (mean, lo, hi), column, ranks in zip(
        counts, intervals, np.concatenate(scores).T, applicable.T, strict=True
    ):
        ranked = ranks[~np.isnan(ranks)]  # (tasks to which it applies,)
        cells_of = [cells[name] for cells in tasks.values() if name in cells]
        wanted = [("steps", "network"), ("end", "network")]
        wanted += [] if params.beside is None else [(params.beside, "worst")]
        steps, end, *besides = (
            np.concatenate([read_scores(cell, f"{what}_by_{price}", who) for cell in cells_of])
            for what, who in wanted
        )
        finite = column[~np.isnan(column)]
        rows.append(
            {
                **{"price": price, "place": UNSURE, "to": UNSURE},
                **dict(zip(params.among, name, strict=True)),
                "mean rank": float(mean),
                "lo": None if np.isnan(lo) else float(lo),
                "hi": None if np.isnan(hi) else float(hi),
                "rank where it applies": float(ranked.mean()) if len(ranked) else None,
                "applies": len(ranked),
                "tasks": len(tasks),
                "median score": float(np.median(finite)) if len(finite) else None,
                **{f"median {params.beside}": float(np.median(each)) for each in besides},
                "range of the option": float(np.median(steps)) if len(steps) else None,
                "tuned to the end": int(end.sum()) if len(end) else None,
                **counts[name],
                "pairs": sum(counts[name].values()),
            }
        )
    rows.sort(key=lambda row: row["mean rank"])
    if len(groups) >= ENOUGH:
        # No other is surely ahead of it, or behind, whose interval overlaps with its own.
        los, his = np.array([(row["lo"], row["hi"]) for row in rows], dtype=float).T
        for row in rows:
            row["place"] = 1 + int((his < row["lo"]).sum())
            row["to"] = len(rows) - int((los > row["hi"]).sum())
    return rows


def _average_ties(scores: np.ndarray) -> np.ndarray:
    """Return ranks, 1 the best, of scores (entries,) on a data set; infinity ties, nan is last."""
    logs = np.log(np.maximum(scores, 1e-300))
    # Infinite and missing scores stand far beyond all others, each among their own.
    logs = np.where(np.isnan(logs), 2e4, np.where(np.isinf(logs), 1e4, logs))
    better = (logs[None, :] < logs[:, None] - np.log(TIE)).sum(axis=1)
    same = (np.abs(logs[None, :] - logs[:, None]) <= np.log(TIE)).sum(axis=1)
    return better + (same + 1) / 2


def _count_outcomes(
    counts: dict[str, int],
    run: Measured | None,
    values: np.ndarray,
    sets: int,
    price: str,
    params: Params,
) -> None:
    """Count the outcomes of an entry's data sets and targets into ``counts``."""
    lacking = "not run" if run is None else why_no_scores(run)
    if run is None or lacking or len(values) != sets:
        counts[lacking or "not applicable"] += sets * len(params.targets)
        return
    for target in params.targets:
        paid = read_scores(run, f"{price}_to_{target:g}", "worst")
        solved = np.isfinite(paid) if len(paid) == sets else np.zeros(sets, dtype=bool)
        counts["solved"] += int(solved.sum())
        counts["diverged"] += int((~solved & ~np.isfinite(values)).sum())
        counts["unsolved"] += int((~solved & np.isfinite(values)).sum())
