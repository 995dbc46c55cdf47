r"""Gossip ULA: at each tick two neighbors wake, and only they move; optionally event-triggered.

At a tick of the universal clock agent i is uniform over the N agents and its partner j uniform
over the neighbors of i. For (a, b) = (i, j) and (j, i), from the old values,

.. math::
    w_a \leftarrow w_a - \beta (\hat w_a - \hat w_b) - \frac{N \alpha}{2 p_a} \nabla f_a(w_a)
                   + \sqrt{2 \alpha}\, v_a, \qquad v_a \sim N(0, \tfrac{N^2}{2} I)

    p_a = \frac1N \Bigl( 1 + \sum_{l \in N_a} \frac{1}{|N_l|} \Bigr), \qquad
    \hat w_a \leftarrow w_a \;\text{ if }\; \lVert w_a - \hat w_a \rVert^2
                   > \frac{\mu}{(\tau_a + 1)^\delta}

The p_a add up to 2, not 1: an agent is active with probability p_a, and the mean of the network
average's step over pairs is -alpha/2 times the gradient of f, against noise of variance 2 alpha.
As printed, gossip ULA therefore samples the posterior to the power 1/2. ``drift: whole`` has
N alpha / p_a instead, whose mean is -alpha times the gradient, as in (14)-(15).

Above, tau_a is how often a was active before. ``communication`` defines the hats; ``always``:
the samples themselves, eq. (6); ``triggered``: the samples last communicated, eqs. (7)-(9);
``never``: there is no fusion, each agent trains alone (isolated training). Before its first
activation an agent has communicated nothing, so its first activation always triggers. Arrays have
shape (chains, agents, dim); every chain has its own pairs. An agent sends one vector when it
communicates: to its partner, or with triggering to all its neighbors, who all need it later (the
paper says "broadcast", and counts one).

Source: bhar2023, section 3, with f_a its E_a.
Price: two gradients per tick, and a vector of either agent: to the other, or to all its neighbors
where a trigger asks for it.
Needs: a connected network of two agents or more.
"""

from functools import lru_cache
from math import sqrt
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import field
from msgspec.structs import replace
from numpy.random import Generator

from concord.errors import ConcordError
from concord.needs import Needs
from concord.networks.graph import Graph
from concord.networks.network import Network
from concord.options import NonNegative
from concord.random import activity, count_steps_ahead, draw_pairs
from concord.sampler import Sampler
from concord.sampling.schedules import Schedule

# Pairs and noise are drawn for as many ticks at once as this many normal numbers serve: a draw of
# few numbers takes longer than the rest of a tick.
NORMALS_PER_DRAW = 1 << 17

LONG_RUN = 5000  # ticks by which differences of rounding may have grown to those of samples


class State(NamedTuple):
    """Positions x, last communicated positions, counts of activations, and drawn ticks.

    x, communicated: (chains, agents, dim); communicated is infinite for agents that never
    communicated.
    activations: number of activations so far, (chains, agents). This and communicated are empty
    without a trigger.
    pairs, normals: agents and noise of ticks drawn together, (ticks, chains, 2) and (ticks, chains,
    2, dim).
    """

    x: np.ndarray
    communicated: np.ndarray
    activations: np.ndarray
    pairs: np.ndarray
    normals: np.ndarray


class GossipULA(Sampler):
    """Gossip ULA with gradient steps alpha and fusion weights beta."""

    name: ClassVar[str] = "Gossip ULA"
    needs: ClassVar[Needs] = Needs("connected", peers=True)
    takes_batches: ClassVar[bool] = False
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
        Literal["nothing", "start"],
        "what neighbors know of a triggered agent at first: nothing, so that it communicates when "
        "first active, or w^(0)",
    ] = "nothing"

    def check(self, problem: Any, network: Network) -> None:
        """Refuse networks without pairs or with more than losses, and half a trigger, too."""
        super().check(problem, network)
        if network.agents < 2 or not network.graph.is_connected:
            raise ConcordError(
                f"topology {network.graph.name!r} with {network.agents} agents has no pair to "
                "gossip; add edges (communication: never trains agents in isolation)"
            )
        triggered = self.communication == "triggered"
        options = network.conditions if triggered else replace(network.conditions, loss=None)
        if not (options.is_lossless and options.on_loss == "keep_own_weight"):
            raise ConcordError(
                "network: gossip ULA wakes pairs of its own, which keep their own weight, and a "
                "trigger relies on what all neighbors have heard; give loss alone, with a clock or "
                "without, and none with communication: triggered"
            )
        given = {self.threshold is not None, self.decay is not None}
        if given != {triggered} or (self.known == "start" and not triggered):
            raise ConcordError(
                "threshold, decay, known: a trigger needs the first two, and nothing else takes "
                "them; give them with communication: triggered, or leave them out"
            )

    def init(self, x0: np.ndarray, problem: Any, network: Network, rng: Generator) -> State:
        """Return the state at x0, (chains, agents, dim); the first step draws pairs and noise."""
        pairs, nothing = np.empty((0, 0, 2), dtype=np.intp), np.empty(0)
        if self.communication != "triggered":
            return State(x0, nothing, nothing, pairs, nothing)
        communicated = x0 if self.known == "start" else np.full_like(x0, np.inf)
        return State(x0, communicated, np.zeros(x0.shape[:2]), pairs, nothing)

    def draw_ticks(
        self, state: State, k: int, network: Network, rng: Generator
    ) -> tuple[State, int]:
        """Return a state with the pairs and noise of tick k, and their index in its arrays."""
        chains, _, dim = state.x.shape
        ticks = count_steps_ahead(rng, 2 * chains * dim, NORMALS_PER_DRAW)
        tick = k % ticks
        if tick == 0 or not len(state.pairs):
            pairs = draw_pairs(network.graph, (ticks, chains), rng)
            normals = rng.standard_normal((ticks, chains, 2, dim))
            state = state._replace(pairs=pairs, normals=normals)
        return state, tick

    def step(self, state: State, k: int, problem: Any, network: Network, rng: Generator) -> State:
        """Move a pair of neighbors in each chain, and no other agent, by one tick."""
        state, tick = self.draw_ticks(state, k, network, rng)
        x, pair, chains = state.x, state.pairs[tick], np.arange(len(state.x))[:, None]
        network.mark_active(pair)
        w, alpha = x[chains, pair], self.step_size(k)
        gain = (alpha * self.gradient_weights(network.graph))[pair][..., None]
        noise = network.agents * sqrt(alpha) * state.normals[tick]
        gradient = problem.gradient_of(pair, w)
        if self.communication == "always":
            w = w - self.fusion(k) * network.difference(pair, w)
        elif self.communication == "triggered":
            hats, state = self._communicate(state, w, pair, network)
            w = w - self.fusion(k) * (hats - hats[:, ::-1])
        new = x.copy()
        new[chains, pair] = w - gain * gradient + noise
        return state._replace(x=new)

    def _communicate(
        self, state: State, w: np.ndarray, pair: np.ndarray, network: Network
    ) -> tuple[np.ndarray, State]:
        """Return the hats of the pair, (chains, 2, dim), after the trigger, and the new state.

        w, pair: the agents' positions, (chains, 2, dim), and numbers, (chains, 2).
        """
        assert self.threshold is not None and self.decay is not None
        chains = np.arange(len(w))[:, None]
        times = state.activations[chains, pair] + 1
        change = w - state.communicated[chains, pair]
        triggered = np.einsum("cpd,cpd->cp", change, change) > self.threshold * times**-self.decay
        network.count_sent(pair, triggered, triggered * network.graph.degrees[pair])
        hats = np.where(triggered[..., None], w, state.communicated[chains, pair])
        communicated, activations = state.communicated.copy(), state.activations.copy()
        communicated[chains, pair], activations[chains, pair] = hats, times
        return hats, state._replace(communicated=communicated, activations=activations)

    def amplifies(self, agents: int, iterations: int) -> bool:
        """Return whether stale differences move agents more than noise does, in a long run.

        A difference of communicated samples, up to the threshold, pulls again in every tick until
        they are communicated anew: too far if its pull exceeds the noise, beta^2 mu / tau^delta >
        N^2 alpha / 2. Then small differences grow, and after thousands of ticks triggers differ.
        """
        if self.communication != "triggered" or iterations < LONG_RUN:
            return False
        assert self.threshold is not None and self.decay is not None
        k = 2 * LONG_RUN
        threshold = self.threshold * (2.0 * k / agents) ** -self.decay
        return bool(self.fusion(k) ** 2 * threshold > agents**2 * self.step_size(k) / 2)

    def gradient_weights(self, graph: Graph) -> np.ndarray:
        """Return N/(2 p_a), or N/p_a for ``drift: whole``, of each agent, (agents,)."""
        return _weights(graph, 2 if self.drift == "half" else 1)


@lru_cache(maxsize=32)
def _weights(graph: Graph, halves: int) -> np.ndarray:
    return graph.agents / (halves * activity(graph))
