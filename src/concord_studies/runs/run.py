"""One run: a cell of an experiment's sweep with every parameter stated, typed and immutable.

A study makes it once from a cell, ``runs.yaml`` holds it as a document, and jobs read it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from concord import kinds, streams
from concord.arguments import ChosenSampler
from concord.chains import Labels
from concord.contracts import ProblemDeclaration, ProblemKind, declaration_of_problem
from concord.errors import ConcordError
from concord.networks.conditions import Conditions
from concord.networks.network import Network
from concord.networks.topology import ChosenTopology
from concord.options import Chosen, build, plain
from concord.problem import Problem
from concord.record import Record, check_record
from concord.sampling.initial import Law
from concord.sampling.partition import Partition, PartitionChoice
from concord.sampling.schedules import Schedule
from concord_studies.datasets import registry
from concord_studies.datasets.folder import DataFolder
from concord_studies.datasets.tables import Recorded
from concord_studies.digests import digest
from concord_studies.provenance import sha256
from concord_studies.runs.keys import Arena, Keys


class ChosenProblem(Chosen):
    """A kind of problem with its options, as a study or a caller states it."""

    room = "problems"


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
    partition: PartitionChoice
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
    def from_document(cls, stated: Mapping[str, Any], where: str, keys: Keys | None = None) -> Run:
        """Return the run that a document states: ``Keys``, and what identifies the run.

        ``keys`` are its keys where they have been read before. A ConcordError that names ``where``
        and the key.
        """
        keys = keys or build(Keys, {key: stated[key] for key in _KEYS if key in stated}, where)
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
            **{name: getattr(keys, name) for name in _KEYS if name not in ("problem", "sampler")},
            assumptions=tuple(stated["assumptions"]),
            where=where,
        )

    @cached_property
    def document(self) -> dict[str, Any]:
        """Return all that states the run, with every option written out: its identity."""
        stated = {name: plain(getattr(self, name)) for name in _KEYS}
        stated["problem"] = {"name": self.problem_name, **stated["problem"]}
        return {
            "paper": self.paper,
            "experiment": self.experiment,
            "run": self.name,
            "labels": dict(self.labels),
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
        return Network(graph, self.network, f"{self.where}.network", self.sampler.order)

    def check(self) -> None:
        """Refuse a run whose parts do not fit together, without drawing or loading data.

        A ConcordError that names ``where`` and the key below it.
        """
        network = self.network_of_agents
        _call_with_place(
            f"{self.where}.agents", self.problem.module.check, self.problem.params, self.agents
        )
        for name in (*self.data_sets, *self.optional_data_sets):
            _call_with_place(self.where, registry.files_of, name)
        if self.arena is None:  # in the arena, a sampler that refuses the task is a result
            _call_with_place(f"{self.where}.topology", self.sampler.params.check, None, network)
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
        label = name or self.problem_name

        def stream(what: str) -> np.random.Generator:
            """Return the generator of random numbers with this label for the data set."""
            return streams.generator(self.seed, what, self.paper, label)

        kind: ProblemKind = self.problem.module
        split = Partition(self.partition, f"{self.where}.partition")
        return kind.build(self.problem.params, self.agents, split, stream, DataFolder(resources))

    @property
    def _declaration(self) -> ProblemDeclaration:
        return declaration_of_problem(self.problem.module)

    @property
    def data_sets(self) -> tuple[str, ...]:
        """Return the names of the data sets in config/datasets.yaml that the run needs."""
        names = self._declaration.needs(self.problem.params)
        return names if self.recorded is None else (*names, self.recorded.table)

    @property
    def optional_data_sets(self) -> tuple[str, ...]:
        """Return the names of the data sets that the problem takes where they are at hand."""
        return self._declaration.takes(self.problem.params)

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
        named = (getattr(self.problem.params, key) for key in self._declaration.files)
        return tuple(Path(name) for name in named if name is not None)

    @property
    def unavailable(self) -> str | None:
        """Return the remedy where the problem lacks a library. None where it can be computed."""
        return self._declaration.unavailable()

    @property
    def modules(self) -> tuple[Path, ...]:
        """Return the files of the run's kinds, which are chosen by name and not imported."""
        components = [
            ("samplers", self.sampler.kind),
            ("problems", self.problem.kind),
            ("topologies", self.topology.kind),
            ("partitions", self.partition.kind),
            ("initial", self.initial.kind),
        ]
        if self.network is not None and self.network.compression is not None:
            components.append(("compressions", self.network.compression.kind))
        options = self.sampler.params
        values = [getattr(options, name) for name in options.__struct_fields__]
        schedules = {value.kind for value in values if isinstance(value, Schedule)}
        components += [("schedules", kind) for kind in sorted(schedules)]
        return tuple(kinds.location(room, kind) for room, kind in components)


_KEYS = Keys.__struct_fields__


def _call_with_place(where: str, function: Any, *arguments: Any) -> None:
    """Call a function for its checks; put ``where`` in front of the sentence of a ConcordError."""
    try:
        function(*arguments)
    except ConcordError as error:
        raise ConcordError(f"{where}: {error}") from None


def recorded_iterations(document: Mapping[str, Any]) -> Sequence[int]:
    """Return the iterations that a run's document asks to record, increasing."""
    every, at = document["record"]["every"], document["record"]["at"]
    last = document["iterations"]
    return range(0, last + 1, every) if at is None else sorted({k for k in at if k <= last})


def amplifies(document: Mapping[str, Any]) -> bool:
    """Return whether rounding errors grow in a run, so that processors give other chains.

    The problem amplifies rounding errors (training LeNet), or the sampler with its options.
    """
    kind = document.get("problem", {}).get("kind")
    if kind and declaration_of_problem(kinds.find("problems", kind, "problem")).amplifies:
        return True
    if not document.get("sampler"):
        return False
    chosen = ChosenSampler.parse(dict(document["sampler"]), "sampler")
    is_amplified: bool = chosen.params.amplifies(document["agents"], document["iterations"])
    return is_amplified
