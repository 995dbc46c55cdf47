"""A resolved run: its keys, what run.yaml holds, and the parts it is assembled from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from concord.contracts import Extra, NeedsData, Problem, ProblemKind, Sampler, TakesData
from concord.errors import ConcordError, short
from concord.integrity import AGAIN
from concord.io import load_yaml
from concord.networks import topology
from concord.options import build, param, plain
from concord.plugins import plugin
from concord.provenance import digest
from concord.sampling import initial, partition, streams
from concord.sampling.recorder import Record


def kind_and_options(mapping: Any, where: str) -> tuple[Any, dict[str, Any]]:
    """Split ``{kind: k, ...}`` into the kind and the other options."""
    if not isinstance(mapping, Mapping):
        raise ConcordError(f"{where}: {short(mapping)} is not a mapping with a kind and options")
    if "kind" not in mapping:
        raise ConcordError(f"{where}: the key 'kind' is missing; add it")
    return mapping["kind"], {k: v for k, v in mapping.items() if k != "kind"}


MOST_NUMBERS = 10**11  # draws of a run; a terabyte at least


@dataclass(frozen=True)
class Options:
    """The options of a run's parts, typed, with their defaults; and the modules of their kinds."""

    problem: Any
    sampler: Any
    topology: Any
    partition: partition.Partition
    initial: initial.Law
    record: Record
    problem_module: ProblemKind
    sampler_module: Sampler


@dataclass(frozen=True)
class Parts:
    """The checked parts of a run: modules, their parameters, the topology."""

    problem: ProblemKind
    problem_params: Any
    sampler: Sampler
    sampler_params: Any
    topology: topology.Topology
    partition: partition.Partition
    initial: initial.Law
    record: Record


def parse(run: Mapping[str, Any], where: str) -> Options:
    """Return the typed options of a run's parts.

    Raises
    ------
    ConcordError
        Naming ``where`` and the key below it.
    """
    kind, options = kind_and_options(run["problem"], f"{where}.problem")
    options.pop("name", None)
    problem = plugin("problems", kind, f"{where}.problem")
    problem_params = build(problem.Params, options, f"{where}.problem")
    kind, options = kind_and_options(run["sampler"], f"{where}.sampler")
    sampler = plugin("samplers", kind, f"{where}.sampler")
    sampler_params = build(sampler.Params, options, f"{where}.sampler")
    kind, options = kind_and_options(run["topology"], f"{where}.topology")
    return Options(
        problem_params,
        sampler_params,
        topology.parse(kind, options, f"{where}.topology"),
        partition.Partition.parse(run["partition"], f"{where}.partition"),
        initial.parse(run["initial"], f"{where}.initial"),
        build(Record, run["record"], f"{where}.record"),
        problem,
        sampler,
    )


def complete(run: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a run with every option of its parts written out: the identity of the run.

    Raises
    ------
    ConcordError
        Naming ``where`` and the key below it.
    """
    options = parse(run, where)
    stated = {
        "problem": {key: run["problem"][key] for key in ("name", "kind")} | plain(options.problem),
        "partition": plain(options.partition.options),
        **{key: plain(getattr(options, key)) for key in ("topology", "sampler", "initial")},
    }
    for key, mapping in stated.items():
        stated[key] = {"kind": run[key]["kind"], **mapping}
    return {**run, **stated, "record": plain(options.record)}


def unstated(run: Mapping[str, Any], options: Options) -> list[str]:
    """Return the keys of options that a run leaves to their defaults."""
    parts = {**vars(options), "partition": options.partition.options}
    return [
        f"{part}.{field.name}"
        for part in ("topology", "problem", "partition", "sampler", "initial", "record")
        for field in fields(parts[part])
        if field.name not in run[part]
    ]


def assemble(run: Mapping[str, Any], where: str, options: Options | None = None) -> Parts:
    """Check all that can be checked of a run without drawing or loading its data.

    Raises
    ------
    ConcordError
        Naming ``where`` and the key below it.
    """
    options = options or parse(run, where)
    kind, given = kind_and_options(run["topology"], f"{where}.topology")
    graph = topology.build(kind, run["agents"], where=f"{where}.topology", **given)
    _at(f"{where}.agents", options.problem_module.check, options.problem, run["agents"])
    _at(f"{where}.topology", options.sampler_module.check, None, graph, options.sampler)
    _check_record(options.record, run, f"{where}.record")
    return Parts(
        options.problem_module,
        options.problem,
        options.sampler_module,
        options.sampler,
        graph,
        options.partition,
        options.initial,
        options.record,
    )


def _check_record(record: Record, run: Mapping[str, Any], where: str) -> None:
    """Refuse to record nothing, agents that do not exist, or too much."""
    agents = range(run["agents"]) if record.agents is None else record.agents
    for number, agent in enumerate(record.agents or ()):
        if agent >= run["agents"]:
            raise ConcordError(
                f"{where}.agents[{number}]: there is no agent {agent}; "
                f"name agents 0 to {run['agents'] - 1}"
            )
    if not agents:
        raise ConcordError(f"{where}.agents: it names no agent; leave it out for all of them")
    draws = record.count(run["iterations"])
    if not draws:
        raise ConcordError(
            f"{where}.at: none of these is one of the {run['iterations']} iterations; add one"
        )
    if run["chains"] * len(agents) * draws > MOST_NUMBERS:
        raise ConcordError(
            f"{where}: {draws} iterations of {len(agents)} agents and {run['chains']} chains are "
            f"more than {MOST_NUMBERS} draws; record less often, or fewer agents"
        )


def _at(where: str, function: Any, *arguments: Any, **options: Any) -> Any:
    """Call, and put ``where`` before the message of a ConcordError that does not name it."""
    try:
        return function(*arguments, **options)
    except ConcordError as error:
        raise ConcordError(f"{where}: {error}") from None


def build_problem(run: Mapping[str, Any], parts: Parts, resources: Path) -> Problem:
    """Draw or load the run's data: the same for every run of a paper that names this problem.

    ``resources`` holds the data files, ``<data set>/<file>``.
    """

    def stream(what: str) -> np.random.Generator:
        return streams.generator(run["seed"], what, run["paper"], run["problem"]["name"])

    return parts.problem.build(
        parts.problem_params, run["agents"], parts.partition, stream, resources
    )


def data_sets(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the data sets in config/datasets.yaml that the run's problem needs."""
    problem = _problem(run)
    return problem.needs(_options(run, problem)) if isinstance(problem, NeedsData) else ()


def optional_data_sets(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the data sets that the run's problem takes where they are at hand."""
    problem = _problem(run)
    return problem.takes(_options(run, problem)) if isinstance(problem, TakesData) else ()


def data_digest(run: Mapping[str, Any], resources: Path) -> str:
    """Return a digest of the data files that a run reads, by their registered SHA-256.

    Readers refuse a file that has another. An optional data set counts if it is at hand.
    """
    needed, optional = data_sets(run), optional_data_sets(run)
    if not needed and not optional:
        return digest({})
    from concord.datasets.registry import load_registry

    registry = load_registry()
    files = {name: registry[name].files for name in (*needed, *optional)}
    for name in optional:
        if not all((resources / name / file).is_file() for file in files[name]):
            del files[name]
    return digest({f"{name}/{f}": file.sha256 for name in files for f, file in files[name].items()})


def _problem(run: Mapping[str, Any]) -> ProblemKind:
    return plugin("problems", run["problem"]["kind"], "problem")


def _options(run: Mapping[str, Any], problem: ProblemKind) -> Any:
    options = {key: v for key, v in run["problem"].items() if key not in ("kind", "name")}
    return build(problem.Params, options, "problem")


def unavailable(run: Mapping[str, Any]) -> str | None:
    """Say what to install where the run's problem cannot be computed; None where it can."""
    problem = _problem(run)
    return problem.unavailable() if isinstance(problem, Extra) else None


def stream_label(run: Mapping[str, Any]) -> str:
    """Return what a run is called in the labels of its random streams.

    It is not its name: that may take another form, but its numbers must stay what they are.
    """
    return ",".join(f"{axis}={label}" for axis, label in run["labels"].items()) or "run"


def modules(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the modules of the kinds that a run names, which no import names."""
    return tuple(f"concord.{part}s.{run[part]['kind']}" for part in ("sampler", "problem"))


@dataclass(frozen=True)
class Keys:
    """The keys of a run; those of problem, sampler, topology and so on belong to their kinds.

    The largest numbers are far beyond what can be run, but not beyond what checks can take.
    """

    problem: dict[str, Any] | str = param("name of an entry of problems, or a problem's mapping")
    agents: int = param("number N of agents", minimum=1, maximum=100_000)
    topology: dict[str, Any] | str = param("kind of graph, or a mapping with its kind and options")
    sampler: dict[str, Any] = param("the sampler's kind and options")
    chains: int = param("independent trials of the whole network", minimum=1, maximum=10**6)
    iterations: int = param("steps of every chain", minimum=1, maximum=10**9)
    reading: str = param("which text the run follows", default="published")
    partition: dict[str, Any] = param("how points go to agents", default=None)
    initial: dict[str, Any] = param("law of x^(0)", default=None)
    record: dict[str, Any] = param("what to record, and when", default=None)
    metrics: tuple[str, ...] = param("metrics computed from the trace", default=())


@dataclass(frozen=True)
class Identity:
    """What run.yaml says besides: whose run it is."""

    paper: str = param("key of the paper")
    experiment: str = param("id of the experiment")
    run: str = param("name of the run")
    labels: dict[str, Any] = param("axis: label")
    scale: str = param("paper or smoke", choices=("paper", "smoke"))
    seed: int = param("master seed", minimum=0)
    assumptions: tuple[str, ...] = param("ids of the assumptions the run rests on")


REQUIRED = tuple(field.name for cls in (Identity, Keys) for field in fields(cls))


def check_resolved(run: Mapping[str, Any], where: str) -> None:
    """Check the types of what a run.yaml holds; the parts' options are checked by their kinds.

    Raises
    ------
    ConcordError
        Naming ``where`` and the key.
    """
    for cls in (Identity, Keys):
        build(cls, {field.name: run[field.name] for field in fields(cls)}, where)
    name = run["problem"].get("name") if isinstance(run["problem"], Mapping) else None
    if not isinstance(name, str):
        raise ConcordError(f"{where}.problem.name: {short(name)} is not a text")


def load_run(path: Path) -> tuple[dict[str, Any], Parts]:
    """Read a run.yaml, as ``read_run`` does, and assemble its parts.

    Raises
    ------
    ConcordError
        If an option is not stated: a default is part of a run's identity.
    """
    run = read_run(path)
    try:
        check_resolved(run, str(path))
        options = parse(run, str(path))
        absent = unstated(run, options)
        if absent:
            raise ConcordError(f"{path}: {absent[0]} is not stated; {AGAIN}")
        return run, assemble(run, str(path), options)
    except ConcordError as error:
        raise ConcordError(str(error).replace(f"{path}.", f"{path}: ", 1)) from None


def read_run(path: Path) -> dict[str, Any]:
    """Read a run.yaml.

    Raises
    ------
    ConcordError
        If it is not a whole run: it is generated, so the remedy is to delete it.
    """
    try:
        run = load_yaml(path)
    except ConcordError as error:
        if not path.exists():
            raise
        raise ConcordError(f"{str(error).partition(';')[0]}; {AGAIN}") from None
    missing = [key for key in REQUIRED if not isinstance(run, dict) or key not in run]
    if missing:
        raise ConcordError(f"{path}: the key {missing[0]!r} is missing; {AGAIN}")
    return run
