"""One run: a cell of an experiment's sweep with every parameter stated, typed and immutable.

A study makes it once from a cell, ``runs.yaml`` holds it as a document, and jobs read it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import field
from msgspec.structs import astuple, replace

from concord import kinds, streams
from concord.arguments import ChosenSampler
from concord.chains import Labels
from concord.contracts import ProblemKind
from concord.errors import ConcordError, prefix_errors
from concord.networks.network import Network
from concord.options import Chosen, build, plain
from concord.problem import Problem
from concord.record import check_record
from concord.sampling.partition import Partition
from concord.sampling.schedules import Schedule
from concord_studies.contracts import ProblemDeclaration, declaration_of_problem
from concord_studies.datasets import registry
from concord_studies.datasets.folder import DataFolder
from concord_studies.digests import digest
from concord_studies.provenance import sha256
from concord_studies.runs.keys import Keys

# What a document states of a run before its keys.
IDENTITY = "paper", "experiment", "run", "labels", "scale", "seed"
DATA = "paper", "seed", "problem", "agents", "partition"  # on which a run's problem depends


class Run(Keys, kw_only=True, dict=True, eq=False):
    """A run of an experiment, with every parameter stated: its keys, and what identifies it.

    where: file and key that messages name.
    """

    paper: str
    experiment: str
    name: str = field(name="run")
    labels: dict[str, str]
    scale: str
    seed: int
    assumptions: tuple[str, ...]
    where: str

    @classmethod
    def from_document(cls, stated: Mapping[str, Any], where: str) -> Run:
        """Return the run that a document states; a ConcordError names ``where`` and the key."""
        run: Run = build(cls, {**stated, "where": where}, where)
        return run

    def vary(self, **changes: Any) -> Run:
        """Return a copy with other values, by name, which are not checked."""
        copy = replace(self, **changes)
        vars(copy).clear()  # what was computed of the run itself
        return copy

    @cached_property
    def document(self) -> dict[str, Any]:
        """Return all that states the run, with every option written out: its identity."""
        stated = plain(self)
        own = {name: stated[name] for name in IDENTITY}
        keys = {name: stated[name] for name in Keys.__struct_fields__ if stated[name] is not None}
        return {**own, **keys, "assumptions": stated["assumptions"]}

    @cached_property
    def digest(self) -> str:
        """Return a digest of the run's document."""
        return digest(self.document)

    @cached_property
    def problem_digest(self) -> str:
        """Return a digest of all that ``build_problem`` makes the run's own problem from."""
        return digest([self.document.get(name) for name in DATA])

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
        return Labels(self.paper, self.problem.name, self.experiment, self.stream_name)

    @cached_property
    def network_of_agents(self) -> Network:
        """Return the network: the graph with its conditions, such as loss and delay."""
        graph = self.topology.graph(self.agents, f"{self.where}.topology")
        return Network(graph, self.network, f"{self.where}.network", self.sampler.order)

    @property
    def recorded_iterations(self) -> Sequence[int]:
        """Return the iterations that the run records, increasing; there may be too many to list."""
        if self.record.at is None:
            return range(0, self.iterations + 1, self.record.every)
        return sorted({k for k in self.record.at if k <= self.iterations})

    def check(self) -> None:
        """Refuse a run whose parts do not fit together, without drawing or loading data.

        A ConcordError that names ``where`` and the key below it.
        """
        network = self.network_of_agents
        options = self.problem.params
        try:
            self.problem.module.check(options, self.agents)
        except ConcordError as error:  # of an option, which it begins with, or of the agents
            is_option = str(error).partition(":")[0] in options.__struct_fields__
            place = "problem." if is_option else "agents: "
            raise ConcordError(f"{self.where}.{place}{error}") from None
        with prefix_errors(self.where):
            for name in (*self.data_sets, *self.optional_data_sets):
                registry.files_of(name)
        if self.arena is None:  # in the arena, a sampler that refuses the task is a result
            with prefix_errors(f"{self.where}.topology"):
                self.sampler.params.check(None, network)
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
        label = name or self.problem.name

        def stream(what: str) -> np.random.Generator:
            """Return the generator of random numbers with this label for the data set."""
            return streams.generator(self.seed, what, self.paper, label)

        kind: ProblemKind = self.problem.module
        split = Partition(self.partition, f"{self.where}.partition")
        return kind.build(self.problem.params, self.agents, split, stream, DataFolder(resources))

    @property
    def _declaration(self) -> ProblemDeclaration:
        """Return the declaration of the run's kind of problem."""
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
        """Return the files of the run's kinds, which are chosen by name and not imported.

        And the study's Python files that its problem names, which may import others.
        """
        chosen: list[Chosen] = [self.sampler, self.problem, self.topology]
        chosen += [self.partition, self.initial]
        if self.network is not None and self.network.compression is not None:
            chosen.append(self.network.compression)
        steps = {each for each in astuple(self.sampler.params) if isinstance(each, Schedule)}
        parts = [(part.room, part.kind) for part in chosen]
        parts += [("schedules", kind) for kind in sorted({step.kind for step in steps})]
        own = (path for path in self.files if path.suffix == ".py")
        return *(kinds.location(room, kind) for room, kind in parts), *own


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
