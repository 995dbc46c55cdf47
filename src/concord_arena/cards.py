"""The card of an entry of the arena as Markdown: what it is, its bias, its best and worst tasks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from concord_arena.board import name_task
from concord_studies import words
from concord_studies.pages import markdown
from concord_studies.pages.markdown import Section
from concord_studies.results import Measured
from concord_studies.scores import why_no_scores


def format_card(name: str, cells: Sequence[Measured], about: Mapping[str, Any]) -> str:
    """Return the card of an entry.

    name: the entry's title. about: the description of its sampler by ``describe_kind``.
    """
    sections = [*_sampler_sections(about), Section("Options", _describe_options(cells[0].run))]
    steps: list[list[str]] = []
    done: list[tuple[float, list[str]]] = []
    lacking: dict[str, list[str]] = {}
    for cell in cells:
        if (why := why_no_scores(cell)) is not None:
            lacking.setdefault(why, []).append(": ".join(_locate(cell)))
        elif "share" in cell.run["labels"]:
            bias = [_read_value(cell, "stationary_b2", agent) for agent in ("worst", "average")]
            numbers = cell.run["arena"]["share"], _read_value(cell, "chosen.", "network"), *bias
            steps.append([f"{number:.3g}" for number in numbers])
        else:
            done += _score_rows(cell)
    if steps:
        text = "b² of the stationary law, computed exactly, along the tuned option."
        columns = ["share of the largest stable value", "value", "worst agent", "average"]
        sections.append(Section("Stationary bias against step", text, columns, steps))
    done.sort(key=lambda place: place[0])
    for heading, part in (("Best tasks", done[:5]), ("Worst tasks", done[:-6:-1])):
        columns = ["experiment", "task", "price", "b² of the worst agent", "largest stable value"]
        columns += ["chosen", "may vary by"]
        sections.append(Section(heading, "", columns, [row for _, row in part]))
    for why, tasks in lacking.items():
        sections.append(Section(why.capitalize(), "; ".join(tasks)))
    return markdown.page(name, about["is"], sections)


def _sampler_sections(about: Mapping[str, Any]) -> Iterator[Section]:
    """Yield the sections of a sampler's description; a plug-in's equation stays plain text."""
    equation = about["equation"] or ""
    yield (
        Section("Equation", equation)
        if about["from"]
        else Section("Equation", "", equation=equation)
    )
    for name in ("source", "price", "needs"):
        if about[name]:
            text = about[name].replace("``", "")
            begins = text if name == "source" else text[:1].upper() + text[1:]  # with a key
            yield Section(name.capitalize(), begins)


def _describe_options(run: Mapping[str, Any]) -> str:
    """Return a text on the tuned and the fixed options of an entry's sampler."""
    arena = run["arena"]
    stated = {k: v for k, v in run["sampler"].items() if k != "kind" and v is not None}
    share = {arena["tune"]: f"at {arena['share']} of its limit"} if arena["share"] else {}
    tuned = [] if share or arena["tune"] is None else [arena["tune"], *arena["second"]]
    fixed = words.options({k: v for k, v in stated.items() if k not in tuned} | share)
    begin = {k: f"(the search begins at {words.value(stated.get(k))})" for k in tuned}
    begin |= {k: f"({words.value(v)})" for k, v in arena["second"].items()}
    sentence = f"Tuned: {words.options(begin)}. " if tuned else ""
    return f"{sentence}Fixed: {fixed or 'nothing'}."


def _read_value(cell: Measured, metric: str, agent: str) -> float:
    """Return a cell's first value of a metric that begins with ``metric``; nan without one."""
    table = cell.metrics
    rows = (table["metric"].str.startswith(metric) & (table["agent"] == agent)).to_numpy()
    values = table["value"][rows].to_numpy(float)
    return float(values[0]) if len(values) else float("nan")


def _locate(cell: Measured) -> list[str]:
    """Return the names of a cell's experiment and task."""
    return [cell.run["experiment"].replace("_", " "), name_task(cell.run["labels"])]


def _score_rows(cell: Measured) -> Iterator[tuple[float, list[str]]]:
    """Yield, for each unit of the budget, a cell's score and its row of the table."""
    tune = cell.run["arena"]["tune"]
    for price in cell.run["arena"]["budget"]:
        value = _read_value(cell, f"b2_by_{price}", "worst")
        if not np.isnan(value):
            named = [*_locate(cell), price, f"{value:.2g}"]
            metrics = ("stable.", f"chosen.{tune}_by_{price}", f"steps_by_{price}")
            numbers = [_read_value(cell, metric, "network") for metric in metrics]
            yield value, [*named, *("" if np.isnan(n) else f"{n:.3g}" for n in numbers)]
