"""Metrics at the last recorded iteration, or at others, of every run and agent.

The long form has one row per value, with its interval. Laid out, the values of ``across`` are
columns and everything else that differs names the rows, so that what all rows share is not told. A
condition's sides stand in its cell ("0.6 against 0.5, not met"), and what is of the network alone
in the first row of its run. Where metrics are no columns a metric's ``_exact`` and ``_floor`` stand
in its cell, too.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Annotated, Any

import numpy as np

from concord.errors import ConcordError
from concord.options import Index, Options, Some
from concord.values import FINITE_RANGE
from concord_studies import metrics, words
from concord_studies.option_notes import NamesLabel, NamesRuns
from concord_studies.results import Measured, divergence
from concord_studies.selection import has, lookup, matches
from concord_studies.tables import Layout, Table, marks_divergence

SIDES = ("value", "limit")  # the left and the right side of a condition
Key = tuple[Any, ...]  # of a row: experiment, labels, agent, iteration
Numbers = dict[str, list[Any]]  # by metric: value and interval


class Params(Options):
    """Options of a table of the last values of metrics."""

    metrics: Annotated[
        Some[str],
        "names of the metrics shown; patterns such as theorem2.* too",
    ]
    agents: Annotated[
        Some[int | str] | None,
        "agents shown: indices, average or network; none: all",
    ] = None
    iterations: Annotated[
        Some[Index] | None,
        "iterations shown; the last of a metric that has none of these",
    ] = None
    across: Annotated[
        Some[str],
        NamesLabel("what the columns are of: metric, agent, iteration, or a label of the runs"),
    ] = ("metric",)
    shows: Annotated[
        dict[str, Any] | None,
        NamesRuns("labels of the runs that readers see; the others are in the CSV file alone"),
    ] = None
    agent_ranges: Annotated[
        bool, "agents by index are two rows, of their least and of their largest number"
    ] = False
    held: Annotated[
        dict[str, dict[str, Any]] | None,
        "by experiment, values of labels that it does not sweep over and that its runs do not tell",
    ] = None
    names: Annotated[dict[str, str] | None, "other texts for values and metrics"] = None


def reads(params: Params) -> list[str]:
    """Return the metrics that at least one of the table's runs must have."""
    return list(params.metrics)


@marks_divergence
def tabulate(params: Params, runs: Sequence[Measured]) -> Table:
    """Return the table of final values; its long form has the runs' labels before the agent.

    A metric is shown where a run has it: the runs of a sweep may differ in what is measured.

    A ConcordError if the runs have none of the values.
    """
    labels = list(dict.fromkeys(label for run in runs for label in run.run["labels"]))
    keys = ["experiment", *labels, "agent", "iteration"]
    rows = [
        [*_row_key(run, labels, params), row.agent, int(row.iteration), row.metric, row.value]
        + [None if math.isnan(end) else end for end in (row.lo, row.hi)]
        for run in runs
        for row in _select_rows(run, params)
    ]
    if not rows:
        agents = words.join_alternatives(
            {str(agent): None for run in runs for agent in run.metrics["agent"]}
        )
        raise ConcordError(f"no value of these metrics and agents; the runs have agents {agents}")
    shown = {_row_key(run, labels, params) for run in runs if matches(run.run, params.shows or {})}
    lost = {_row_key(run, labels, params) for run in runs if divergence(run) is not None}
    told = [
        # The note below names runs that diverged: of such a number no digit says anything.
        [
            *row[:-3],
            *([math.nan, None, None] if key in lost and abs(row[-3]) > FINITE_RANGE else row[-3:]),
        ]
        for row in rows
        if (key := tuple(row[: len(keys) - 2])) in shown
    ]
    layout = _lay_out(params, keys, told)
    if len(shown) < len(runs):
        layout = replace(layout, more=len(_lay_out(params, keys, rows).rows) - len(layout.rows))
    return Table([*keys, "metric", "value", "lo", "hi"], rows, layout)


def _lay_out(params: Params, keys: Sequence[str], rows: Sequence[Sequence[Any]]) -> Layout:
    """Lay out the rows of the long form as a table for readers.

    keys: the names of the entries with which each of the rows begins: experiment, labels, agent,
    iteration; metric, value and the interval's ends follow.
    """
    agent, iteration = keys.index("agent"), keys.index("iteration")
    groups: dict[Key, Numbers] = {}
    for *key, metric, value, lo, hi in rows:
        if params.iterations is None:
            key[iteration] = None  # the last one, which metrics record each for itself
        groups.setdefault(tuple(key), {})[metric] = [value, lo, hi]
    if not {"agent", "metric"} <= set(params.across):  # where a floor has a column of its own
        groups = _join_network(groups, agent, "agent" in params.across)
    if params.agent_ranges:
        groups = _join_agents(groups, agent)
    dims = [*keys, "metric"]
    exact: dict[str, list[float]] = {}
    for numbers in groups.values():
        for metric, (value, lo, hi) in numbers.items():
            exact.setdefault(metric, []).extend([value] if lo is None and hi is None else [])
    digits = {metric: words.count_digits(values) for metric, values in exact.items()}
    cells = {
        (*key, metric): text
        for key, numbers in groups.items()
        for metric, text in _format_cells(numbers, digits, "metric" in params.across).items()
    }
    varies = [len({cell[place] for cell in cells}) > 1 for place in range(len(dims))]
    down = [p for p, name in enumerate(dims) if varies[p] and name not in params.across]
    over = [dims.index(name) for name in params.across if varies[dims.index(name)]]

    def cell_names(cell: Key, places: Sequence[int]) -> tuple[str, ...]:
        """Return the readers' texts of the entries of a cell's key at some indices."""
        name = _head_text if places is over else _reader_text
        return tuple(name(dims[place], cell[place], params.names) for place in places)

    table: dict[tuple[str, ...], dict[tuple[str, ...], str]] = {}
    for cell, text in cells.items():
        row, column = cell_names(cell, down), cell_names(cell, over)
        if table.setdefault(row, {}).setdefault(column, text) != text:
            raise ConcordError(
                f"names: two numbers are called {' '.join((*row, *column))}; name them apart"
            )
    orders = [list(dict.fromkeys(values)) for values in zip(*cells, strict=True)]
    in_order = sorted(cells, key=lambda cell: [orders[place].index(cell[place]) for place in over])
    columns = list(dict.fromkeys(cell_names(cell, over) for cell in in_order))
    heads = [", ".join(text for text in column if text != "network") for column in columns]
    if not over:  # one column, which is about the metric
        heads = [_reader_text("metric", next(iter(cells))[-1], params.names)]
    return Layout(
        [*(_reader_text("", dims[place], params.names) for place in down), *heads],
        [[*name, *(row.get(column, "") for column in columns)] for name, row in table.items()],
        len(down),
    )


def _join_network(groups: Mapping[Key, Numbers], agent: int, apart: bool) -> dict[Key, Numbers]:
    """Move the network's numbers to the rows of its run's agents; return the groups.

    Floors go to every agent, other metrics to the first one, unless ``apart``. groups: numbers by
    the keys of rows. agent: the index of the agent in a key.
    """
    joined = {key: dict(numbers) for key, numbers in groups.items()}
    for network in [key for key in groups if key[agent] == "network"]:
        agents = [k for k in joined if (*k[:agent], "network", *k[agent + 1 :]) == network != k]
        bases = dict.fromkeys(metric for key in agents for metric in joined[key])
        floors = [f"{base}_floor" for base in bases if f"{base}_floor" in joined[network]]
        shared = {floor: joined[network].pop(floor) for floor in floors}
        for key in agents:
            joined[key] |= shared
        if agents and not apart:
            joined[agents[0]] = {**joined.pop(network), **joined[agents[0]]}
    return joined


def _join_agents(groups: Mapping[Key, Numbers], agent: int) -> dict[Key, Numbers]:
    """Join the numbered agents of each run into two rows; return the groups.

    They are of the agents' least and largest number; nan if one of theirs is. groups: numbers by
    the keys of rows. agent: the index of the agent in a key.
    """
    ends = {"agents, least": np.min, "agents, largest": np.max}
    joined: dict[Key, dict[str, list[list[Any]]]] = {}
    for key, numbers in groups.items():
        for name in ends if key[agent].isdigit() else [key[agent]]:
            group = joined.setdefault((*key[:agent], name, *key[agent + 1 :]), {})
            for metric, number in numbers.items():
                group.setdefault(metric, []).append(number)
    return {
        key: {
            metric: [float(ends[key[agent]]([n[0] for n in several])), None, None]
            if key[agent] in ends
            else several[0]
            for metric, several in group.items()
        }
        for key, group in joined.items()
    }


def _format_cells(numbers: Numbers, digits: Mapping[str, int], apart: bool) -> dict[str, str]:
    """Return the texts of a row's cells by column, with a value's interval in its cell.

    digits: those of exact numbers, by metric. apart: whether exact numbers and floors have cells of
    their own.
    """
    texts = {}

    def text_of(metric: str, *, alone: bool = False) -> str:
        """Return the text of a metric's number, ``alone`` without its interval."""
        value, lo, hi = numbers[metric]
        lo, hi = (None, None) if alone else (lo, hi)
        return words.format_cell(value, lo, hi, digits[metric])

    for metric, ends in numbers.items():
        base = metric.removesuffix(".value").removesuffix(".limit")
        base = base if apart else base.removesuffix("_exact").removesuffix("_floor")
        if base != metric and base in numbers:
            continue
        if metrics.is_condition(metric):
            met = "met" if ends[0] == 1 else "not met" if ends[0] == 0 else ""
            sides = (side for end in SIDES if (side := f"{metric}.{end}") in numbers)
            texts[metric] = ", ".join(filter(None, [" against ".join(map(text_of, sides)), met]))
            continue
        texts[metric] = text_of(metric)
        for other in () if apart else ("exact", "floor"):
            if f"{metric}_{other}" in numbers:
                texts[metric] += f"; {other} {text_of(f'{metric}_{other}', alone=True)}"
    return texts


def _reader_text(key: str, value: Any, names: dict[str, str] | None) -> str:
    """Return the text for readers of a label's value.

    key: the label; "": the value is a label's name. names: other texts.
    """
    if text := words.study_text(key, value, names):
        return text if key else text.removesuffix(" =")  # of "rho = 5"
    if value is None:  # a run without the label; a blank would repeat the row above
        return "\N{EN DASH}"
    if key == "metric":
        return words.quantity(str(value))
    if key == "agent":
        return words.agent(value)
    if key == "":
        return words.axis(value)
    text = str(value)
    if key == "experiment":
        return text.replace("_", " ")
    try:
        return text if text.isdigit() else f"{float(text):g}"
    except ValueError:
        return words.name(key, text)


def _head_text(key: str, value: Any, names: dict[str, str] | None) -> str:
    """Return the text of a label's value in a column's head, a number with what it counts."""
    text = _reader_text(key, value, names)
    is_plain = key not in ("metric", "agent") and text.replace(".", "").isdigit()
    return words.label(key, text, names) if is_plain else text


def _row_key(run: Measured, labels: Sequence[str], params: Params) -> Key:
    """Return the first entries of the keys of a run's rows: its experiment and labels.

    A label that its experiment does not sweep over has the value that the table says, or else that
    it holds, in the run, in its sampler or its problem.
    """
    experiment = run.run["experiment"]
    held = (params.held or {}).get(experiment, {})
    values = []
    for label in labels:
        places = [label, f"sampler.{label}", f"problem.{label}"]
        found = (lookup(run.run, at) for at in places if has(run.run, at))
        value = held[label] if label in held else next(found, None)
        values.append(None if value is None else str(run.run["labels"].get(label, value)))
    return experiment, *values


def _select_rows(run: Measured, params: Params) -> Iterator[Any]:
    """Yield the rows of a run that the table shows, metric by metric."""
    agents = None if params.agents is None else {str(agent) for agent in params.agents}
    by_name = {str(name): rows for name, rows in run.metrics.groupby("metric", sort=False)}
    for pattern in params.metrics:
        for name in (name for name in by_name if name == pattern or fnmatchcase(name, pattern)):
            rows = by_name[name]
            # Smoke scale may reach none of the iterations.
            shown = {*(params.iterations or ())} & {*rows["iteration"]} or {rows["iteration"].max()}
            for row in rows[rows["iteration"].isin(shown)].itertuples():
                if agents is None or row.agent in agents:
                    yield row
