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
``never``: there is no fusion, each agent trains alone (isolated training).

Source: bhar2023, section 3, with f_a its E_a; local steps: Bhar, Bai, George, Busart, "Asynchronous
Local Computations in Distributed Bayesian Learning", 2023, arXiv 2311.03496, in our form: its
abstract was read, its equations were not. Before its first activation an agent has communicated
nothing, so its first activation always triggers. Arrays have shape (chains, agents, dim); every
chain has its own pairs. An agent sends one vector when it communicates: to its partner, or with
triggering to all its neighbors, who all need it later (the paper says "broadcast", and counts one).

Price: two gradients per tick (two for each of T local steps), and a vector of either agent: to the
other, or to all its neighbors where a trigger asks for it.
Needs: a connected network of two agents or more.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import field

from concord.compiled import kernel
from concord.contracts import CompiledGradient, Info, Landed, Problem, Quadratic, Step
from concord.errors import ConcordError
from concord.laws.switching import Choices
from concord.networks.channel import connect
from concord.networks.conditions import Conditions
from concord.networks.topology import Topology
from concord.options import Count, NonNegative, Options
from concord.samplers._checks import check_connected, check_neighbors
from concord.sampling.gradients import gradient_at
from concord.sampling.kick import kick, normal
from concord.sampling.leaps import Leaping, suits
from concord.sampling.recorder import FINITE_RANGE
from concord.sampling.schedules import Schedule

NAME = "Gossip ULA"

# Random numbers are drawn for as many ticks at once as this many normal deviates serve.
BLOCK = 1 << 17
# Up to so many numbers it is faster to copy all positions than those of the last tick's agents.
FEW = 1 << 13


class Params(Options):
    """Options of gossip ULA."""

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


class State(NamedTuple):
    """Positions x and the samples last communicated, (chains, agents, dim); activations tau."""

    x: np.ndarray
    communicated: np.ndarray
    activations: np.ndarray


def check(problem: Problem | None, topology: Topology, params: Params) -> None:
    """Refuse a network in parts, and a trigger without or with needless parameters."""
    check_connected(topology)
    if not topology.connected or topology.agents < 2:
        raise ConcordError(
            f"topology {topology.name!r} with {topology.agents} agents has no pair to gossip or is "
            "not connected; add edges (communication: never trains agents in isolation)"
        )
    check_neighbors(topology, "gossip_ula")
    if not (conditions := topology.conditions).perfect:
        allowed = Conditions(loss=conditions.loss, compute=conditions.compute, link=conditions.link)
        if conditions != allowed:
            raise ConcordError(
                "network: gossip ULA wakes pairs of its own, which keep their own weight; give "
                "loss alone, with a clock or without"
            )
        if params.communication == "triggered":
            raise ConcordError(
                "communication: triggered relies on what all neighbors have heard; use always, or "
                "remove network"
            )
    trigger = {"threshold": params.threshold, "decay": params.decay}
    given = [name for name, value in trigger.items() if value is not None]
    if params.communication == "triggered" and len(given) < 2:
        raise ConcordError(
            f"communication: triggered needs threshold and decay, but has {given or 'neither'}; "
            "give both"
        )
    given += ["known"] * (params.known != "nothing")
    if params.communication != "triggered" and given:
        raise ConcordError(
            f"communication: {params.communication} does not use {given[0]}; remove it, or set "
            "communication: triggered"
        )


def activity(topology: Topology) -> np.ndarray:
    """Return p, the probability that an agent is active at a tick, shape (agents,)."""
    inverse = 1 / topology.degrees
    shares = np.array([inverse[neighbors].sum() for neighbors in topology.neighbors])
    return (1 + shares) / topology.agents


def weights(topology: Topology, params: Params) -> np.ndarray:
    """Return the weight of an active agent's gradient over alpha, N/(2 p) or N/p, (agents,)."""
    return topology.agents / ({"half": 2, "whole": 1}[params.drift] * activity(topology))


def pairs(topology: Topology) -> Callable[[int, int, np.random.Generator], np.ndarray]:
    """Return ``draw(ticks, chains, rng)``, which draws who gossips: (ticks, chains, 2) agents."""
    neighbors = np.concatenate(topology.neighbors)
    degrees = topology.degrees
    first = np.concatenate([[0], np.cumsum(degrees)[:-1]])

    def draw(ticks: int, chains: int, rng: np.random.Generator) -> np.ndarray:
        awake = rng.integers(0, topology.agents, (ticks, chains))
        choice = (rng.random((ticks, chains)) * degrees[awake]).astype(np.intp)
        np.minimum(choice, degrees[awake] - 1, out=choice)  # a product may round up
        return np.stack([awake, neighbors[first[awake] + choice]], axis=-1)

    return draw


class Tick(NamedTuple):
    """Who wakes in a tick, and what depends on no position.

    agents: pairs, (chains, 2). places: chain * agents + agent, and hearers: who has to hear what
    these say, (2 chains,). gains: weights of their gradients, (chains, 2, 1). kicks: noise of each
    local step, (steps, chains, 2, dim).
    """

    agents: np.ndarray
    places: np.ndarray
    hearers: np.ndarray
    gains: np.ndarray
    kicks: np.ndarray


class _Ticks:
    """Ticks, whose random numbers are drawn for a block at once."""

    def __init__(self, topology: Topology, params: Params, shape: tuple[int, int, int]) -> None:
        chains, agents, dim = shape
        steps = params.local_steps or 1
        ticks = max(1, BLOCK // (2 * chains * dim * steps))
        self._params, self._scale = params, agents
        self._draw, self._pull = pairs(topology), weights(topology, params)
        self._first = (np.arange(chains) * agents)[:, None]
        self._degrees = topology.degrees if params.communication == "triggered" else None
        self._block = Tick(
            np.empty((ticks, chains, 2), dtype=np.intp),
            np.empty((ticks, 2 * chains), dtype=np.intp),
            np.empty((ticks, 2 * chains), dtype=np.int64),
            np.empty((ticks, chains, 2, 1)),
            np.empty((ticks, steps, chains, 2, dim)),
        )
        self._coming: Iterator[Tick] | None = None
        self._left = 0  # of a block

    def at(self, k: int, rng: np.random.Generator) -> Tick:
        """Return that of iteration k, which follows on the one before."""
        if not self._left:
            self._prepare(k, rng)
        if self._coming is None:
            self._coming = map(Tick, *self._rest())
        self._left -= 1
        return next(self._coming)

    def several(self, k: int, most: int, rng: np.random.Generator) -> Tick:
        """Return those from iteration k on, of a block: at most so many, along a first axis."""
        if not self._left:
            self._prepare(k, rng)
        found = Tick(*(part[:most] for part in self._rest()))
        self._left, self._coming = self._left - len(found.agents), None
        return found

    def _rest(self) -> list[np.ndarray]:
        return [part[len(part) - self._left :] for part in self._block]

    def _prepare(self, k: int, rng: np.random.Generator) -> None:
        awake, places, hearers, gains, kicks = self._block
        alpha = np.array([self._params.step_size(k + t) for t in range(len(awake))])
        awake[:] = self._draw(len(awake), awake.shape[1], rng)
        places.reshape(awake.shape)[:] = awake + self._first
        np.multiply(self._pull[awake][..., None], alpha[:, None, None, None], out=gains)
        if self._degrees is not None:
            hearers.reshape(awake.shape)[:] = self._degrees[awake]
        normal(rng, self._scale * np.sqrt(alpha[:, None, None, None, None]), kicks)
        self._left, self._coming = len(awake), None


class _Tally:
    """What a tick has cost: numbers of all chains and agents, zero but for its pairs."""

    def __init__(self, params: Params, shape: tuple[int, int], moved: np.ndarray | None) -> None:
        self._steps = params.local_steps or 1
        active, said, copies, gradients = counts = np.zeros((4, *shape), dtype=np.int64)
        if params.communication == "always":
            said = copies = active
        several = gradients if self._steps > 1 else None
        self.info = Info(copies, said, active, several, moved=moved)
        used = 4 if several is not None else 3 if params.communication == "triggered" else 1
        self.counts = counts.reshape(4, -1)[:used]  # the others stay zero

    def count(self, places: np.ndarray, last: np.ndarray | slice) -> None:
        """Count the pairs of these places as active, and forget those of the tick before."""
        self.counts[:, last] = 0
        self.counts[0, places] = 1
        if self._steps > 1:
            self.counts[3, places] = self._steps

    def tell(self, places: np.ndarray, triggered: np.ndarray, hearers: np.ndarray) -> None:
        """Count what those of them send that are triggered, (2 chains,)."""
        self.counts[1, places] = triggered
        self.counts[2, places] = np.multiply(triggered, hearers, out=hearers)


def init(
    problem: Problem, topology: Topology, params: Params, x0: np.ndarray, rng: np.random.Generator
) -> tuple[State, Step]:
    """Return the state at x0 and the step."""
    chains, agents, dim = x0.shape
    channel, gradient = connect(topology, x0), gradient_at(problem, chains, 2)
    differ, ticks = channel.pair(), _Ticks(topology, params, x0.shape)
    fusing, at_once = params.communication != "never", params.local_steps is None
    last, few = np.zeros(2 * chains, dtype=np.intp), x0.size <= FEW
    tally = _Tally(params, (chains, agents), None if few else last)
    trigger = _trigger(params, x0) if params.communication == "triggered" else None
    w, grad, apart = (np.empty((chains, 2, dim)) for _ in range(3))  # of the pairs
    rows, latest, spare = w.reshape(-1, dim), x0, np.empty_like(x0)
    wake, fuse = kernel("wake"), None
    if at_once and topology.conditions.perfect:
        fuse = kernel("gossip")

    def step(state: State, k: int, rng: np.random.Generator) -> tuple[State, Info]:
        nonlocal latest, spare
        (awake, places, hearers, gains, kicks), new = ticks.at(k, rng), spare
        before, after = state.x.reshape(-1, dim), new.reshape(-1, dim)
        everywhere = few or state.x is not latest  # but for the last pairs new is the same
        if wake is not None:
            wake(everywhere, before, after, last, places, rows, tally.counts, len(kicks))
        else:
            changed: Any = slice(None) if everywhere else last
            after[changed] = before[changed] if everywhere else before.take(last, 0, rows, "clip")
            tally.count(places, changed)
            last[:] = places
            before.take(places, 0, rows, "clip")
        if at_once:
            gradient(w, awake, grad)
        hats = w
        if trigger is not None:
            hats, triggered = trigger(state, places, rows)
            tally.tell(places, triggered, hearers)
        if fuse is not None:
            fuse(fusing, params.fusion(k), hats, w, gains, grad, kicks[0], places, after)
        else:
            if fusing:
                differ(awake, hats, apart)
                np.multiply(apart, params.fusion(k), out=apart)
                np.subtract(w, apart, out=w)
            for noise in kicks:
                if not at_once:
                    gradient(w, awake, grad)
                kick(rng, gains, grad, w, w, noise=noise)
            after[places] = rows
        latest, spare = new, state.x
        return State(new, state.communicated, state.activations), tally.info

    moves = channel.through(_leaping(step, ticks, problem, topology, params, x0))
    if trigger is None:
        return State(x0.copy(), np.empty(0), np.empty(0)), moves
    # Of an agent of which nothing is known the difference is infinite, above any threshold.
    first = x0.copy() if params.known == "start" else np.full_like(x0, np.inf)
    return State(x0.copy(), first, np.zeros((chains, agents))), moves


def _leaping(
    step: Step, ticks: _Ticks, problem: Problem, topology: Topology, params: Params, x0: np.ndarray
) -> Step:
    """Return the step with leaps, where they are possible."""
    chains, agents, dim = x0.shape
    triggered = params.communication == "triggered"
    # With more dimensions einsum adds up squared distances in an order of its own.
    suited = suits(problem, topology, x0) and (dim <= 2 or not triggered)
    if not suited or params.local_steps is not None:
        return step
    assert isinstance(problem, CompiledGradient)
    gradient, loop = problem.compiled_gradient(chains, 2), kernel("ticks", dim)
    if gradient is None or loop is None:
        return step
    pairs = [np.empty((2 * chains, dim)) for _ in range(3)]
    fusing, levels = params.communication != "never", np.empty(0)

    def leap(state: State, k: int, most: int, rng: np.random.Generator) -> Landed:
        nonlocal levels
        coming = ticks.several(k, most, rng)
        count, many = len(coming.agents), 2 * chains
        if triggered and len(levels) <= k + count:
            levels = _levels(np.arange(2.0 * (k + count)).clip(1), params)
        counts = np.zeros((3, chains, agents), dtype=np.int64)
        active, said, copies = counts
        left = np.full(chains, -1)
        loop(
            *gradient,
            coming.agents.reshape(count, many),
            coming.places,
            coming.hearers,
            coming.gains.reshape(count, many),
            coming.kicks.reshape(count, many, dim),
            fusing,
            np.array([params.fusion(k + tick) for tick in range(count)]),
            state.x.reshape(-1, dim, copy=False),
            *pairs,
            state.communicated.reshape(-1, dim, copy=False),
            state.activations.reshape(-1, copy=False),
            levels,
            counts.reshape(3, -1),
            left,
            FINITE_RANGE,
        )
        if params.communication == "always":
            said = copies = active
        return Landed(state, Info(copies, said, active), count, left)

    return Leaping(step, leap)


def _levels(times: np.ndarray, params: Params, out: np.ndarray | None = None) -> np.ndarray:
    """Return which squared distance an agent's must exceed that has been active so many times."""
    assert params.threshold is not None and params.decay is not None
    out = np.power(times, -params.decay, out=out)
    return np.multiply(out, params.threshold, out=out)


def _trigger(
    params: Params, x0: np.ndarray
) -> Callable[[State, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return ``trigger(state, places, w)``, which updates what is known of the pairs at w.

    It returns the hats, (chains, 2, dim), and who has communicated, (2 chains,).
    """
    chains, _, dim = x0.shape
    hats, apart = np.empty((2 * chains, dim)), np.empty((2 * chains, dim))
    squared, level, times = (np.empty(2 * chains) for _ in range(3))
    triggered = np.empty(2 * chains, dtype=bool)

    def trigger(state: State, places: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        known, activations = state.communicated.reshape(-1, dim), state.activations.reshape(-1)
        known.take(places, 0, hats, "clip")
        np.subtract(w, hats, out=apart)
        np.einsum("md,md->m", apart, apart, out=squared)
        activations.take(places, None, times, "clip")
        np.add(times, 1.0, out=times)
        _levels(times, params, level)
        np.greater(squared, level, out=triggered)
        np.copyto(hats, w, where=triggered[:, None])
        known[places] = hats
        activations[places] = times
        return hats.reshape(chains, 2, dim), triggered

    return trigger


def choices(
    problem: Quadratic, topology: Topology, params: Params
) -> Callable[[int], Choices] | None:
    """Return the updates that iteration k chooses from: one per edge, the pairs that gossip.

    None with triggering: whether an agent communicates depends on where it is.
    """
    if params.communication == "triggered":
        return None
    agents, dim = problem.agents, problem.dim
    edges, inverse = np.array(topology.edges), 1 / topology.degrees
    probability = inverse[edges].sum(axis=1) / agents
    pull = weights(topology, params)
    active = np.zeros((len(edges), agents))
    active[np.arange(len(edges))[:, None], edges] = 1
    apart = np.zeros_like(active)
    apart[np.arange(len(edges)), edges[:, 0]], apart[np.arange(len(edges)), edges[:, 1]] = 1, -1
    fusion = apart[:, :, None] * apart[:, None, :] * (params.communication != "never")
    identity = np.eye(dim)

    def at(k: int) -> Choices:
        alpha, beta = params.step_size(k), params.fusion(k)
        gain = alpha * pull * active  # (edges, agents)
        size, each = agents * dim, np.arange(agents)
        blocks = np.zeros((len(edges), agents, dim, agents, dim))
        blocks[:, each, :, each, :] = (gain[:, :, None, None] * problem.gram).swapaxes(0, 1)
        drift = blocks.reshape(-1, size, size)
        fused = np.einsum("eab,ij->eaibj", np.eye(agents) - beta * fusion, identity)
        kicks = np.einsum("ea,ab,ij->eaibj", active, np.eye(agents), identity)
        matrix, offset = fused.reshape(-1, size, size), gain[:, :, None] * problem.shift
        offset, noise = offset.reshape(-1, size), alpha * agents**2 * kicks.reshape(-1, size, size)
        if params.local_steps is None:
            return Choices(probability, matrix - drift, offset, noise)
        step, shift, spread = np.eye(size) - drift, offset, noise
        matrix = step @ matrix
        for _ in range(params.local_steps - 1):
            matrix = step @ matrix
            offset = np.einsum("est,et->es", step, offset) + shift
            noise = step @ noise @ step.swapaxes(1, 2) + spread
        return Choices(probability, matrix, offset, noise)

    return at
