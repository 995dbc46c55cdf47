"""Expansion: from an experiment's sweep to its runs, one for each cell.

An experiment is one problem with a sweep. Each cell of the sweep is a run that states every
parameter, nothing implicit.
"""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from msgspec.structs import force_setattr

from concord import kinds
from concord.errors import ConcordError, nearest, prefix_errors, require_known, short
from concord.networks.topology import ChosenTopology
from concord.options import build
from concord.values import place_of_key
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
from concord_studies.contracts import declaration_of_problem
from concord_studies.runs.keys import Agents, Keys
from concord_studies.runs.run import Run
from concord_studies.selection import describe_mistake, matches
from concord_studies.spectrum import spectrum_of

EXPERIMENTS_ONLY = ("sweep", "overrides", "smoke", "full", "title", "jobs")  # no keys of runs
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
        _check_keys(stated.get(key, {}), {*Keys.__struct_fields__, "sweep"}, f"{where}.{key}")
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


def _check_keys(stated: Iterable[str], keys: Collection[str], where: str) -> None:
    """Refuse stated keys, perhaps dotted, whose first part is none of the known ``keys``."""
    for key in stated:
        if key.partition(".")[0] not in keys:
            raise ConcordError(f"{place_of_key(where, key)}: unknown key; {nearest(key, keys)}")


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
    mapping: Mapping[str, Any],
    changed: bool = False,
) -> Run:
    """Return the run that a cell's mapping states, with problem and assumptions resolved.

    mapping: the keys of the cell. labels: its values on the axes of the sweep.
    """
    where = study.locate(f"experiments.{experiment}")
    _check_keys(mapping, Keys.__struct_fields__, where)
    stated = {
        **_write_out(study, experiment, mapping, where),
        "paper": study.key,
        "experiment": experiment,
        "run": name,
        "labels": labels,
        "scale": study.config["scale"],
        "seed": study.config["seed"],
        "assumptions": (),
    }
    run = Run.from_document(stated, where)
    study.check_reading(run.reading, f"{where}.reading", run.problem.name)
    if (run.arena is not None) != ("entry" in labels):
        raise ConcordError(
            f"{where}.sweep: cells of the arena, which have the key arena, are told apart by "
            "an axis called entry, and no other runs have one; add the other, or rename it"
        )
    if not study.checked and not changed:  # what a universe cannot have is a result
        of = run.document
        graph = repr((of["topology"], run.agents, of.get("network"), run.sampler.order))
        if graph in study.graphs:
            vars(run)["network_of_agents"] = study.graphs[graph]
        study.graphs[graph] = run.network_of_agents
        run.check()
        metrics.check_families(run, f"{where}.metrics")
    rests = tuple(
        name
        for name, entry in study.assumptions.items()
        if matches(run.document, entry.rests or {})
    )
    force_setattr(run, "assumptions", rests)  # nobody has seen the run yet
    run.document["assumptions"] = list(rests)
    return run


def _write_out(
    study: StudyFiles, experiment: str, mapping: Mapping[str, Any], where: str
) -> dict[str, Any]:
    """Return a run's mapping with what a study states in short written out.

    That is the name of a problem, a file of the study's folder, and a step over a symbol of the
    network. What does not fit is left for the types to refuse.
    """
    whole, problem = dict(mapping), mapping.get("problem")
    if isinstance(problem, str | Mapping):
        keys = {"name": problem} if isinstance(problem, str) else problem
        if "kind" not in keys and isinstance(keys.get("name"), str):
            require_known("problem", keys["name"], study.problems, f"{where}.problem")
        named = study.problems.get(str(keys.get("name")), {})
        whole["problem"] = problem = {"name": experiment, **merge(named, keys)}
        if kinds.exists("problems", kind := problem.get("kind")):
            module = kinds.find("problems", kind, f"{where}.problem")
            for key in declaration_of_problem(module).files:
                if isinstance(file := problem.get(key), str):
                    problem[key] = str(study.path / file)
    if isinstance(sampler := mapping.get("sampler"), Mapping):
        network = mapping.get("topology"), mapping.get("agents")
        whole["sampler"] = {
            key: {**option, "start": _resolve_symbol(option["start"], *network, where, key)}
            if isinstance(option, Mapping) and isinstance(option.get("start"), str)
            else option
            for key, option in sampler.items()
        }
    return whole


def _resolve_symbol(start: str, topology: Any, agents: Any, where: str, key: str) -> float:
    """Return the number that "1.01 / laplacian_max" means on a run's network.

    That is, 1.01 over the largest eigenvalue of the Laplacian.
    """
    place = f"{where}.sampler.{key}.start"
    number, _, symbol = start.partition(" / ")
    try:
        value = float(number) if symbol else math.nan
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ConcordError(
            f"{place}: {short(start)} is no positive number, or such a number over a symbol; "
            "write it like 1.01 / laplacian_max"
        )
    chosen = ChosenTopology.parse(topology, f"{where}.topology")
    graph = chosen.graph(build(Agents, agents, f"{where}.agents"), f"{where}.topology")
    with prefix_errors(place):
        spectrum = spectrum_of(graph)
    require_known("symbol", symbol, spectrum, place)
    if not spectrum[symbol] > 0:
        raise ConcordError(f"{place}: {symbol} of this network is not positive; write a number")
    return value / spectrum[symbol]
