"""Expansion: from an experiment's sweep to its runs, one for each cell.

An experiment is one problem with a sweep. Each cell of the sweep is a run that states every
parameter, nothing implicit.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as with_changes
from typing import Any, NamedTuple

from concord import kinds
from concord.errors import ConcordError, nearest, short
from concord.options import build
from concord_studies import metrics
from concord_studies.configuration.sections import Reads
from concord_studies.configuration.starts import resolved_sampler
from concord_studies.configuration.stated import Stated
from concord_studies.configuration.sweep import (
    LONGEST_NAME,
    MOST_RUNS,
    cells_of,
    check_label,
    label_texts,
    leaves,
    merge,
    relocate,
)
from concord_studies.contracts import declared
from concord_studies.runs.keys import Keys
from concord_studies.runs.run import Run
from concord_studies.selection import matches

DEFAULTS: dict[str, Any] = {
    "partition": {"kind": "equal"},
    "initial": {"kind": "normal", "mean": 0.0, "sd": 1.0},
    "record": {},
    "metrics": [],
    "reading": "published",
}


class Change(NamedTuple):
    """The nested keys that an alternative of an assumption sets, and their place in the file.

    ``when`` are the runs that it changes, of those that rest on the assumption, and ``reads`` what
    claims read of them in the place of what they name (``model.Reads``).
    """

    assumption: str
    keys: dict[str, Any]
    places: dict[str, str]
    when: Mapping[str, Any] = {}
    reads: Reads = Reads()

    def holds_for(self, run: Run) -> bool:
        """Return whether the change applies to a run of the study."""
        rests = self.assumption in run.assumptions
        return rests and matches(run.document, self.when)


def expand(
    study: Stated,
    experiment: str,
    only: str | None = None,
    changes: Sequence[Change] = (),
) -> Iterator[Run]:
    """Yield the runs of an experiment, or only the named one, with changes applied."""
    where, file = f"experiments.{experiment}", study.files["experiments"]
    base = merge(merge(DEFAULTS, study.raw.get("defaults", {})), study.experiments[experiment])
    for key in ("smoke", "full"):
        _check_keys(study, base.get(key, {}), f"{where}.{key}")
    full = base.pop("full", {})
    if study.config["scale"] == "full":
        base = merge(base, full)
    sweep = base.pop("sweep", {})
    overrides = base.pop("overrides", [])
    smoke = base.pop("smoke", {})
    base.pop("title", None)
    axes = []
    for axis, values in sweep.items():
        place = f"{where}.sweep.{axis}"
        check_label(axis, place, file)
        if axis in ("run", *metrics.COLUMNS):
            raise ConcordError(
                f"{file}: {place}: the table of metrics has a column {axis!r}; rename the axis"
            )
        axes.append([(axis, *cell) for cell in cells_of(axis, values, place, file)])
    count = math.prod(map(len, axes))
    if count > MOST_RUNS:
        raise ConcordError(
            f"{file}: {where}.sweep: {count} runs are more than {MOST_RUNS}; "
            "shorten an axis, or divide the experiment"
        )
    labels_of = {cells[0][0]: [cell[1] for cell in cells] for cells in axes}
    for combination in itertools.product(*axes):
        name = "+".join(f"{axis}={label}" for axis, label, *_ in combination) or "run"
        if only not in (None, name):
            continue
        if len(name) > LONGEST_NAME:
            raise ConcordError(
                f"{file}: {where}.sweep: the name {short(name)} has more than "
                f"{LONGEST_NAME} characters, too many for a folder; shorten axes or labels"
            )
        mapping, labels, origins = base, {}, {}
        for axis, label, change, places in combination:
            labels[axis] = label
            mapping = merge(mapping, change)
            origins.update(places)
        matching = [matches({"labels": labels}, override["when"]) for override in overrides]
        if any(override["set"] is None for override in itertools.compress(overrides, matching)):
            continue
        for number, override in enumerate(overrides):
            if matching[number]:
                mapping = merge(mapping, override["set"])
                place = f"{where}.overrides[{number}].set"
                origins.update({key: f"{place}.{key}" for key in leaves(override["set"])})
        for alternative in changes:
            mapping = merge(mapping, alternative.keys)
            origins.update(alternative.places)
        if study.config["scale"] == "smoke":
            mapping = _shrink(study, mapping, smoke)
        try:
            yield _resolve(study, experiment, name, labels, mapping, bool(changes))
        except ConcordError as error:
            raise ConcordError(relocate(str(error), f"{file}: {where}", origins)) from None
    # After the runs: what is wrong with a label itself is told first.
    for number, override in enumerate(overrides):
        place = f"{file}: {where}.overrides[{number}].when"
        for axis, value in override["when"].items():
            if axis not in labels_of:
                raise ConcordError(
                    f"{place}: {short(axis)} is not an axis; {nearest(axis, labels_of)}"
                )
            for label in label_texts(value):
                if label not in labels_of[axis]:
                    raise ConcordError(
                        f"{place}.{axis}: no run has {short(label)}; "
                        f"{nearest(label, labels_of[axis])}"
                    )


def _check_keys(study: Stated, changes: Mapping[str, Any], where: str) -> None:
    """Refuse changes of keys, made for another scale, that no run has."""
    known = {*Keys.__struct_fields__, "sweep"}
    for key in changes:
        if key.partition(".")[0] not in known:
            raise ConcordError(
                f"{study.at(where)}: there is no key {short(key)}; {nearest(key, known)}"
            )


def _shrink(study: Stated, mapping: dict[str, Any], smoke: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's mapping within the smoke limits, with its smoke section merged in."""
    limits = study.config["smoke"]
    most = mapping.get("iterations")
    record = mapping.get("record")
    late = record.get("burn_in") if isinstance(record, dict) else None
    shrunk: dict[str, Any] = {
        key: min(mapping[key], limits[key])
        for key in ("chains", "iterations")
        if isinstance(mapping.get(key), int)
    }
    if isinstance(late, int) and isinstance(most, int):
        burn_in = late * min(most, limits["iterations"]) // max(most, 1)
        shrunk["record"] = {"burn_in": burn_in}
    return merge(merge(mapping, shrunk), smoke)


def _resolve(
    study: Stated,
    experiment: str,
    name: str,
    labels: dict[str, str],
    mapping: dict[str, Any],
    changed: bool = False,
) -> Run:
    """Return the run that a cell's mapping states, with problem and assumptions resolved."""
    where = study.at(f"experiments.{experiment}")
    keys, mapping = build(Keys, mapping, where), dict(mapping)
    problem = keys.problem
    if isinstance(problem, str):
        problems = study.problems
        if problem not in problems:
            raise ConcordError(
                f"{where}.problem: there is no problem {short(problem)}; "
                f"{nearest(problem, problems)}"
            )
        mapping["problem"] = {"name": problem, **problems[problem]}
    else:
        base = problem.get("name")
        if base is not None and not isinstance(base, str):
            raise ConcordError(f"{where}.problem.name: {short(base)} is not a text")
        named = None if base is None else study.problems.get(base)
        if named is None and "kind" not in problem and base is not None:
            raise ConcordError(
                f"{where}.problem: there is no problem {short(base)}; "
                f"{nearest(base, study.problems)}"
            )
        if named is not None:
            mapping["problem"] = merge({"name": base, **named}, problem)
    mapping["problem"] = {"name": experiment, **mapping["problem"]}
    if kinds.exists("problems", kind := mapping["problem"].get("kind")):
        for key in declared(kinds.find("problems", kind, f"{where}.problem"), "FILES"):
            if isinstance(file := mapping["problem"].get(key), str):
                mapping["problem"][key] = str(study.path / file)
    if isinstance(mapping["topology"], str):
        mapping["topology"] = {"kind": mapping["topology"]}
    mapping["sampler"] = resolved_sampler(mapping, where)
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
        metrics.check(run.metrics, f"{where}.metrics", run.record, run.network)
    rests = tuple(
        name
        for name, entry in study.assumptions.items()
        if matches(run.document, entry.rests or {})
    )
    resting = with_changes(run, assumptions=rests)
    # What takes long of a run is what has just been done.
    vars(resting).update(vars(run) | vars(resting))
    vars(resting)["document"] = {**run.document, "assumptions": list(rests)}
    return resting
