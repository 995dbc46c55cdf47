"""What the arena says of all its cells: one long table of scores, and a card of each entry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from concord.metrics import PRICES
from concord.report.pages import Section
from concord.results import Measured
from concord.scores import missing

COLUMNS = (
    *("experiment", "task", "entry", "price", "spent", "level", "score", "value", "lo", "hi"),
    "state",
)
_SCORES = re.compile(
    rf"(?!steps_|end_|sigma_)((?:floor\.)?\w+)_by_({'|'.join(PRICES)})|(stationary_b2)"
)


def task_of(run: Mapping[str, Any]) -> str:
    """Return what a task is called: what its labels say of problem and network."""
    return "+".join(f"{k}={v}" for k, v in run["labels"].items() if k != "entry") or "task"


def scores(cells: Sequence[Measured]) -> Iterator[list[Any]]:
    """Yield the rows of the long table; a cell without scores has one that says why.

    state: scored, diverged (the score is infinite), not applicable, or not run.
    """
    for cell in cells:
        run = cell.run
        head = [run["experiment"], task_of(run), run["labels"]["entry"]]
        if (lacking := missing(cell)) is not None:
            yield [*head, *[None] * 7, lacking]
            continue
        for row in cell.metrics.to_dict("records"):
            found = _SCORES.fullmatch(row["metric"])
            if found is None:
                continue
            score, price, limit = found.groups()
            spent = run["arena"]["budget"].get(price) if price else None
            ends = [None if np.isnan(row[end]) else row[end] for end in ("lo", "hi")]
            state = "scored" if np.isfinite(row["value"]) else "diverged"
            yield [*head, price, spent, row["agent"], score or limit, row["value"], *ends, state]


def card(entry: str, cells: Sequence[Measured], about: Mapping[str, Any]) -> list[Section]:
    """Return the sections of an entry's card; ``about`` is what the catalog says of its sampler."""
    equation = about.get("equation") or ""
    if about.get("from"):  # a plug-in's is text, whatever it holds
        sections = [Section("Equation", equation, [], [])]
    else:
        sections = [Section("Equation", "", [], [], equation=equation)]
    for name in ("source", "price", "needs"):
        if text := about.get(name):
            sections.append(Section(name.capitalize(), str(text).replace("``", ""), [], []))
    first = cells[0].run
    stated = {k: v for k, v in first["sampler"].items() if k != "kind" and v is not None}
    arena = first["arena"]
    if arena["tune"] is None or arena["share"]:
        share = f", {arena['tune']} at {arena['share']} of its limit" if arena["share"] else ""
        text = f"As they stand: {_told(stated)}{share}."
    else:
        tuned = ", ".join([arena["tune"], *arena["second"]])
        text = f"Begins with {_told(stated)}. Tuned: {tuned}."
    sections.append(Section("Options", text, [], []))
    steps: list[list[str]] = []
    done: list[tuple[float, list[str], list[str]]] = []
    for cell in cells:
        shares = "share" in cell.run["labels"]
        if missing(cell) is not None:
            continue
        if shares:
            steps.append(_row(cell, ("chosen.", "stationary_b2")))
        else:
            done += _places(cell)
    if steps:
        text = "b² of the stationary law, computed exactly, along the tuned option."
        columns = ["share of the largest stable value", "value", "worst agent", "average"]
        sections.append(Section("Stationary bias against step", text, columns, steps))
    done.sort(key=lambda place: place[0])
    for heading, part in (("Best tasks", done[:5]), ("Worst tasks", done[:-6:-1])):
        rows = [[*names, f"{value:.2g}", *numbers] for value, names, numbers in part]
        columns = ["experiment", "task", "price", "b² of the worst agent", "largest stable value"]
        columns += ["chosen", "may vary by"]
        sections.append(Section(heading, "", columns, rows))
    lacking: dict[str, list[str]] = {}
    for cell in cells:
        if (why := missing(cell)) is not None:
            lacking.setdefault(why, []).append(f"{cell.run['experiment']}: {task_of(cell.run)}")
    for why, tasks in lacking.items():
        sections.append(Section(why.capitalize(), "; ".join(tasks), [], []))
    return sections


def _told(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} {v}" for k, v in options.items()) or "no options"


def _value(cell: Measured, metric: str, agent: str) -> float:
    table = cell.metrics
    mine = (table["metric"].str.startswith(metric) & (table["agent"] == agent)).to_numpy()
    values = table["value"][mine].to_numpy(float)
    return float(values[0]) if len(values) else float("nan")


def _row(cell: Measured, metrics: Sequence[str]) -> list[str]:
    chosen, bias = metrics
    numbers = [
        cell.run["arena"]["share"],
        _value(cell, chosen, "network"),
        _value(cell, bias, "worst"),
        _value(cell, bias, "average"),
    ]
    return [f"{number:.3g}" for number in numbers]


def _places(cell: Measured) -> Iterator[tuple[float, list[str], list[str]]]:
    tune = cell.run["arena"]["tune"]
    for price in cell.run["arena"]["budget"]:
        value = _value(cell, f"b2_by_{price}", "worst")
        if not np.isnan(value):
            names = [cell.run["experiment"], task_of(cell.run), price]
            metrics = ("stable.", f"chosen.{tune}_by_{price}", f"steps_by_{price}")
            numbers = [_value(cell, metric, "network") for metric in metrics]
            yield value, names, ["" if np.isnan(n) else f"{n:.3g}" for n in numbers]
