"""From a resolved run to its parts: the plug-ins it names, their parameters, its problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from concord import chain, initial, partition, streams, topology
from concord.errors import ConcordError, short
from concord.parameters import build
from concord.plugins import plugin


def kind_and_options(mapping: Any, where: str) -> tuple[Any, dict[str, Any]]:
    """Split ``{kind: k, ...}`` into the kind and the other options."""
    if not isinstance(mapping, Mapping):
        raise ConcordError(f"{where}: {short(mapping)} is not a mapping with a kind and options")
    if "kind" not in mapping:
        raise ConcordError(f"{where}: the key 'kind' is missing; add it")
    return mapping["kind"], {k: v for k, v in mapping.items() if k != "kind"}


MOST_NUMBERS = 10**11  # draws of a run; a terabyte at least


@dataclass(frozen=True)
class Parts:
    """The checked parts of a run: modules, their parameters, the topology."""

    problem: ModuleType
    problem_params: Any
    sampler: ModuleType
    sampler_params: Any
    topology: Any
    partition: Any
    initial: Any
    record: Any


def assemble(run: Mapping[str, Any], where: str) -> Parts:
    """Check all that can be checked of a run without drawing or loading its data.

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
    graph = _graph(kind, run["agents"], f"{where}.topology", options)
    _at(f"{where}.agents", problem.check, problem_params, run["agents"])
    _at(f"{where}.topology", sampler.check, None, graph, sampler_params)
    record = _record(run, f"{where}.record")
    return Parts(
        problem,
        problem_params,
        sampler,
        sampler_params,
        graph,
        partition.Partition.parse(run["partition"], f"{where}.partition"),
        initial.parse(run["initial"], f"{where}.initial"),
        record,
    )


def _record(run: Mapping[str, Any], where: str) -> chain.Record:
    """Return what to record, which must be something, of agents that exist, and not too much."""
    record = build(chain.Record, run["record"], where)
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
    return record


def _graph(kind: Any, agents: int, where: str, options: dict[str, Any]) -> topology.Topology:
    try:
        return topology.build(kind, agents, where=where, **options)
    except TypeError as error:  # an option that build does not take
        raise ConcordError(f"{where}: {error}") from None


def _at(where: str, function: Any, *arguments: Any, **options: Any) -> Any:
    """Call, and put ``where`` before the message of a ConcordError that does not name it."""
    try:
        return function(*arguments, **options)
    except ConcordError as error:
        raise ConcordError(f"{where}: {error}") from None


def build_problem(run: Mapping[str, Any], parts: Parts, resources: Path) -> Any:
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
    return _data_sets(run, "needs")


def optional_data_sets(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the data sets that the run's problem takes where they are at hand."""
    return _data_sets(run, "takes")


def _data_sets(run: Mapping[str, Any], question: str) -> tuple[str, ...]:
    kind, options = kind_and_options(run["problem"], "problem")
    options.pop("name", None)
    problem = plugin("problems", kind, "problem")
    if not hasattr(problem, question):
        return ()
    return getattr(problem, question)(build(problem.Params, options, "problem"))


def unavailable(run: Mapping[str, Any]) -> str | None:
    """Say what to install where the run's problem cannot be computed; None where it can."""
    problem = plugin("problems", run["problem"]["kind"], "problem")
    return problem.unavailable() if hasattr(problem, "unavailable") else None
