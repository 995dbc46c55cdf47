r"""Gossip ULA: at each tick two neighbors wake, and only they move; optionally event-triggered.

At a tick agent i is uniform over the N agents, and its partner j uniform over the neighbors of i.
For (a, b) = (i, j) and (j, i), from the old values,

.. math::
    w_a \leftarrow w_a - \beta (\hat w_a - \hat w_b) - \frac{N \alpha}{2 p_a} \nabla f_a(w_a)
                   + \sqrt{2 \alpha}\, v_a, \qquad v_a \sim N(0, \tfrac{N^2}{2} I), \qquad
    p_a = \frac1N \Bigl( 1 + \sum_{l \in N_a} \frac{1}{|N_l|} \Bigr)

Agent a is active with probability p_a. These add up to 2, so that in the mean the network average
moves by -alpha/2 times the gradient of f, against noise of variance 2 alpha: as printed, the
posterior to the power 1/2 is sampled. ``drift: whole`` has N alpha / p_a instead, as in (14)-(15).

The hats are the samples themselves, eq. (6), with ``communication: always``; the samples sent last,
eqs. (7)-(9), with ``triggered`` (``concord.networks.trigger``); with ``never`` nothing is fused.
Every chain has its own pairs; arrays have shape (chains, agents, dim).

Source: bhar2023, section 3, with f_a its E_a.
Price: two gradients per tick, and a vector of either agent to the other, or with a trigger to all
its neighbors, who need it later (the paper says "broadcast", and counts one).
Needs: a connected network of two agents or more.
"""

from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import field, structs
from numpy.random import Generator

from concord.errors import ConcordError
from concord.needs import ROUNDING, Needs, refuse_local
from concord.networks.graph import Graph
from concord.networks.network import Network
from concord.networks.trigger import trigger_of
from concord.options import NonNegative
from concord.problem import CountedProblem, Problem
from concord.random import activity, draw_ticks
from concord.sampler import FullGradientSampler
from concord.sampling.schedules import Schedule


class State(NamedTuple):
    """Positions x and, with a trigger, the vectors sent last, both (chains, agents, dim).

    pairs, normals: agents and noise of ticks that were drawn together (``random.draw_ticks``).
    """

    x: np.ndarray
    sent: np.ndarray
    pairs: np.ndarray
    normals: np.ndarray


class GossipULA(FullGradientSampler[State]):
    """Gossip ULA with gradient steps alpha and fusion weights beta."""

    name: ClassVar[str] = "Gossip ULA"
    needs: ClassVar[Needs] = Needs("pairs", peers=True)
    draws_ahead: ClassVar[tuple[str, ...]] = ("pairs", "normals")

    step_size: Annotated[Schedule, "gradient step alpha"]
    fusion: Annotated[Schedule, "fusion weight beta"] = field(default_factory=lambda: Schedule(0.5))
    communication: Annotated[
        Literal["always", "triggered", "never"],
        "active agents communicate always, when triggered, or never (isolated training)",
    ] = "always"
    drift: Annotated[
        Literal["half", "whole"],
        "gradients weigh N alpha/(2 p), on average half of f's gradient, or N alpha/p, all of it",
    ] = "half"
    threshold: Annotated[NonNegative | None, "mu of the trigger, each agent's own"] = None
    decay: Annotated[NonNegative | None, "exponent delta of the trigger"] = None
    known: Annotated[
        Literal["nothing", "start"], "what is known of a triggered agent before it first sends"
    ] = "nothing"

    def check(self, problem: Problem | None, network: Network) -> None:
        """Also refuse half a trigger, and networks on which more happens than losses."""
        super().check(problem, network)
        if self.communication == "triggered":
            refuse_local(problem, "a trigger sends an agent's vector as a whole")
        if np.ptp(activity(network.graph)) > ROUNDING:
            refuse_local(
                problem,
                "gossip ULA scales an agent's gradients, but not its noise, by how often it moves, "
                "which evens out over agents, and for local coordinates on regular graphs alone",
            )
        options = network.conditions
        if trigger_of(self) is None:
            options = structs.replace(options, loss=None)
        if not (options.is_lossless and options.on_loss == "keep_own_weight"):
            raise ConcordError(
                "network: gossip ULA wakes pairs of its own, which keep their own weight; give "
                "loss alone, and none with a trigger, which relies on what all have heard"
            )

    def init(self, x0: np.ndarray, problem: Problem, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim); the first step draws pairs and noise."""
        trigger, no_draws = trigger_of(self), np.empty(0)
        return State(x0, x0[:0] if trigger is None else trigger.start(x0), no_draws, no_draws)

    def step(
        self, state: State, k: int, problem: CountedProblem, network: Network, rng: Generator
    ) -> State:
        """Move a pair of neighbors in each chain, and no other agent, by one tick."""
        state, tick = draw_ticks(state, k, network.graph, rng)
        x, pair, chains = state.x, state.pairs[tick], np.arange(len(state.x))[:, None]
        network.mark_active(pair)
        w, alpha, sent, apart = x[chains, pair], self.step_size(k), state.sent, np.zeros(1)
        gain = (alpha * self.gradient_weights(network.graph))[pair][..., None]
        gradient = problem.gradient_of(pair, w)
        if self.communication == "always":
            apart = network.difference(pair, w)
        elif (trigger := trigger_of(self)) is not None:
            hats, sent = trigger.send(network, pair, w, sent)
            apart = hats - hats[:, ::-1]
        noise = network.agents * np.sqrt(alpha) * state.normals[tick]
        new = x.copy()
        new[chains, pair] = w - self.fusion(k) * apart - gain * gradient + noise
        return state._replace(x=new, sent=sent)

    def amplifies(self, agents: int, iterations: int) -> bool:
        """Return whether rounding errors grow through stale differences, with a trigger."""
        trigger = trigger_of(self)
        return bool(trigger and trigger.amplifies(self.fusion, self.step_size, agents, iterations))

    def gradient_weights(self, graph: Graph) -> np.ndarray:
        """Return N/(2 p_a), or N/p_a for ``drift: whole``, of each agent, (agents,)."""
        return graph.agents / ({"half": 2, "whole": 1}[self.drift] * activity(graph))
