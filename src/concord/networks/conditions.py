"""Options of what happens on a network: links come and go, vectors get lost, agents sleep."""

from typing import Annotated, Literal

from msgspec import Meta

from concord.errors import ConcordError
from concord.networks.compressions import Compression
from concord.networks.privacy import Privacy
from concord.options import Count, Index, Kind, NonNegative, Options, Positive, Share, Some


class Static(Kind):
    """All links are always up."""


class Kept(Kind):
    """Every link is up with a probability, anew in every iteration."""

    probability: Annotated[Share, "probability that a link is up"]


class Matchings(Kind):
    """In every iteration a random matching is up: each agent has one link, or none.

    Every link draws a number, and is up if it is the lowest of both its agents.
    """


class Pair(Kind):
    """In every iteration one link is up, and only its two agents are awake.

    An agent, uniform over all, and one of its neighbors, uniform over these.
    """


class OnePeer(Kind):
    """Every agent sends to one of its neighbors in turn, the nearest ahead of it by number first.

    In iteration k agent j sends to its neighbor number k modulo the number of its neighbors, which
    must be the same for all agents.
    """


class InTurn(Kind):
    """Graphs take turns."""

    graphs: Annotated[
        Some[tuple[tuple[Index, Index], ...]],
        "lists of the edges [i, j] that are up, in turn; on directed graphs from i to j",
    ]


Direction = Annotated[
    Literal["one_way", "link"], "each direction of a link loses by itself, or both do together"
]


class Bernoulli(Kind):
    """Every vector is lost with the same probability, independently."""

    rate: Annotated[Share, "probability that a vector is lost"]
    direction: Direction

    @property
    def share(self) -> float:
        """The share of vectors that is lost."""
        return self.rate


class GilbertElliott(Kind):
    """Losses come in bursts: a link is good, and loses nothing, or bad; it starts stationary."""

    rate: Annotated[Share, "probability that a vector is lost while it is bad"]
    to_bad: Annotated[Share, "probability that a good one turns bad in an iteration"]
    to_good: Annotated[Share, "probability that a bad one turns good in an iteration"]
    direction: Direction

    @property
    def bad(self) -> float:
        """The share of iterations in which it is bad: one that never turns is good."""
        return self.to_bad / (self.to_bad + self.to_good) if self.to_bad else 0.0

    @property
    def share(self) -> float:
        """The share of vectors that is lost, in the long run."""
        return self.rate * self.bad


class Fixed(Kind):
    """Every vector takes the same time."""

    iterations: Annotated[Count, "iterations from sender to receiver"]


class Link(Options):
    """How long vectors are on their way; links carry theirs side by side."""

    latency: Annotated[NonNegative, "seconds from sender to receiver, whatever is sent"] = 0.0
    bandwidth: Annotated[Positive | None, "bytes per second of every link; none: unlimited"] = None

    def seconds(self, size: float) -> float:
        """Return how long vectors of so many bytes together are on their way."""
        return self.latency + (size / self.bandwidth if self.bandwidth else 0.0)


class Compute(Options):
    """How long gradients take: a shifted exponential time; some agents need more."""

    seconds: Annotated[Positive, "mean time of a gradient, of agents that are not slow"]
    spread: Annotated[
        Annotated[float, Meta(ge=0, lt=1)],
        "standard deviation of the time as a share of its mean: the part that is exponential; the "
        "rest is always needed",
    ] = 0.0
    slowest: Annotated[
        Annotated[float, Meta(ge=1)], "how many times longer slow agents need for a gradient"
    ] = 1.0
    slow_agents: Annotated[tuple[Index, ...], "agents that are slow"] = (0,)


class Conditions(Options):
    """What happens on a network."""

    schedule: Annotated[
        Static | Kept | Matchings | Pair | OnePeer | InTurn, "which links are up, and when"
    ] = Static()
    loss: Annotated[
        Bernoulli | GilbertElliott | None, "how vectors are lost on links that are up; none: never"
    ] = None
    delay: Annotated[
        Fixed | None,
        "iterations that vectors take; none: they arrive in the iteration in which they are sent",
    ] = None
    on_loss: Annotated[
        Literal["keep_own_weight", "reuse_last", "skip", "sender_keeps"],
        "what an agent takes for a vector that has not arrived, for whatever reason: its own, so "
        "that the weight stays its own; the last that has (at first the neighbor's start); or its "
        "own for all of them: it averages if it hears from every neighbor, or not at all; or "
        "nothing, and the sender, which gets to know, has the weight for its own vector",
    ] = "keep_own_weight"
    compression: Annotated[
        Compression | None, "what agents send in place of a vector; none: the vector"
    ] = None
    error_feedback: Annotated[
        bool, "an agent adds to what it compresses what compression has left out so far"
    ] = False
    awake: Annotated[
        Annotated[float, Meta(gt=0, le=1)],
        "probability that an agent is awake in an iteration; one that sleeps neither moves, sends "
        "nor hears",
    ] = 1.0
    noise: Annotated[
        NonNegative,
        "standard deviation of normal noise on each coordinate of a vector that is received",
    ] = 0.0
    privacy: Annotated[
        Privacy | None, "agents hide what they send, by the Gaussian mechanism; none: they do not"
    ] = None
    compute: Annotated[
        Compute | None, "how long gradients take on the simulated clock; none: no time"
    ] = None
    link: Annotated[Link | None, "how long vectors take on the simulated clock; none: no time"] = (
        None
    )
    barrier: Annotated[
        bool,
        "agents wait for the vectors of their neighbors in each iteration; or each goes on at its "
        "own pace, with the last that it has heard, and an iteration is a tick of the clock",
    ] = True

    @property
    def perfect(self) -> bool:
        """Whether all vectors always arrive, at once and as they are, however long that takes."""
        return self == Conditions(
            on_loss=self.on_loss,
            error_feedback=self.error_feedback,
            compute=self.compute,
            link=self.link,
        )

    @property
    def eventful(self) -> bool:
        """Whether anything happens: vectors may not arrive as they are, or take time."""
        return self.clocked or not self.perfect

    @property
    def clocked(self) -> bool:
        """Whether anything takes time."""
        return self.compute is not None or self.link is not None

    @property
    def late(self) -> str | None:
        """The option by which agents may hear what others had earlier; None: none does."""
        return "delay" if self.delay is not None else None if self.barrier else "barrier"

    def size(self, dim: int, itemsize: int) -> int:
        """Return the bytes of what is sent for a vector of dim numbers of itemsize bytes."""
        return self.compression.size(dim, itemsize) if self.compression else dim * itemsize

    def check(self, agents: int, where: str) -> None:
        """Refuse options that do not go together."""
        if self.error_feedback and not self.compression:
            raise ConcordError(
                f"{where}.error_feedback: nothing is left out where nothing is compressed; remove "
                "it, or add compression"
            )
        for number, agent in enumerate(self.compute.slow_agents if self.compute else ()):
            if agent >= agents:
                raise ConcordError(
                    f"{where}.compute.slow_agents[{number}]: there is no agent {agent}; name "
                    f"agents 0 to {agents - 1}"
                )
        if self.clocked and self.delay is not None:
            raise ConcordError(
                f"{where}.delay: the clock says how long vectors take; remove it, or compute and "
                "link"
            )
        if self.barrier:
            return
        if self.compute is None:
            raise ConcordError(
                f"{where}.barrier: false says that agents do not wait, but nothing how long they "
                "take for a step; add compute"
            )
        if self.on_loss != "reuse_last":
            raise ConcordError(
                f"{where}.on_loss: agents that do not wait take the last that they have heard, not "
                f"{self.on_loss}; use reuse_last"
            )
        if self.sleeps:
            key = "awake" if self.awake < 1 else "schedule"
            raise ConcordError(
                f"{where}.{key}: without a barrier the clock says when agents step; remove it"
            )

    @property
    def sleeps(self) -> bool:
        """Whether agents sleep at times."""
        return self.awake < 1 or isinstance(self.schedule, Pair)
