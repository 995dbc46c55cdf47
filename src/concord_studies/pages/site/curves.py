"""Curves to work with: the metrics over iterations that figures show, thinned, for a browser.

Figures that differ in their reading alone (``fig2``, ``fig2_released``) share their curves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concord.options import plain
from concord_studies import results as read_results
from concord_studies import words
from concord_studies.configuration.study import Study
from concord_studies.contracts import Read
from concord_studies.metrics import prices as all_prices
from concord_studies.results import Measured
from concord_studies.runs.run import Run

if TYPE_CHECKING:
    import pandas

# What is drawn beside a metric, by the end of its name.
BESIDE = {
    "": "estimate from the chains",
    "_exact": "exact law",
    "_floor": "floor: as many exact draws",
    "_point": "a point at the mean",
}
NAMES = {"w2": "W2 distance to the posterior"}
FEWEST = 3  # iterations of a curve
AGENTS = 4  # shown besides those that the figures draw
MOST = 45  # iterations shown, evenly spaced, and as many by their logarithm


def group(paper: Study, name: str) -> str:
    """Return a figure's name without the reading at its end."""
    for reading in sorted(paper.readings, key=len, reverse=True):
        stem = name.removesuffix(f"_{reading}")
        if stem != name and stem in paper.sections.figures:
            return stem
    return name


def curves(paper: Study, names: Sequence[str], results: Path) -> dict[str, Any] | None:
    """Return the curves that figures show, None if they show none.

    names: figures of one group; what the first shows is chosen at first.
    results: folder of the results; runs that are not there are left out.
    Returned are ``axes``: what runs differ in, with names of the values; ``metrics``; ``prices``:
    what x may count; ``runs``: labels, iterations ``k``, ``x`` by price, and ``curves`` of an agent
    and metric with ``v``, ``lo`` and ``hi`` (None where there is none); ``start``: what is chosen.
    """
    runs, metrics, agents, options = _read(paper, names)
    found = []
    tables: dict[str, Mapping[str, Measured]] = {}
    for run in runs.values():
        folder = results / run.paper / run.experiment
        if run.experiment not in tables:
            made = (folder / "metrics.csv").exists()
            tables[run.experiment] = read_results.read(folder) if made else {}
        measured = tables[run.experiment].get(run.name)
        if measured and (one := _run(run, measured.metrics, metrics, agents)):
            found.append(one)
    if not found:
        return None
    kept = [m for m in metrics if any(c["metric"] == m for r in found for c in r["curves"])]
    names_of = dict(options.get("names") or {})
    axes = {}
    for key in dict.fromkeys(label for one in found for label in one["labels"]):
        values = list(dict.fromkeys(one["labels"].get(key) for one in found))
        if len(values) > 1:
            axes[key] = {
                "name": "network" if key == "topology" else key.split(".")[-1].replace("_", " "),
                "values": [
                    [v, "none" if v is None else words.name(key, v, names_of)] for v in values
                ],
            }
    shown = (c for one in found for c in one["curves"] if c["beside"] in ("", "_exact"))
    there = list(dict.fromkeys(c["agent"] for c in shown))
    there.sort(key=lambda agent: (not agent.isdigit(), int(agent) if agent.isdigit() else 0))
    first = {run.folder for run in paper.output_runs("figures", names[0])}
    for one in found:
        one["first"] = one["folder"] in first
    known = all_prices().items()
    paid = {name: price for name, price in known if any(name in run["x"] for run in found)}
    return {
        "axes": axes,
        "agents": [[agent, agent_name(agent)] for agent in there],
        "metrics": [[m, NAMES.get(m, words.metric(m))] for m in kept],
        "prices": [[name, price.axis] for name, price in paid.items()],
        "beside": [[end, text] for end, text in BESIDE.items()],
        "runs": found,
        "start": {
            "agents": [a for a in there if a in agents] or there[:4],
            "panels": [k for k in (options.get("rows"), options.get("columns")) if k in axes]
            or [k for k in ("experiment",) if k in axes],
            "log": any(
                (part.get("y") or {}).get("scale") == "log"
                for part in (options, *(options.get("panels") or ()))
            ),
        },
    }


def agent_name(agent: str) -> str:
    """Return what readers call an agent: they are numbered from 1."""
    return str(int(agent) + 1) if agent.isdigit() else agent


def _read(
    paper: Study, names: Iterable[str]
) -> tuple[dict[str, Run], list[str], set[str], dict[str, Any]]:
    """Return the figures' runs by folder, the metrics and agents they read, the first's options."""
    runs: dict[str, Run] = {}
    metrics: dict[str, None] = {}
    agents: set[str] = set()
    first: dict[str, Any] = {}
    for name in names:
        kind, params = paper.kind_of("figures", name)
        for read in kind.reads(params):
            metric = read.metric if isinstance(read, Read) else read
            if metric not in all_prices() and "layers" in kind.Params.__struct_fields__:
                metrics[metric] = None
            agents |= set(map(str, read.agents)) if isinstance(read, Read) else set()
        runs |= {run.folder: run for run in paper.output_runs("figures", name)}
        first = first or plain(params)
    return runs, list(metrics), agents, first


def _run(
    run: Run, table: pandas.DataFrame, metrics: Sequence[str], agents: set[str]
) -> dict[str, Any] | None:
    steps = {
        metric: np.unique(table["iteration"].to_numpy()[(table["metric"] == metric).to_numpy()])
        for metric in metrics
    }
    longest = max(steps.values(), key=len, default=np.empty(0))
    if len(longest) < FEWEST:
        return None
    k = _thinned(longest)
    wanted = {f"{m}{end}" for m in metrics if len(steps[m]) >= FEWEST for end in BESIDE}
    found = []
    kept = table[table["metric"].isin(wanted)]
    numbers = [agent for agent in kept["agent"].unique() if agent.isdigit()]
    left_out = set(numbers[AGENTS:]) - agents
    kept = kept[~kept["agent"].isin(left_out)]
    for key, rows in kept.groupby(["metric", "agent"], sort=False):
        metric, agent = map(str, key)
        base = next(m for m in metrics for end in BESIDE if f"{m}{end}" == metric)
        found.append({"agent": agent, "metric": base, "beside": metric.removeprefix(base)})
        found[-1] |= _curve(rows, k)
    known = table["metric"].isin(all_prices())
    prices = {}
    for price, rows in table[(table["agent"] == "network") & known].groupby("metric", sort=False):
        if len(rows) >= FEWEST:
            numbers = np.interp(k, rows["iteration"].to_numpy(), rows["value"].to_numpy())
            prices[price] = _numbers(numbers, 6)
    labels = {"experiment": run.experiment, **run.labels}
    labels.setdefault("reading", run.reading)
    texts = {key: str(value) for key, value in labels.items()}
    shown = {"folder": run.folder, "labels": texts, "k": k.tolist(), "x": prices}
    return {**shown, "curves": found}


def _thinned(iterations: np.ndarray) -> np.ndarray:
    """Return some of the iterations, evenly spaced and by their logarithm."""
    last = len(iterations) - 1
    even = np.linspace(0, last, min(last + 1, MOST))
    log = np.geomspace(1, last + 1, min(last + 1, MOST)) - 1
    return iterations[np.unique(np.rint(np.concatenate([even, log])).astype(int))]


def _curve(rows: pandas.DataFrame, k: np.ndarray) -> dict[str, Any]:
    """Return the numbers at the iterations k; a single one stands for all."""
    if len(rows) == 1:
        return {"v": _numbers(rows["value"].to_numpy()), "lo": None, "hi": None}
    at = rows.drop_duplicates("iteration").set_index("iteration").reindex(k)
    found: dict[str, Any] = {"v": _numbers(at["value"].to_numpy())}
    for end in ("lo", "hi"):
        values = at[end].to_numpy()
        found[end] = _numbers(values) if np.isfinite(values).any() else None
    return found


def _numbers(values: np.ndarray, digits: int = 4) -> list[float | None]:
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in values]
