"""Expansion: from an experiment's sweep to its runs, one for each cell.

An experiment is one problem with a sweep. Each cell of the sweep is a run that states every
parameter, nothing implicit.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from concord import kinds
from concord.contracts import declaration_of_problem
from concord.errors import ConcordError, nearest, short
from concord.networks.spectrum import spectrum_of
from concord.networks.topology import ChosenTopology
from concord.options import build
from concord_studies import metrics
from concord_studies.configuration.sections import Reads
from concord_studies.configuration.study_files import StudyFiles
from concord_studies.configuration.sweep import (
    MOST_RUNS,
    Layer,
    cells_of,
    check_label,
    merge,
    relocate,
)
from concord_studies.runs.keys import Keys
from concord_studies.runs.run import Run
from concord_studies.selection import describe_mistake, matches

EXPERIMENTS_ONLY = ("sweep", "overrides", "smoke", "full", "title")  # no keys of runs
DEFAULTS: dict[str, Any] = {
    "partition": {"kind": "equal"},
    "initial": {"kind": "normal", "mean": 0.0, "sd": 1.0},
    "record": {},
    "metrics": [],
    "reading": "published",
}


class Change(NamedTuple):
    """The nested keys that an alternative of an assumption sets, with their place in the file.

    ``when`` are the runs that it changes, of those that rest on the assumption, and ``reads`` what
    claims read of them in the place of what they name.
    """

    assumption: str
    layer: Layer
    when: Mapping[str, Any] = {}
    reads: Reads = Reads()

    def holds_for(self, run: Run) -> bool:
        """Return whether the change applies to a run of the study."""
        rests = self.assumption in run.assumptions
        return rests and matches(run.document, self.when)


def expand(
    study: StudyFiles,
    experiment: str,
    only: str | None = None,
    changes: Sequence[Change] = (),
) -> Iterator[Run]:
    """Yield the runs of an experiment, or only the named one, with changes applied."""
    where = study.locate(f"experiments.{experiment}")
    stated = study.experiments[experiment]
    for key in ("smoke", "full"):
        _check_scale_keys(stated.get(key, {}), f"{where}.{key}")
    common = [
        Layer(study.locate("defaults"), study.raw.get("defaults", {})),
        Layer(where, {key: stated[key] for key in stated if key not in EXPERIMENTS_ONLY}),
    ]
    sweep = stated.get("sweep", {})
    if study.config["scale"] == "full" and "full" in stated:
        common.append(
            Layer(f"{where}.full", {k: v for k, v in stated["full"].items() if k != "sweep"})
        )
        sweep = merge(sweep, stated["full"].get("sweep", {}))
    axes = {}
    for axis, values in sweep.items():
        place = f"{where}.sweep.{check_label(axis, f'{where}.sweep.{axis}')}"
        if axis in ("run", *metrics.COLUMNS):
            raise ConcordError(
                f"{place}: the table of metrics has a column {axis!r}; rename the axis"
            )
        axes[axis] = cells_of(axis, values, place)
    count = math.prod(map(len, axes.values()))
    if count > MOST_RUNS:
        raise ConcordError(
            f"{where}.sweep: {count} runs are more than {MOST_RUNS}; "
            "shorten an axis, or divide the experiment"
        )
    overrides = stated.get("overrides", [])
    base = reduce(merge, (layer.keys for layer in common), DEFAULTS)
    sweep_cells = []
    for cells in itertools.product(*axes.values()):
        labels = dict(zip(axes, (label for label, _ in cells), strict=True))
        sweep_cells.append({"labels": labels})
        name = "+".join(f"{axis}={label}" for axis, label in labels.items()) or "run"
        if only not in (None, name):
            continue
        layers = [layer for _, layer in cells]
        matching = [
            (number, override["set"])
            for number, override in enumerate(overrides)
            if matches({"labels": labels}, override["when"])
        ]
        if any(change is None for _, change in matching):
            continue
        layers += [Layer(f"{where}.overrides[{n}].set", change) for n, change in matching]
        layers += [change.layer for change in changes]
        mapping = reduce(merge, (layer.keys for layer in layers), base)
        if study.config["scale"] == "smoke":
            layers.append(Layer(f"{where}.smoke", stated.get("smoke", {})))
            mapping = merge(_shrink(study, mapping), layers[-1].keys)
        try:
            yield _resolve(study, experiment, name, labels, mapping, bool(changes))
        except ConcordError as error:
            layers = _with_problem(study, mapping.get("problem"), [*common, *layers])
            raise ConcordError(relocate(str(error), where, layers)) from None
    # After the runs: what is wrong with a label itself is told first.
    for number, override in enumerate(overrides if only is None else ()):
        if sentence := describe_mistake(sweep_cells, override["when"], "no cell of the sweep"):
            raise ConcordError(f"{where}.overrides[{number}].when: {sentence}")


def _with_problem(study: StudyFiles, stated: Any, layers: list[Layer]) -> list[Layer]:
    """Return the layers of a run with the named problem that its stated problem begins with."""
    name = stated.get("name") if isinstance(stated, dict) else stated
    if not isinstance(name, str) or name not in study.problems:
        return layers
    named = Layer(study.locate(f"problems.{name}"), {"problem": study.problems[name]}, "problem")
    return [*layers, named] if name == stated else [named, *layers]


def _check_scale_keys(changes: Mapping[str, Any], where: str) -> None:
    """Refuse what an experiment changes at a scale if it names a key that no run has."""
    keys = {*Keys.__struct_fields__, "sweep"}
    for key in changes:
        if key.partition(".")[0] not in keys:
            raise ConcordError(f"{where}: there is no key {short(key)}; {nearest(key, keys)}")


def _shrink(study: StudyFiles, mapping: dict[str, Any]) -> dict[str, Any]:
    """Return a run's mapping within the limits of smoke scale."""
    limits = study.config["smoke"]
    shrunk: dict[str, Any] = {
        key: min(mapping[key], limits[key])
        for key in ("chains", "iterations")
        if isinstance(mapping.get(key), int)
    }
    record, most = mapping.get("record"), mapping.get("iterations")
    late = record.get("burn_in") if isinstance(record, dict) else None
    if isinstance(late, int) and isinstance(most, int):
        shrunk["record"] = {"burn_in": late * shrunk["iterations"] // max(most, 1)}
    return merge(mapping, shrunk)


def _resolve(
    study: StudyFiles,
    experiment: str,
    name: str,
    labels: dict[str, str],
    mapping: dict[str, Any],
    changed: bool = False,
) -> Run:
    """Return the run that a cell's mapping states, with problem and assumptions resolved."""
    where = study.locate(f"experiments.{experiment}")
    keys, mapping = build(Keys, mapping, where), dict(mapping)
    problem_keys = {"name": keys.problem} if isinstance(keys.problem, str) else keys.problem
    base = problem_keys.get("name", "")
    if not isinstance(base, str):
        raise ConcordError(f"{where}.problem.name: {short(base)} is not a text")
    if base and base not in study.problems and "kind" not in problem_keys:
        remedy = nearest(base, study.problems)
        raise ConcordError(f"{where}.problem: there is no problem {short(base)}; {remedy}")
    problem = {"name": experiment, **merge(study.problems.get(base, {}), problem_keys)}
    if kinds.exists("problems", kind := problem.get("kind")):
        for key in declaration_of_problem(kinds.find("problems", kind, f"{where}.problem")).files:
            if isinstance(file := problem.get(key), str):
                problem[key] = str(study.path / file)
    mapping["problem"] = problem
    if isinstance(mapping["topology"], str):
        mapping["topology"] = {"kind": mapping["topology"]}
    mapping["sampler"] = {
        key: _resolve_start(option, mapping, where, key)
        if isinstance(option, Mapping) and "start" in option
        else option
        for key, option in keys.sampler.items()
    }
    study.check_reading(keys.reading, f"{where}.reading", mapping["problem"]["name"])
    arena = mapping.get("arena") is not None
    if arena != ("entry" in labels):
        raise ConcordError(
            f"{where}.sweep: cells of the arena, which have the key arena, are told apart by "
            "an axis called entry, and no other runs have one; add the other, or rename it"
        )
    stated = {
        **mapping,
        "paper": study.key,
        "experiment": experiment,
        "run": name,
        "labels": labels,
        "scale": study.config["scale"],
        "seed": study.config["seed"],
        "assumptions": (),
    }
    run = Run.from_document(stated, where, keys)
    if not study.checked and not changed:  # what a universe cannot have is a result
        parts = mapping["topology"], keys.agents, mapping.get("network"), run.sampler.order
        stated_graph = repr(parts)
        if stated_graph in study.graphs:
            vars(run)["network_of_agents"] = study.graphs[stated_graph]
        study.graphs[stated_graph] = run.network_of_agents
        run.check()
        metrics.check_families(run.metrics, f"{where}.metrics", run.record, run.network)
    rests = tuple(
        name
        for name, entry in study.assumptions.items()
        if matches(run.document, entry.rests or {})
    )
    vars(run)["assumptions"] = rests  # nobody has seen the run yet
    run.document["assumptions"] = list(rests)
    return run


def _resolve_start(
    schedule: Mapping[str, Any], run: Mapping[str, Any], where: str, key: str
) -> dict[str, Any]:
    """Return a schedule's options with the number ``a`` instead of the value of its first step.

    ``{kind: power, start: 1.01 / laplacian_max, b: 230, exponent: 0.04}`` is 1.01 over the largest
    eigenvalue of the Laplacian at the first step, whatever the network.
    """
    place = f"{where}.sampler.{key}"
    if schedule.get("a") is not None:  # null takes back an ``a`` that was merged before
        raise ConcordError(f"{place}: it has both start and a; leave one out, or write a: null")
    rest = {name: value for name, value in schedule.items() if name not in ("start", "a")}
    b, exponent = rest.get("b", 1.0), rest.get("exponent", 1.0)
    a = _first_value(schedule["start"], run, f"{place}.start", where)
    try:
        # Beyond twelve digits eigenvalues differ between processors, as a run's identity must not.
        return {**rest, "a": float(f"{a * float(b) ** float(exponent):.12g}")}
    except (TypeError, ValueError, ArithmeticError):
        return {**rest, "a": a}  # the schedule says what is wrong with the others


def _first_value(start: Any, run: Mapping[str, Any], place: str, where: str) -> float:
    """Return the number that a schedule's ``start`` means on the run's network."""
    number, slash, symbol = str(start).partition(" / ")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if isinstance(start, bool) or not 0 < value < math.inf:
        raise ConcordError(
            f"{place}: {short(start)} is no positive number, or such a number over a symbol; "
            "write it like 1.01 / laplacian_max"
        )
    if not slash:
        return value
    chosen = ChosenTopology.parse(run["topology"], f"{where}.topology")
    graph = chosen.graph(run["agents"], f"{where}.topology")
    try:
        spectrum = spectrum_of(graph)
    except ConcordError as error:
        raise ConcordError(f"{place}: {error}") from None
    if symbol not in spectrum:
        raise ConcordError(
            f"{place}: there is no symbol {short(symbol)}; {nearest(symbol, spectrum)}"
        )
    if not spectrum[symbol] > 0:
        raise ConcordError(f"{place}: {symbol} of this network is not positive; write a number")
    return value / spectrum[symbol]
