"""Options of what may happen on a network: links fail, vectors are lost or late, agents sleep."""

from typing import Annotated, Literal

import numpy as np
from msgspec.structs import replace

from concord.errors import ConcordError
from concord.networks.byzantine import Lie, RobustMixing, check_trim
from concord.networks.clock import ComputeTime, LinkTime
from concord.networks.compressions import Compression
from concord.networks.effects import (
    BurstLoss,
    Delay,
    GraphsInTurn,
    Loss,
    Matchings,
    OnePeer,
    PairSchedule,
    RandomLinks,
    RandomPair,
    Static,
)
from concord.networks.graph import Graph, check_agents
from concord.networks.privacy import Privacy
from concord.options import NonNegative, Options, PositiveShare


class Conditions(Options):
    """Options of what may happen to links, vectors and agents of a network."""

    schedule: Annotated[
        Static | RandomLinks | Matchings | RandomPair | OnePeer | GraphsInTurn,
        "which links are up, and when",
    ] = Static()
    loss: Annotated[
        Loss | BurstLoss | None, "how vectors are lost on links that are up; none: never"
    ] = None
    delay: Annotated[
        Delay | None,
        "iterations that vectors take, of which the last one sent counts where several arrive at "
        "once; none: they arrive in the iteration in which they are sent",
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
        PositiveShare,
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
    byzantine: Annotated[
        Lie | None, "agents that lie, and what they send in place of their vectors; none: nobody"
    ] = None
    robust: Annotated[
        RobustMixing | None,
        "what agents weigh in place of what they hear, so that a liar moves them little; none: all "
        "that they hear",
    ] = None
    compute: Annotated[
        ComputeTime | None, "how long gradients take on the simulated clock; none: no time"
    ] = None
    link: Annotated[
        LinkTime | None, "how long vectors take on the simulated clock; none: no time"
    ] = None
    barrier: Annotated[
        bool,
        "agents wait for the vectors of their neighbors in each iteration; or each goes on at its "
        "own pace, with the last that it has heard, and an iteration is a tick of the clock",
    ] = True

    @property
    def is_lossless(self) -> bool:
        """Return whether every vector arrives in its iteration, unchanged, on whatever clock."""
        return self == Conditions(
            on_loss=self.on_loss,
            error_feedback=self.error_feedback,
            compute=self.compute,
            link=self.link,
        )

    @property
    def delivers_all(self) -> bool:
        """Return whether every vector arrives at once, though liars may have replaced theirs."""
        return replace(self, byzantine=None, robust=None).is_lossless

    @property
    def keeps_time(self) -> bool:
        """Return whether gradients or vectors take time on the simulated clock."""
        return self.compute is not None or self.link is not None

    @property
    def changed_by(self) -> list[str]:
        """Return the options by which vectors are changed on their way."""
        names = ("compression", "noise", "privacy", "byzantine", "robust")
        return [name for name in names if getattr(self, name)]

    @property
    def late_option(self) -> str | None:
        """Return the option by which vectors may be used iterations after they were sent.

        That is ``delay`` or ``barrier``; None where every vector is used in its own iteration.
        """
        return "delay" if self.delay is not None else None if self.barrier else "barrier"

    def size(self, dim: int, itemsize: int) -> int:
        """Return the bytes of the message for a vector of ``dim`` numbers of ``itemsize`` bytes."""
        return self.compression.size(dim, itemsize) if self.compression else dim * itemsize

    @property
    def sleeps(self) -> bool:
        """Return whether agents sleep in some iterations."""
        return self.awake < 1 or isinstance(self.schedule, RandomPair)

    def check(self, graph: Graph, where: str) -> None:
        """Raise a ConcordError if options contradict each other or do not suit the graph.

        where: file and key of the options, for the error's text.
        """
        if self.byzantine:
            check_agents(self.byzantine.agents, graph.agents, f"{where}.byzantine.agents")
        if self.error_feedback and not self.compression:
            raise ConcordError(f"{where}.error_feedback: nothing is compressed; remove it")
        if self.keeps_time and self.delay is not None:
            raise ConcordError(f"{where}.delay: the clock says how long vectors take; remove it")
        if not self.barrier:
            self._check_pace(where)
        if self.is_lossless:
            return
        if not len(graph.senders):
            raise ConcordError(f"{where}: {graph.name} of {graph.agents} has no edges; remove it")
        if self.on_loss == "sender_keeps" and (self.delay is not None or self.robust is not None):
            raise ConcordError(
                f"{where}.on_loss: sender_keeps would count what is on its way twice, and what is "
                "lost as zero; use another one, or remove delay and robust"
            )
        check_trim(self.robust, graph, where)
        self.schedule.check(graph, f"{where}.schedule")

    def _check_pace(self, where: str) -> None:
        """Raise a ConcordError if options contradict agents that go on at their own pace."""
        if self.compute is None:
            raise ConcordError(f"{where}.barrier: false needs the time of a step; add compute")
        if self.on_loss != "reuse_last":
            raise ConcordError(f"{where}.on_loss: agents that do not wait need reuse_last; use it")
        if self.sleeps:
            key = "awake" if self.awake < 1 else "schedule"
            raise ConcordError(f"{where}.{key}: without a barrier the clock wakes; remove it")


def hears_one_at_most(graph: Graph, conditions: Conditions) -> bool:
    """Return whether the schedule of links lets every agent hear at most one neighbor at a time."""
    if isinstance(conditions.schedule, PairSchedule):
        return True
    tables = conditions.schedule.tables(graph)
    return bool(tables) and all(
        (graph.per_receiver(np.add, table.astype(int)) <= 1).all() for table in tables
    )
