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

With ``local_steps: T`` the pair fuses first and makes T steps of ULA then, each with noise of its
own, from where the one before has led: less is sent for as many gradients.

Above, tau_a is how often a was active before. ``communication`` defines the hats; ``always``:
the samples themselves, eq. (6); ``triggered``: the samples last communicated, eqs. (7)-(9);
``never``: there is no fusion, each agent trains alone (isolated training). Before its first
activation an agent has communicated nothing, so its first activation always triggers. Arrays have
shape (chains, agents, dim); every chain has its own pairs. An agent sends one vector when it
communicates: to its partner, or with triggering to all its neighbors, who all need it later (the
paper says "broadcast", and counts one).

Source: bhar2023, section 3, with f_a its E_a; local steps: Bhar, Bai, George, Busart, "Asynchronous
Local Computations in Distributed Bayesian Learning", 2023, arXiv 2311.03496, in our form: its
abstract was read, its equations were not.
Price: two gradients per tick (two for each of T local steps), and a vector of either agent: to the
other, or to all its neighbors where a trigger asks for it.
Needs: a connected network of two agents or more.
"""

from functools import lru_cache
from math import sqrt
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import field
from msgspec.structs import replace

from concord.errors import ConcordError
from concord.networks.graph import Graph
from concord.networks.network import Network
from concord.options import Count, NonNegative
from concord.random import count_steps_ahead, draw_choice, enumerates
from concord.sampler import Sampler
from concord.samplers.checks import check_connected, check_neighbors
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
    pairs, normals: agents and noise of ticks drawn together, (ticks, chains, 2) and (ticks, steps,
    chains, 2, dim).
    """

    x: np.ndarray
    communicated: np.ndarray
    activations: np.ndarray
    pairs: np.ndarray
    normals: np.ndarray


class GossipULA(Sampler):
    """Gossip ULA with gradient steps alpha and fusion weights beta."""

    name: ClassVar[str] = "Gossip ULA"
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
    local_steps: Annotated[
        Count | None,
        "steps T of ULA that a pair makes after it has fused; none: one, from where it was before",
    ] = None

    def check(self, problem: Any, network: Network) -> None:
        """Refuse a network that is not connected, or on which more happens than losses.

        A trigger needs both threshold and decay and a lossless network; other options that only a
        trigger uses are refused without one.
        """
        check_connected(network)
        if not network.graph.is_connected or network.agents < 2:
            raise ConcordError(
                f"topology {network.graph.name!r} with {network.agents} agents has no pair to "
                "gossip or is not connected; add edges (communication: never trains agents in "
                "isolation)"
            )
        check_neighbors(network, "gossip_ula")
        options = network.conditions
        suited = replace(options, loss=None).is_lossless and options.on_loss == "keep_own_weight"
        if not suited:
            raise ConcordError(
                "network: gossip ULA wakes pairs of its own, which keep their own weight; give "
                "loss alone, with a clock or without"
            )
        triggered = self.communication == "triggered"
        if triggered and not network.is_lossless:
            raise ConcordError(
                "communication: triggered relies on what all neighbors have heard; use always, or "
                "remove network"
            )
        given = [self.threshold is not None, self.decay is not None]
        if any(given) != triggered or all(given) != triggered:
            raise ConcordError(
                "threshold, decay: a trigger needs both, and nothing else takes them; give both "
                "with communication: triggered, or neither"
            )
        if self.known == "start" and not triggered:
            raise ConcordError(
                f"known: communication: {self.communication} does not use start; remove it, or set "
                "communication: triggered"
            )
        if self.local_steps is not None and triggered:
            raise ConcordError(
                "local_steps: a trigger compares samples of steps taken one by one; use "
                "communication: always, or remove local_steps"
            )

    def init(
        self, x0: np.ndarray, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Return the state at x0, (chains, agents, dim); the first step draws pairs and noise."""
        pairs, normals = np.empty((0, 0, 2), dtype=np.intp), np.empty(0)
        if self.communication != "triggered":
            return State(x0, np.empty(0), np.empty(0), pairs, normals)
        communicated = x0 if self.known == "start" else np.full_like(x0, np.inf)
        return State(x0, communicated, np.zeros(x0.shape[:2]), pairs, normals)

    def draw_ticks(
        self, state: State, k: int, network: Network, rng: np.random.Generator
    ) -> tuple[State, int]:
        """Return a state with the pairs and noise of tick k, and their index in its arrays.

        Draws many ticks at once where the state has those of tick k not yet.
        """
        (chains, _, dim), steps = state.x.shape, self.local_steps or 1
        ticks = count_steps_ahead(rng, 2 * chains * dim * steps, NORMALS_PER_DRAW)
        tick = k % ticks
        if tick == 0 or not len(state.pairs):
            pairs = draw_pairs(network.graph, (ticks, chains), rng)
            normals = rng.standard_normal((ticks, steps, chains, 2, dim))
            state = state._replace(pairs=pairs, normals=normals)
        return state, tick

    def step(
        self, state: State, k: int, problem: Any, network: Network, rng: np.random.Generator
    ) -> State:
        """Move a pair of neighbors in each chain, and no other agent, by one tick.

        w_a <- w_a - beta (hat w_a - hat w_b) - N alpha / (2 p_a) grad f_a(w_a) + N sqrt(alpha) z, z
        ~ N(0, I), for both of the pair (bhar2023, section 3: eq. (6), and (7)-(9) with a trigger).
        """
        state, tick = self.draw_ticks(state, k, network, rng)
        x, agents = state.x, network.agents
        chains = np.arange(len(x))[:, None]
        pair, normals = state.pairs[tick], state.normals[tick]
        network.mark_active(pair)
        w, alpha = x[chains, pair], self.step_size(k)
        gain = (alpha * self.gradient_weights(network.graph))[pair][..., None]
        noise = agents * sqrt(alpha) * normals
        gradient = None if self.local_steps else problem.gradient_of(pair, w)
        if self.communication != "never":
            hats, state = self._communicate(state, w, pair, network)
            beta = self.fusion(k)
            if self.communication == "always":
                w = w - beta * network.difference(pair, hats)
            else:
                w = w - beta * (hats - hats[:, ::-1])
        for kick in noise:
            if gradient is None:
                w = w - gain * problem.gradient_of(pair, w) + kick
            else:
                w = w - gain * gradient + kick
        new = x.copy()
        new[chains, pair] = w
        return state._replace(x=new)

    def _communicate(
        self, state: State, w: np.ndarray, pair: np.ndarray, network: Network
    ) -> tuple[np.ndarray, State]:
        """Return the pair's communicated positions (hats), (chains, 2, dim), and the new state.

        w: the pair's positions, (chains, 2, dim). pair: its agents, (chains, 2). With a trigger,
        agents that moved further than the threshold communicate w, and the others' hats are their
        last ones.
        """
        if self.communication == "always":
            return w, state
        assert self.threshold is not None and self.decay is not None
        chains = np.arange(len(w))[:, None]
        times = state.activations[chains, pair] + 1
        change = w - state.communicated[chains, pair]
        distance = np.einsum("cpd,cpd->cp", change, change)
        triggered = distance > self.threshold * times**-self.decay
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
        """Return the weights of active agents' gradients over alpha, (agents,).

        They are N/(2 p_a) for ``drift: half``, else N/p_a.
        """
        halves = 2 if self.drift == "half" else 1
        return _weights(graph, halves)


@lru_cache(maxsize=32)
def _weights(graph: Graph, halves: int) -> np.ndarray:
    """Return N / (halves p_a) of each agent a, (agents,)."""
    return graph.agents / (halves * activity(graph))


@lru_cache(maxsize=32)
def activity(graph: Graph) -> np.ndarray:
    """Return the probability p_a that each agent is active in a tick, (agents,)."""
    inverse = 1 / graph.degrees
    shares = np.bincount(graph.receivers, inverse[graph.senders], graph.agents)
    return (1 + shares) / graph.agents


def draw_pairs(graph: Graph, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Draw pairs that gossip, each an agent and one of its neighbors, (ticks, chains, 2).

    The agent is uniform over all, the neighbor uniform over the agent's. shape: (ticks, chains).
    """
    if enumerates(rng):  # the law of a pair is that of the same two the other way round
        chance = (1 / graph.degrees)[graph.edges].sum(axis=1) / graph.agents
        return graph.edges[draw_choice(rng, chance, shape[1])][None]
    first = np.searchsorted(graph.receivers, np.arange(graph.agents))
    agent = rng.integers(0, graph.agents, shape)
    choice = (rng.random(shape) * graph.degrees[agent]).astype(np.intp)
    choice = np.minimum(choice, graph.degrees[agent] - 1)  # a product may round up
    return np.stack([agent, graph.senders[first[agent] + choice]], axis=-1)
