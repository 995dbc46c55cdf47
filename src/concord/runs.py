"""A resolved run: its keys, what run.yaml holds, and the parts it is assembled from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta, field, structs

from concord import plugins
from concord.contracts import (
    PRICES,
    Amplifies,
    Extra,
    NeedsData,
    Problem,
    ProblemKind,
    Sampler,
    TakesData,
)
from concord.errors import ConcordError, short
from concord.integrity import AGAIN
from concord.io import load_yaml
from concord.networks.faults import Conditions, Network
from concord.networks.topology import Graph, Topology
from concord.options import Count, Index, Label, Options, Positive, build, plain
from concord.plugins import location, plugin
from concord.provenance import digest
from concord.sampling import streams
from concord.sampling.initial import Law
from concord.sampling.loop import Labels
from concord.sampling.partition import Partition, Way
from concord.sampling.recorder import Record
from concord.sampling.schedules import Schedule


def kind_and_options(mapping: Any, where: str) -> tuple[Any, dict[str, Any]]:
    """Split ``{kind: k, ...}`` into the kind and the other options."""
    if not isinstance(mapping, Mapping):
        raise ConcordError(f"{where}: {short(mapping)} is not a mapping with a kind and options")
    if "kind" not in mapping:
        raise ConcordError(f"{where}: the key 'kind' is missing; add it")
    return mapping["kind"], {k: v for k, v in mapping.items() if k != "kind"}


MOST_NUMBERS = 10**11  # draws of a run; a terabyte at least

STUDY = re.compile(r"[A-Za-z0-9]{1,60}")  # a study's key: names its folder, a word to type


class Arena(Options):
    """How a run is scored as a cell of the arena: a task, and an entry's way to its options.

    Of the sampler's options ``tune`` and those of ``second`` are where the search begins.
    """

    budget: Annotated[
        dict[Literal[tuple(PRICES)], Positive],  # type: ignore[valid-type]
        "what an agent may pay, by price: gradients, bytes, or simulated seconds",
    ]
    tune: Annotated[
        str | None,
        "option whose value is chosen among 36 settings, from the largest stable one downwards by "
        "factors of the square root of two, or two; none: the sampler's options as they stand",
    ] = None
    second: Annotated[
        dict[str, Annotated[tuple[Any, ...], Meta(min_length=3, max_length=3)]],
        "another option that is tuned, and its three values; the first one has twelve then",
    ] = field(default_factory=dict)
    share: Annotated[
        Positive | None, "no tuning: the option of tune is this share of its largest stable value"
    ] = None
    level: Annotated[
        Literal["worst", "average", "pooled"],
        "whose bias is least at the budget: the worst agent's, that of the network average, or of "
        "all agents' draws together",
    ] = "worst"
    aim: Annotated[
        Positive | None,
        "the choice is what reaches this score at the least price; none: the least score at the "
        "budget",
    ] = None
    read: Annotated[
        Literal["agents", "average"] | Count,
        "what is scored: agents' own draws; their draws after so many more rounds of averaging, "
        "which every iteration pays for; or the network average, by a sum along a tree",
    ] = "agents"
    paid: Annotated[
        bool,
        "everybody pays for its tuning: a budget is divided equally among all settings tried and "
        "the run that is judged; nobody does otherwise",
    ] = False
    sets: Annotated[Count, "data sets that the choice is judged on; it is made on another one"] = 1
    sampled: Annotated[
        bool, "what has no exact law is estimated from chains; it is not run otherwise"
    ] = False
    curve: Annotated[bool, "scores along the budget too, not only at its end"] = False
    epsilon: Annotated[
        Positive | None,
        "the noise of the network's privacy is what gives this epsilon for all that an agent sends "
        "within the budget, of which there is one; none: its sigma",
    ] = None


class Keys(Options):
    """The keys of a run; the options of a problem and a sampler belong to their kinds.

    The largest numbers are far beyond what can be run, but not beyond what checks can take.
    """

    problem: Annotated[dict[str, Any] | str, "name of an entry of problems, or a problem's mapping"]
    agents: Annotated[int, Meta(ge=1, le=100_000), "number N of agents"]
    topology: Annotated[Graph, "kind of graph, or a mapping with its kind and options"]
    sampler: Annotated[dict[str, Any], "the sampler's kind and options"]
    chains: Annotated[int, Meta(ge=1, le=10**6), "independent trials of the whole network"]
    iterations: Annotated[int, Meta(ge=1, le=10**9), "steps of every chain"]
    reading: Annotated[Label, "which text the run follows"] = "published"
    partition: Annotated[Way, "how points go to agents"] = field(
        default_factory=lambda: Way("equal")
    )
    initial: Annotated[Law, "law of x^(0)"] = field(default_factory=lambda: Law("normal"))
    record: Annotated[Record, "what to record, and when"] = Record()
    metrics: Annotated[tuple[str, ...], "metrics computed from the trace"] = ()
    network: Annotated[
        Conditions | None, "what happens on the topology; none: all vectors arrive at once"
    ] = None
    arena: Annotated[
        Arena | None, "what makes the run a cell of the arena, which is scored, not sampled"
    ] = None


class Resolved(Keys, kw_only=True):
    """What run.yaml holds: the keys, and whose run it is."""

    problem: Annotated[dict[str, Any], "the problem's name, kind and options"]
    paper: Annotated[str, "key of the paper"]
    experiment: Annotated[str, "id of the experiment"]
    run: Annotated[str, "name of the run"]
    labels: Annotated[dict[str, Any], "axis: label"]
    scale: Annotated[Literal["paper", "smoke", "full"], "paper, smoke or full"]
    seed: Annotated[Index, "master seed"]
    assumptions: Annotated[tuple[str, ...], "ids of the assumptions the run rests on"]


@dataclass(frozen=True)
class Parts:
    """The checked parts of a run: modules, their parameters, the topology."""

    problem: ProblemKind
    problem_params: Any
    sampler: Sampler
    sampler_params: Any
    topology: Topology
    partition: Partition
    initial: Law
    record: Record


def check_resolved(run: Mapping[str, Any], where: str) -> None:
    """Check the types of what a run.yaml holds; problem and sampler are checked by their kinds.

    A ConcordError naming ``where`` and the key.
    """
    stated = {k: run[k] for k in Resolved.__struct_fields__ if k in run}
    resolved: Resolved = build(Resolved, stated, where)
    name = resolved.problem.get("name")
    if not isinstance(name, str):
        raise ConcordError(f"{where}.problem.name: {short(name)} is not a text")


def keys_of(run: Mapping[str, Any], where: str) -> Keys:
    """Return the typed keys of a run; errors name ``where`` and the key below it."""
    return build(Keys, {key: run[key] for key in Keys.__struct_fields__ if key in run}, where)


def _plugged(run: Mapping[str, Any], part: str, where: str) -> tuple[Any, Any]:
    """Return the module of a run's problem or sampler, and its typed options."""
    kind, options = kind_and_options(run[part], f"{where}.{part}")
    if part == "problem":
        options.pop("name", None)
    module = plugin(f"{part}s", kind, f"{where}.{part}")
    return module, build(module.Params, options, f"{where}.{part}")


class Typed(NamedTuple):
    """A run's typed keys, and the modules of its problem and sampler with their typed options."""

    keys: Keys
    problem: tuple[ProblemKind, Any]
    sampler: tuple[Sampler, Any]

    @property
    def parts(self) -> dict[str, Any]:
        """The typed options of its parts, by part."""
        parts = "topology", "partition", "initial", "record", "network", "arena"
        found = {part: getattr(self.keys, part) for part in parts}
        found |= {"problem": self.problem[1], "sampler": self.sampler[1]}
        return {part: options for part, options in found.items() if options is not None}


def parse(run: Mapping[str, Any], where: str, keys: Keys | None = None) -> Typed:
    """Return what a run states, typed; errors name ``where`` and the key."""
    keys = keys or keys_of(run, where)
    return Typed(keys, *(_plugged(run, part, where) for part in ("problem", "sampler")))


def complete(run: Mapping[str, Any], where: str, typed: Typed | None = None) -> dict[str, Any]:
    """Return a run with every option of its parts written out: the identity of the run.

    ``typed`` is what ``parse`` returns. A ConcordError naming ``where`` and the key below it.
    """
    typed = typed or parse(run, where)
    stated = {part: plain(options) for part, options in typed.parts.items()}
    for part, heads in (("problem", ("name", "kind")), ("sampler", ("kind",))):
        stated[part] = {key: run[part][key] for key in heads} | stated[part]
    return {**run, **stated}


def assemble(run: Mapping[str, Any], where: str, typed: Typed | None = None) -> Parts:
    """Check all that can be checked of a run without drawing or loading its data.

    ``typed`` is what ``parse`` returns. A ConcordError naming ``where`` and the key below it.
    """
    keys, (problem, problem_params), (sampler, sampler_params) = typed or parse(run, where)
    graph = keys.topology.topology(run["agents"], f"{where}.topology")
    graph = Network.of(graph, keys.network, f"{where}.network")
    _at(f"{where}.agents", problem.check, problem_params, run["agents"])
    if keys.arena is None:  # where what does not suit is a result
        _at(f"{where}.topology", sampler.check, None, graph, sampler_params)
    elif keys.arena.epsilon is not None and (
        keys.network is None or keys.network.privacy is None or len(keys.arena.budget) > 1
    ):
        raise ConcordError(
            f"{where}.arena.epsilon: it takes a network with privacy, and the budget of one price; "
            "add privacy, or leave one price"
        )
    check_record(keys.record, run, f"{where}.record")
    split = Partition(keys.partition, f"{where}.partition")
    parts = problem, problem_params, sampler, sampler_params, graph, split
    return Parts(*parts, keys.initial, keys.record)


def check_record(record: Record, run: Mapping[str, Any], where: str) -> None:
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


def recorded(run: Mapping[str, Any]) -> Sequence[int]:
    """Return the iterations that a resolved run records, increasing."""
    every, at, last = run["record"]["every"], run["record"]["at"], run["iterations"]
    return range(0, last + 1, every) if at is None else sorted({k for k in at if k <= last})


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


def posterior_width(run: Mapping[str, Any]) -> float | None:
    """Return sqrt(tr V), V the covariance of the posterior of a run that needs no data files.

    None where the posterior is not Gaussian, or the run is not resolved.
    """
    if "partition" not in run or data_sets(run) or optional_data_sets(run):
        return None
    problem = build_problem(run, assemble(run, "run"), Path("resources"))
    target = problem.posterior
    return None if target is None else float(np.sqrt(np.trace(target.cov)))


def data_sets(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the data sets in config/datasets.yaml that the run's problem needs."""
    problem, params = _plugged(run, "problem", "run")
    return problem.needs(params) if isinstance(problem, NeedsData) else ()


def downloads(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return those of a run's data sets that are downloaded, and not made here."""
    from concord.datasets.registry import load_registry

    if not (names := data_sets(run)):
        return ()
    registry = load_registry()
    return tuple(n for n in names if any(file.urls for file in registry[n].files.values()))


def optional_data_sets(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the data sets that the run's problem takes where they are at hand."""
    problem, params = _plugged(run, "problem", "run")
    return problem.takes(params) if isinstance(problem, TakesData) else ()


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


def unavailable(run: Mapping[str, Any]) -> str | None:
    """Say what to install where the run's problem cannot be computed; None where it can."""
    problem = plugin("problems", run["problem"]["kind"], "problem")
    return problem.unavailable() if isinstance(problem, Extra) else None


def amplifies(run: Mapping[str, Any]) -> bool:
    """Whether rounding errors grow in a run until its chains are others on another processor."""
    kind = run.get("problem", {}).get("kind")
    return kind is not None and isinstance(plugin("problems", kind, "problem"), Amplifies)


def stream_label(run: Mapping[str, Any]) -> str:
    """Return what a run is called in the labels of its random streams.

    It is not its name: that may take another form, but its numbers must stay what they are.
    """
    return ",".join(f"{axis}={label}" for axis, label in run["labels"].items()) or "run"


def kinds_of(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return package and kind of all that samples a run."""
    parts = [("samplers", "sampler"), ("problems", "problem"), ("topologies", "topology")]
    parts += [("partitions", "partition"), ("initial", "initial")]
    sampler = _plugged(run, "sampler", "run")[1]
    compression = (run.get("network") or {}).get("compression")
    schedules = {o.kind for o in structs.astuple(sampler) if isinstance(o, Schedule)}
    found = [(package, run[part]["kind"]) for package, part in parts]
    if compression:
        found.append(("compressions", compression["kind"]))
    return [*found, *(("schedules", kind) for kind in sorted(schedules))]


def labels(run: Mapping[str, Any]) -> Labels:
    """Return what the random streams of a run are called by."""
    return Labels(run["paper"], run["problem"]["name"], run["experiment"], stream_label(run))


def modules(run: Mapping[str, Any]) -> tuple[str | Path, ...]:
    """Return the modules of the kinds that a run names, which no import names."""
    return tuple(location(package, kind) for package, kind in kinds_of(run))


def load_run(path: Path) -> tuple[dict[str, Any], Parts]:
    """Read a run.yaml, as ``read_run`` does, and assemble its parts.

    Its plug-ins are those of the study at work, or else of ``config/<papers or studies>/<key>``. A
    ConcordError if an option is not stated: a default is part of a run's identity.
    """
    run = read_run(path)
    if not plugins.own() and STUDY.fullmatch(str(run["paper"])):
        plugins.use(*(Path("config", folder, run["paper"]) for folder in ("papers", "studies")))
    try:
        check_resolved(run, str(path))
        for part, options in complete(run, str(path)).items():
            for key in options if isinstance(options, dict) else ():
                if key not in run[part]:
                    raise ConcordError(f"{path}: {part}.{key} is not stated; {AGAIN}")
        return run, assemble(run, str(path))
    except ConcordError as error:
        raise ConcordError(str(error).replace(f"{path}.", f"{path}: ", 1)) from None


def read_run(path: Path) -> dict[str, Any]:
    """Read a run.yaml.

    A ConcordError if it is not a whole run: it is generated, so the remedy is to delete it.
    """
    try:
        run = load_yaml(path)
    except ConcordError as error:
        if not path.exists():
            raise
        raise ConcordError(f"{str(error).partition(';')[0]}; {AGAIN}") from None
    keys = [key for key in Resolved.__struct_fields__ if key not in ("network", "arena")]
    missing = [key for key in keys if not isinstance(run, dict) or key not in run]
    if missing:
        raise ConcordError(f"{path}: the key {missing[0]!r} is missing; {AGAIN}")
    return run
