"""The arguments of a run, checked and typed: sampler, network, starts and what is recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple, Self

import numpy as np
from msgspec import Meta, field
from msgspec.structs import fields

from concord import kinds
from concord.errors import (
    ConcordError,
    refuse_argument,
    short,
    suggest_argument,
    write_value,
)
from concord.minibatches import Batches
from concord.mistakes import describe_untyped, suggest_value
from concord.networks.conditions import Conditions
from concord.networks.construction import network as network_of
from concord.networks.network import Network, Order
from concord.options import Chosen, Options, build
from concord.problem import Problem, require_problem
from concord.record import Record, check_record
from concord.sampler import Algorithm, OrderedSampler, own_options
from concord.sampling.initial import Law
from concord.synonyms import WARM_UP

# Of ``concord.sample`` beside a sampler's options.
ARGUMENTS = (
    *("sampler", "problem", "network", "iterations", "chains", "seed", "rng", "initial", "record"),
    *("labels", "progress", "memory", "compiled"),
)


# Words that are understood in Python for options of a record.
WORDS_OF_RECORD = {"warm_up": "burn_in", "thin": "every"}


class RunOptions(Options):
    """How long a run is, where it starts and what it records.

    The largest numbers are far beyond what can be run, but not beyond what checks can take.
    """

    chains: Annotated[int, Meta(ge=1, le=10**6), "independent trials of the whole network"]
    iterations: Annotated[int, Meta(ge=1, le=10**9), "steps of every chain"]
    initial: Annotated[Law, "law of x^(0)"] = field(default_factory=lambda: Law("normal"))
    record: Annotated[Record, "what to record, and when"] = Record()


class ChosenSampler(Chosen):
    """A kind of sampler with its options; params: the sampler."""

    room = "samplers"
    __slots__ = ()

    @classmethod
    def choose(cls, sampler: object, options: Mapping[str, object]) -> Self:
        """Return a caller's choice: a kind's name, a class or an object of it, and options."""
        stated = {}
        if isinstance(sampler, Algorithm):
            fixed = own_options(type(sampler))
            values = ((each, getattr(sampler, each.name)) for each in fields(sampler))
            stated = {e.name: value for e, value in values if e in fixed or value != e.default}
            if twice := stated.keys() & options:
                raise ConcordError(
                    f"sampler.{min(twice)}: {short(sampler)} has its own; leave it out of the call"
                )
            sampler = type(sampler)
        choice = cls.__new__(cls)
        choice._choose(sampler, {**stated, **options}, "sampler")
        return choice

    def _choose(self, kind: object, options: dict[str, object], where: str) -> None:
        """Set class, kind and typed options of a sampler.

        kind: a kind's name, or a class of samplers.
        """
        self.module = class_of(kind, where or "sampler")
        self.kind = kind if isinstance(kind, str) else kinds.add_class(self.module)
        self.params = build(self.module, options, where)
        try:
            if isinstance(self.params, Batches):
                self.params.check_scale()
        except ConcordError as error:
            raise ConcordError(f"{where}.{error}" if where else str(error)) from None

    @property
    def order(self) -> Order:
        """Return the order in which agents move (``Network``)."""
        return (
            self.params.update_order if isinstance(self.params, OrderedSampler) else "simultaneous"
        )


def class_of(sampler: object, where: str) -> type[Algorithm]:
    """Return the class of a kind's name, or a class of samplers itself.

    where: the place for messages.
    """
    if isinstance(sampler, type) and issubclass(sampler, Algorithm):
        if sampler.step is Algorithm.step and sampler.__module__ == Algorithm.__module__:
            name = sampler.__name__
            raise ConcordError(f"{where}: {name} has no step; derive a class that has one")
        return sampler
    if not isinstance(sampler, str):
        raise ConcordError(
            f"{where}: {short(sampler)} is no sampler; give its name, such as 'de_sgld', or a "
            "class that begins like class Mine(concord.Sampler)"
        )
    return kinds.find("samplers", sampler, where)


class RunArguments(NamedTuple):
    """The sampler, network and other options of a run, checked."""

    sampler: ChosenSampler
    network: Network
    options: RunOptions


def prepare(
    function: str,
    sampler: object,
    problem: object,
    network: object,
    iterations: object,
    chains: object,
    initial: object,
    record: object,
    options: Mapping[str, object],
) -> RunArguments:
    """Check all arguments as those of a study's files, with the same errors; return them parsed.

    function: the name of that which is given them, for messages.
    """
    if isinstance(sampler, Problem):
        raise ConcordError("sampler: it is a problem; give sampler, problem and network, in order")
    problem = require_problem(problem)
    if network is None:
        if problem.agents > 1:
            raise ConcordError(
                f"network: it is missing, and there are {problem.agents} agents; give one, such "
                "as 'ring'"
            )
        network = "no_edges"
    _check_names(function, sampler, options, network, problem.agents)
    choice = ChosenSampler.choose(sampler, options)
    network = network_for(problem, network)
    if choice.order != network.order:
        network = Network(network.graph, network.conditions, "network", choice.order)
    if network.graph.weights is not None and not hasattr(choice.params, "weights"):
        raise ConcordError(
            f"sampler {choice.kind} does not mix by weights, so those of the network would say "
            "nothing; give the graph or its adjacency matrix"
        )
    if isinstance(initial, (np.ndarray, list, tuple)):
        shape = ", ".join(map(str, (chains, problem.agents, problem.dim)))
        raise ConcordError(
            f"initial: an array of shape {np.shape(initial)} is no law of starts, and positions "
            f"(chains, agents, dim = {shape}) cannot be given; state a distribution, such as "
            f"{Law.example}, where mean and sd may have a number for each coordinate"
        )
    if isinstance(record, Mapping):
        record = dict(_read_words(record))
    length = build(
        RunOptions,
        {
            "chains": chains,
            "iterations": iterations,
            "initial": _default_start(problem) if initial is None else initial,
            "record": {} if record is None else record,
        },
    )
    check_record(length.record, problem.agents, length.chains, length.iterations, "record")
    return RunArguments(choice, network, length)


def _check_names(
    function: str, sampler: object, options: Mapping[str, object], network: object, agents: int
) -> None:
    """Refuse an option that the sampler does not have, with what to write in its place."""
    kind = sampler if isinstance(sampler, Algorithm) else class_of(sampler, "sampler")
    names = kind.__struct_fields__
    for key in (key for key in options if key not in names):
        remedy = suggest_argument(key, options[key], [*names, *ARGUMENTS])
        if key in ARGUMENTS:  # of ``sample``
            remedy = "a law takes none; leave it out"
        elif key in WARM_UP.split():
            late = f"warm_up={write_value(options[key])}"
            remedy = (
                f"all draws are kept; leave the first out afterwards: trace.to_arviz({late}), "
                f"concord.w2(trace, problem, {late})"
            )
        elif key in Conditions.__struct_fields__:
            call = (
                "network" if not isinstance(network, (str, Mapping)) else f"{network!r}, {agents}"
            )
            remedy = (
                f"it belongs to the network: network=concord.network({call}, "
                f"{key}={suggest_value(Conditions, key, options[key])})"
            )
        elif untyped := describe_untyped(kind, key):
            raise ConcordError(untyped)
        refuse_argument(function, key, remedy)


def _read_words(record: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield a record's options by their own words, and refuse one that is there by two."""
    for key, value in record.items():
        if WORDS_OF_RECORD.get(key) in record:
            raise ConcordError(f"record: {key} and {WORDS_OF_RECORD[key]} are one; remove one")
        yield WORDS_OF_RECORD.get(key, key), value


def network_for(problem: Problem, network: object) -> Network:
    """Return the network that a caller gives for a problem, its agents those of the problem."""
    names = getattr(problem, "agent_names", None)
    return network_of(network, problem.agents).name_agents(names)


def write_names(problem: Problem, network: Network) -> dict[str, str]:
    """Return the attributes of results with names of agents and coordinates (``WithLabels``)."""
    coordinates = getattr(problem, "coordinate_names", None)
    names = {"agent_names": network.agent_names, "coordinate_names": coordinates}
    return {what: json.dumps(of) for what, of in names.items() if of is not None}


def _default_start(problem: Problem) -> dict[str, object]:
    """Return the law of x^(0) where none is given: the problem's own if it states one."""
    return {"kind": "problem" if hasattr(problem, "initial") else "normal"}
