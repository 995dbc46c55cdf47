"""One run: a cell of an experiment's sweep with every parameter stated, typed and immutable.

A study makes it once from a cell, ``runs.yaml`` holds it as a document, and jobs read it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from concord.chains import Labels
from concord.contracts import Extra, NeedsData, ProblemKind, TakesData, declared, offers
from concord.errors import ConcordError, nearest, short
from concord.minibatches import Batches
from concord.networks.conditions import Conditions, network_under
from concord.networks.network import Network, Order, Ordered
from concord.networks.topology import ChosenTopology
from concord.options import build, plain
from concord.problem import Problem
from concord.record import Record
from concord.sampler import Sampler
from concord.sampling import streams
from concord.sampling.initial import Law
from concord.sampling.partition import Partition, Way
from concord.sampling.schedules import Schedule
from concord_studies.datasets import registry
from concord_studies.datasets.tables import Recorded
from concord_studies.plugins import Chosen, location, plugin
from concord_studies.provenance import digest, sha256
from concord_studies.runs.keys import MOST_NUMBERS, Arena, Keys


class ChosenProblem(Chosen):
    """A kind of problem with its options, as a study or a caller states it."""

    package = "problems"


class ChosenSampler(Chosen):
    """A kind of sampler with its options, its mini-batches and its order of updates.

    params: the sampler. batches: of its gradients. order: as of ``Network``.
    """

    package = "samplers"
    __slots__ = ("batches", "order")

    @classmethod
    def of(cls, sampler: Any, options: Mapping[str, Any], arguments: Sequence[str] = ()) -> Self:
        """Return a caller's choice: a kind, a class of samplers, or a sampler, with options.

        arguments: what else may be given, for the sentence about a key that is unknown.
        """
        made = cls.__new__(cls)
        if isinstance(sampler, Sampler):
            made.module, made.kind, made.params = type(sampler), kind_of(type(sampler)), sampler
            for key in options:
                if key in sampler.__struct_fields__:
                    raise ConcordError(
                        f"sampler.{key}: {short(sampler)} has its own; leave it out of the call"
                    )
            made._choose_gradients(dict(options), "sampler", arguments)
        elif isinstance(sampler, str) or (
            isinstance(sampler, type) and issubclass(sampler, Sampler)
        ):
            made._choose(sampler, dict(options), "sampler", arguments)
        else:
            raise ConcordError(
                f"sampler: {short(sampler)} is none; give its name, or a class of concord.Sampler"
            )
        return made

    def _choose(
        self, kind: Any, options: dict[str, Any], where: str, arguments: Sequence[str] = ()
    ) -> None:
        """Set class, kind and typed options of a sampler, and of its mini-batches."""
        if isinstance(kind, type) and issubclass(kind, Sampler):
            self.module, self.kind = kind, kind_of(kind)
        else:
            self.module, self.kind = plugin(self.package, kind, where or "sampler"), kind
        fields = self.module.__struct_fields__
        self.params = None
        beside = {key: value for key, value in options.items() if key not in fields}
        self._choose_gradients(beside, where, arguments)
        own = {key: value for key, value in options.items() if key in fields}
        self.params = build(self.module, own, where)

    def _choose_gradients(
        self, options: dict[str, Any], where: str, arguments: Sequence[str] = ()
    ) -> None:
        """Set mini-batches and update order from options; refuse unknown and unsuited ones."""
        known = self.module.options().__struct_fields__
        for key in options:
            if key not in known:
                raise ConcordError(
                    f"{_key(where, key)}: unknown key; {nearest(key, [*known, *arguments])}"
                )
        self.batches = build(Batches, {k: options[k] for k in _BATCHES if k in options}, where)
        try:
            self.batches.check()
        except ConcordError as error:
            raise ConcordError(_key(where, str(error))) from None
        order = {key: options[key] for key in Ordered.__struct_fields__ if key in options}
        self.order: Order = build(Ordered, order, where).update_order

    def plain(self) -> dict[str, Any]:
        """Return the mapping that ``parse`` reads, every option written out."""
        stated = super().plain()
        if self.params.takes_batches:
            stated |= plain(self.batches)
        return stated | {"update_order": self.order} if self.params.takes_order else stated


def kind_of(sampler: type[Sampler]) -> str:
    """Return the name of a class of samplers: its kind, or the class's own name."""
    package, _, kind = sampler.__module__.rpartition(".")
    return kind if package == "concord.samplers" else sampler.__name__


def _key(where: str, key: str) -> str:
    """Return the dotted place of a key below a place."""
    return f"{where}.{key}" if where else key


_BATCHES = Batches.__struct_fields__


@dataclass(frozen=True, eq=False)
class Run:
    """A run of an experiment, with every parameter stated.

    problem_name: runs of a paper that name the same problem share its data and their starts.
    arena: what makes the run a cell of the arena, which is scored and not sampled.
    where: file and key that messages name.
    """

    paper: str
    experiment: str
    name: str
    labels: Mapping[str, str]
    reading: str
    scale: str
    seed: int
    agents: int
    topology: ChosenTopology
    problem_name: str
    problem: ChosenProblem
    partition: Way
    sampler: ChosenSampler
    initial: Law
    chains: int
    iterations: int
    record: Record
    metrics: tuple[str, ...]
    network: Conditions | None
    arena: Arena | None
    recorded: Recorded | None
    assumptions: tuple[str, ...]
    where: str

    @classmethod
    def of(cls, stated: Mapping[str, Any], where: str, keys: Keys | None = None) -> Run:
        """Return the run that a document states: ``Keys``, and what identifies the run.

        ``keys`` are its keys where they have been read before. A ConcordError that names ``where``
        and the key.
        """
        keys = keys or keys_of(stated, where)
        problem, place = stated["problem"], f"{where}.problem"
        unnamed = {key: value for key, value in problem.items() if key != "name"}
        return cls(
            paper=stated["paper"],
            experiment=stated["experiment"],
            name=stated["run"],
            labels=stated["labels"],
            scale=stated["scale"],
            seed=stated["seed"],
            problem_name=problem["name"],
            problem=ChosenProblem.parse(unnamed, place),
            sampler=ChosenSampler.parse(stated["sampler"], f"{where}.sampler"),
            **{name: getattr(keys, name) for name in _OF_KEYS},
            assumptions=tuple(stated["assumptions"]),
            where=where,
        )

    @cached_property
    def document(self) -> dict[str, Any]:
        """Return all that states the run, with every option written out: its identity."""
        stated = {name: plain(getattr(self, name)) for name in _STATED}
        stated["problem"] = {"name": self.problem_name, **stated["problem"]}
        return {
            "paper": self.paper,
            "experiment": self.experiment,
            "run": self.name,
            "labels": dict(self.labels),
            "reading": self.reading,
            "scale": self.scale,
            "seed": self.seed,
            **{name: value for name, value in stated.items() if value is not None},
            "assumptions": list(self.assumptions),
        }

    @cached_property
    def digest(self) -> str:
        """Return a digest of the run's document."""
        return digest(self.document)

    @property
    def folder(self) -> str:
        """Return the run's folder below the folder of results."""
        return f"{self.paper}/{self.experiment}/{self.name}"

    @property
    def stream_name(self) -> str:
        """Return the name of the run in the labels of its random streams.

        The stream's name stays as it is where the run's own name takes another form.
        """
        return ",".join(f"{axis}={label}" for axis, label in self.labels.items()) or "run"

    @property
    def stream_labels(self) -> Labels:
        """Return the labels of the run's random streams: paper, problem, experiment and run."""
        return Labels(self.paper, self.problem_name, self.experiment, self.stream_name)

    @cached_property
    def network_of_agents(self) -> Network:
        """Return the network: the graph with its conditions, such as loss and delay."""
        graph = self.topology.graph(self.agents, f"{self.where}.topology")
        return network_under(graph, self.network, f"{self.where}.network", self.sampler.order)

    def check(self) -> None:
        """Refuse a run whose parts do not fit together, without drawing or loading data.

        A ConcordError that names ``where`` and the key below it.
        """
        network = self.network_of_agents
        _at(f"{self.where}.agents", self.problem.module.check, self.problem.params, self.agents)
        for name in (*self.data_sets, *self.optional_data_sets):
            _at(self.where, registry.files_of, name)
        if self.arena is None:  # in the arena, a sampler that refuses the task is a result
            _at(f"{self.where}.topology", self.sampler.params.check, None, network)
        elif self.arena.epsilon is not None and (
            self.network is None or self.network.privacy is None or len(self.arena.budget) > 1
        ):
            raise ConcordError(
                f"{self.where}.arena.epsilon: it takes a network with privacy, and the budget of "
                "one price; add privacy, or leave one price"
            )
        place = f"{self.where}.record"
        check_record(self.record, self.agents, self.chains, self.iterations, place)

    def build_problem(self, resources: Path, name: str | None = None) -> Problem:
        """Draw or load a problem's data, the same for every run of a paper that names it.

        ``resources`` holds the data files, ``<data set>/<file>``; ``name`` is that of another data
        set than the run's own.
        """
        own = name or self.problem_name

        def stream(what: str) -> np.random.Generator:
            """Return the generator of random numbers with this label for the data set."""
            return streams.generator(self.seed, what, self.paper, own)

        kind: ProblemKind = self.problem.module
        split = Partition(self.partition, f"{self.where}.partition")
        return kind.build(self.problem.params, self.agents, split, stream, resources)

    @property
    def data_sets(self) -> tuple[str, ...]:
        """Return the names of the data sets in config/datasets.yaml that the run needs."""
        kind = self.problem.module
        own = kind.needs(self.problem.params) if offers(kind, NeedsData) else ()
        return own if self.recorded is None else (*own, self.recorded.table)

    @property
    def optional_data_sets(self) -> tuple[str, ...]:
        """Return the names of the data sets that the problem takes where they are at hand."""
        kind = self.problem.module
        return kind.takes(self.problem.params) if offers(kind, TakesData) else ()

    @property
    def downloads(self) -> tuple[str, ...]:
        """Return the names of the needed data sets that are downloaded, and not made here."""
        return tuple(
            name
            for name in self.data_sets
            if any(file.urls for file in registry.files_of(name).values())
        )

    def data_digest(self, at_hand: Callable[[str], bool] = lambda name: True) -> str:
        """Return a digest of the registered SHA-256 of the data files that the run reads.

        Readers refuse a file that has another. Optional data sets count that are ``at_hand``.
        """
        names = *self.data_sets, *filter(at_hand, self.optional_data_sets)
        digests = {
            f"{name}/{file}": facts.sha256
            for name in names
            for file, facts in registry.files_of(name).items()
        }
        return digest(digests | {str(path): sha256(path) for path in self.files})

    @property
    def files(self) -> tuple[Path, ...]:
        """Return the paths of the study's files that the problem's options name."""
        named = (
            getattr(self.problem.params, key) for key in declared(self.problem.module, "FILES")
        )
        return tuple(Path(name) for name in named if name is not None)

    @property
    def unavailable(self) -> str | None:
        """Return what to install where the problem cannot be computed; None where it can."""
        kind = self.problem.module
        return kind.unavailable() if offers(kind, Extra) else None

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """Return (package, kind) of every component that samples the run."""
        found = [
            ("samplers", self.sampler.kind),
            ("problems", self.problem.kind),
            ("topologies", self.topology.kind),
            ("partitions", self.partition.kind),
            ("initial", self.initial.kind),
        ]
        if self.network is not None and self.network.compression is not None:
            found.append(("compressions", self.network.compression.kind))
        options = self.sampler.params
        values = [getattr(options, name) for name in options.__struct_fields__]
        schedules = {value.kind for value in values if isinstance(value, Schedule)}
        return [*found, *(("schedules", kind) for kind in sorted(schedules))]

    @property
    def modules(self) -> tuple[Path, ...]:
        """Return the files of the run's kinds, which are chosen by name and not imported."""
        return tuple(location(package, kind) for package, kind in self.kinds)


_STATED = (
    *("agents", "topology", "problem", "partition", "sampler", "initial", "chains", "iterations"),
    *("record", "metrics", "network", "arena", "recorded"),
)


_OF_KEYS = ("reading", *(name for name in _STATED if name not in ("problem", "sampler")))


def keys_of(stated: Mapping[str, Any], where: str) -> Keys:
    """Return the typed keys of a run; errors name ``where`` and the key below it."""
    keys: Keys = build(Keys, {k: stated[k] for k in Keys.__struct_fields__ if k in stated}, where)
    return keys


def check_record(record: Record, agents: int, chains: int, iterations: int, where: str) -> None:
    """Refuse a record of nothing, of agents that do not exist, or of too many numbers."""
    recorded = range(agents) if record.agents is None else record.agents
    for number, agent in enumerate(record.agents or ()):
        if agent >= agents:
            raise ConcordError(
                f"{where}.agents[{number}]: there is no agent {agent}; "
                f"name agents 0 to {agents - 1}"
            )
    if not recorded:
        raise ConcordError(f"{where}.agents: it names no agent; leave it out for all of them")
    draws = record.count(iterations)
    if not draws:
        raise ConcordError(
            f"{where}.at: none of these is one of the {iterations} iterations; add one"
        )
    if chains * len(recorded) * draws > MOST_NUMBERS:
        raise ConcordError(
            f"{where}: {draws} iterations of {len(recorded)} agents and {chains} chains are "
            f"more than {MOST_NUMBERS} draws; record less often, or fewer agents"
        )


def _at(where: str, function: Any, *arguments: Any) -> None:
    """Call a function; a ConcordError that does not name ``where`` gets it in front."""
    try:
        function(*arguments)
    except ConcordError as error:
        raise ConcordError(f"{where}: {error}") from None


def recorded(document: Mapping[str, Any]) -> Sequence[int]:
    """Return the iterations that a run's document asks to record, increasing."""
    every, at = document["record"]["every"], document["record"]["at"]
    last = document["iterations"]
    return range(0, last + 1, every) if at is None else sorted({k for k in at if k <= last})


def amplifies(document: Mapping[str, Any]) -> bool:
    """Return whether rounding errors grow in a run, so that processors give other chains.

    The problem amplifies rounding errors (training LeNet), or the sampler with its options.
    """
    kind = document.get("problem", {}).get("kind")
    if kind and declared(plugin("problems", kind, "problem"), "AMPLIFIES"):
        return True
    if not document.get("sampler"):
        return False
    chosen = ChosenSampler.parse(dict(document["sampler"]), "sampler")
    found: bool = chosen.params.amplifies(document["agents"], document["iterations"])
    return found
