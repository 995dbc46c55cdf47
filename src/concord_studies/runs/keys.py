"""The keys of a run, typed, as an experiment and a runs.yaml state them."""

import re
from typing import Annotated, Any, Literal, Self

from msgspec import Meta, field

from concord.arguments import ChosenSampler
from concord.errors import ConcordError, short
from concord.networks.conditions import Conditions
from concord.networks.topology import ChosenTopology
from concord.options import Chosen, Count, Label, Options, Positive
from concord.record import Record
from concord.sampling.initial import Law
from concord.sampling.partition import PartitionChoice
from concord_studies.contracts import PRICES
from concord_studies.datasets.tables import Recorded

STUDY = re.compile(r"[A-Za-z0-9]{1,60}")  # a study's key: names its folder, a word to type


Agents = Annotated[int, Meta(ge=1, le=10**6)]


class ChosenProblem(Chosen):
    """A kind of problem with its options, and the name by which runs share its data and starts."""

    room = "problems"
    __slots__ = ("name",)
    name: str

    @classmethod
    def parse(cls, value: Any, where: str) -> Self:
        """Return the problem of a mapping with a kind, options and perhaps a name."""
        if isinstance(value, cls):
            return value
        name = value.get("name", "") if isinstance(value, dict) else ""
        if not isinstance(name, str):
            raise ConcordError(f"{where}.name: {short(name)} is not a text")
        options = {key: of for key, of in value.items() if key != "name"} if name else value
        choice = super().parse(options, where)
        choice.name = name
        return choice

    def plain(self) -> dict[str, Any]:
        """Return the mapping that ``parse`` reads, every option written out."""
        return {"name": self.name, **super().plain()}


class Arena(Options):
    """The search and scoring of a run as a cell of the arena.

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
    aim: Annotated[
        Positive | None,
        "the choice is what reaches this score of the worst agent at the least price; none: the "
        "least score at the budget",
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
    """The keys of a run, each with the options of its kind.

    The largest numbers are far beyond what can be run, but not beyond what checks can take.
    """

    problem: Annotated[ChosenProblem, "name of an entry of problems, or a problem's mapping"]
    agents: Annotated[Agents, "number N of agents"]
    topology: Annotated[ChosenTopology, "kind of graph, or a mapping with its kind and options"]
    sampler: Annotated[ChosenSampler, "the sampler's kind and options"]
    chains: Annotated[
        int, Meta(ge=0, le=10**6), "independent trials of the whole network; 0: exact numbers alone"
    ]
    iterations: Annotated[int, Meta(ge=1, le=10**9), "steps of every chain"]
    reading: Annotated[Label, "which text the run follows"] = "published"
    partition: Annotated[PartitionChoice, "how points go to agents"] = field(
        default_factory=lambda: PartitionChoice("equal")
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
    recorded: Annotated[
        Recorded | None, "what the authors recorded of it, for the metric recorded"
    ] = None
