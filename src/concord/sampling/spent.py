"""What a step spends, found out by trying, so that ``Info`` need not be believed.

A gradient is used if the step ends elsewhere when it is changed. Over an edge goes at least what
agents on its far side learn in a step of those on its near side: the rank of the Jacobian of where
they end with respect to the states and gradients there, in vectors of dim numbers. Both are seen
from outside of the sampler, whether it opens a channel or not, and both are lower bounds. What
neighbors have heard and an agent's state only repeats is named in the sampler's ``KNOWN``: it is
theirs, so that it costs a vector when it changes and nothing afterwards.
"""

from collections.abc import Mapping
from copy import copy
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import asdict

from concord.contracts import (
    Batched,
    ChosenAgents,
    Counting,
    Proximal,
    WithHessians,
    declared,
)
from concord.errors import ConcordError
from concord.networks.topology import Topology

# By how much states and gradients are moved for a derivative. Curvature enters relative to it,
# rounding relative to its inverse, so ranks are told apart at SEEN of the largest singular value.
NUDGE, SEEN = 1e-7, 1e-5
# The members of a problem that tell nothing of where its agents' potentials have their slopes.
PLAIN = ("agents", "dim", "counts", "dtype", "prior_gradient", "potential")
MOST = 4  # agents of which each step is tried

Added = Mapping[int, np.ndarray]  # to the results of evaluations, by their number in a step


class Tally:
    """The evaluations of one step: what each costs its agents, and what is added to its result."""

    def __init__(self) -> None:
        self.begin({})

    def begin(self, added: Added) -> None:
        """Forget all evaluations, and add these to the results of those to come."""
        self.calls: list[np.ndarray] = []
        self.added = added

    def note(self, cost: np.ndarray, out: np.ndarray, agents: Any = slice(None)) -> np.ndarray:
        """Note an evaluation whose result, of these agents, is ``out``."""
        more = self.added.get(len(self.calls))
        self.calls.append(cost)
        if more is not None:
            out += more[agents]
        return out


def watched(problem: Any, batch_size: int | None, tally: Tally, whole: bool) -> Any:
    """Return the problem whose evaluations ``tally`` notes.

    A full gradient costs as many mini-batches as hold its points. ``whole``: what else the problem
    has is there as well; otherwise nobody gets a gradient without asking for it.
    """
    if whole:
        own = copy(problem)
        own.part = None  # whose evaluations nobody would note
    else:
        kept = {name: getattr(problem, name) for name in PLAIN if name in dir(problem)}
        own = SimpleNamespace(**kept, posterior=None)
    own.from_chain = lambda first: own
    everybody = np.ones(problem.agents)
    full = everybody
    if batch_size is not None and isinstance(problem, Batched):
        full = -(-problem.counts // batch_size).astype(float)

    def noted(evaluate: Any, cost: np.ndarray) -> Any:
        return lambda *given: tally.note(cost, evaluate(*given))

    own.gradient = lambda chains: noted(problem.gradient(chains), full)
    if isinstance(problem, Batched):

        def batch_gradient(chains: int, size: int) -> Any:
            most = min(size, int(problem.counts.max()))
            cost = everybody if batch_size is None else everybody * -(-most // batch_size)
            return noted(problem.batch_gradient(chains, size), cost)

        own.batch_gradient = batch_gradient
    if isinstance(problem, WithHessians):
        own.hessian_product = lambda chains: noted(problem.hessian_product(chains), 2 * everybody)
    if isinstance(problem, ChosenAgents):

        def gradient_at(chains: int, width: int) -> Any:
            evaluate = problem.gradient_at(chains, width)

            def gradient(x: np.ndarray, agents: np.ndarray, out: np.ndarray) -> np.ndarray:
                cost = np.bincount(agents.ravel(), minlength=len(everybody)) / len(agents)
                return tally.note(cost, evaluate(x, agents, out), agents)

            return gradient

        own.gradient_at = gradient_at
    if isinstance(problem, Proximal):

        def prox(chains: int, curvature: np.ndarray) -> Any:
            solve = problem.prox(chains, curvature)

            def respond(agent: Any, linear: Any, start: Any, out: Any) -> np.ndarray:
                solve(agent, linear, start, out)
                paid = solve.gradients.mean(axis=0) if isinstance(solve, Counting) else everybody
                cost = np.zeros_like(everybody)
                cost[agent] = paid[agent]
                return tally.note(cost, out, agent)

            if isinstance(solve, Counting):
                vars(respond)["gradients"] = solve.gradients  # which makes it count as well
            return respond

        own.prox = prox
    return own


class End(NamedTuple):
    """How a step ends: state, what ``Info`` says of each agent, and the evaluations' costs."""

    state: list[np.ndarray]
    unicasts: np.ndarray
    broadcasts: np.ndarray
    gradients: np.ndarray
    calls: list[np.ndarray]


class Trial:
    """Steps of one chain, the same again but for what is changed on purpose."""

    def __init__(
        self, sampler: Any, params: Any, problem: Any, topology: Topology, seed: int
    ) -> None:
        self.sampler, self.params, self.topology, self.seed = sampler, params, topology, seed
        self.agents, self.dim, self.tally = problem.agents, problem.dim, Tally()
        size = asdict(params).get("batch_size")
        known = declared(sampler, "KNOWN")
        self.known = [sampler.State._fields.index(name) for name in known]
        self.whole = False
        self.problem = watched(problem, size, self.tally, whole=False)
        try:
            sampler.check(self.problem, topology, params)
            self._begin(0)
        except (ConcordError, AttributeError):
            self.whole = True  # it reads the problem's matrices
            self.problem = watched(problem, size, self.tally, whole=True)

    def _begin(self, number: int) -> tuple[Any, Any, np.random.Generator]:
        rng = np.random.default_rng([self.seed, number])
        x0 = rng.standard_normal((1, self.agents, self.dim))
        self.tally.begin({})
        state, step = self.sampler.init(self.problem, self.topology, self.params, x0, rng)
        return state, step, rng

    def states(self, number: int, k: int) -> list[np.ndarray]:
        """Return the state of another chain after k steps."""
        state, step, rng = self._begin(number)
        for j in range(k):
            state, _ = step(state, j, rng)
        return [np.array(part) for part in state]

    def end(self, k: int, moved: list[np.ndarray] | None = None, added: Added | None = None) -> End:
        """Return how step k ends, from where the chain is or from where it is ``moved`` to."""
        state, step, rng = self._begin(0)
        for j in range(k):
            state, _ = step(state, j, rng)
        if moved is not None:
            state = type(state)(*(np.array(part) for part in moved))
        self.tally.begin(added or {})
        state, info = step(state, k, rng)
        active = 1.0 if info.active is None else info.active
        paid = active if info.gradients is None else info.gradients
        unicasts, broadcasts, gradients = (
            np.broadcast_to(np.asarray(told, float), (1, self.agents))[0].copy()
            for told in (info.unicasts, info.broadcasts, paid)
        )
        after = [np.array(part) for part in state]
        return End(after, unicasts, broadcasts, gradients, self.tally.calls)

    def rows(self, parts: list[np.ndarray], agents: np.ndarray, heard: int = -1) -> np.ndarray:
        """Return what these agents hold, and what they have heard of another, as one vector."""
        found = [part[:, agents].ravel() for part in parts if self.own(part)]
        known = [parts[place] for place in self.known if heard >= 0]
        found += [part[:, heard].ravel() for part in known if self.own(part)]
        return np.nan_to_num(np.concatenate(found))

    def own(self, part: np.ndarray) -> bool:
        """Whether a part of the state has numbers of each agent."""
        return part.shape[:2] == (1, self.agents) and part.dtype.kind == "f"


def gradients_used(trial: Trial, k: int, end: End, agents: np.ndarray) -> np.ndarray:
    """Return how many of its gradients step k uses, of each of the agents."""
    rng, used = np.random.default_rng([trial.seed, k]), np.zeros(len(agents))
    for place, agent in enumerate(agents):
        for number, cost in enumerate(end.calls):
            if cost[agent]:
                more = np.zeros((trial.agents, trial.dim))
                more[agent] = rng.standard_normal(trial.dim)
                other = trial.end(k, added={number: more})
                same = zip(end.state, other.state, strict=True)
                used[place] += cost[agent] * (
                    not all(np.array_equal(*pair, equal_nan=True) for pair in same)
                )
    return used


def flow(trial: Trial, k: int, end: End, a: int, near: np.ndarray, most: float) -> float:
    """Return how many vectors others learn in step k of the agents ``near`` (a mask), through a.

    That is the rank over dim, told apart up to a little more than ``most``.
    """
    here, rows = trial.states(0, k), []
    rng, size = np.random.default_rng([trial.seed, k, 7]), (trial.agents, trial.dim)
    before, calls = trial.rows(end.state, ~near, a), range(len(end.calls))
    for number in range(1, int(np.ceil(most * trial.dim)) + 3):
        moved = []
        for place, (part, there) in enumerate(zip(here, trial.states(number, k), strict=True)):
            if trial.own(part):
                hidden = near & ((place not in trial.known) | (np.arange(trial.agents) != a))
                towards = np.where(np.isfinite(part), there - part, 0.0)
                part = part + np.nan_to_num(NUDGE * towards) * hidden.reshape(
                    -1, *[1] * (part.ndim - 2)
                )
            moved.append(part)
        more = {n: NUDGE * near[:, None] * rng.standard_normal(size) for n in calls}
        rows.append((trial.rows(trial.end(k, moved, more).state, ~near, a) - before) / NUDGE)
    learned = np.array(rows)
    if not np.isfinite(learned).all():
        return 0.0
    values = np.linalg.svd(learned, compute_uv=False)
    if values[0] < SEEN:
        return 0.0
    return float((values > SEEN * values[0]).sum()) / trial.dim


def sides(topology: Topology, agents: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """Return (a, b, agents that are nearer to a than to its neighbor b) on a tree, of some a."""
    found = []
    pairs = [(int(one), int(other)) for one in agents for other in topology.neighbors[one]]
    for a, b in pairs:
        near, new = {a}, {a}
        while new:
            new = {int(j) for i in new for j in topology.neighbors[i]} - near - {b}
            near |= new
        found.append((a, b, np.isin(np.arange(topology.agents), list(near))))
    return found


def slips(sampler: Any, params: Any) -> bool:
    """Whether these options are slips of released code, which the sampler names in ``SLIPS``.

    What they would send is not counted (``contracts.Info``), and ``unpaid`` says so: what is
    compared at a price may have none.
    """
    given = asdict(params)
    return any(given[name] == value for name, value in declared(sampler, "SLIPS").items())


@np.errstate(all="ignore")
def unpaid(
    sampler: Any,
    params: Any,
    problem: Any,
    topology: Topology,
    seed: int,
    steps: tuple[int, ...] = (1, 4),
) -> str:
    """Return what steps use and ``Info`` does not count, in words; nothing if it counts all."""
    trial = Trial(sampler, params, problem, topology, seed)
    rng = np.random.default_rng([seed, 1])
    agents = rng.permutation(topology.agents)[:MOST]
    tree = len(topology.edges) == topology.agents - 1 and topology.connected
    tree = tree and topology.messages is None and not topology.directed
    for k in steps:
        end = trial.end(k)
        if not np.isfinite(end.state[0]).all():
            return ""  # where nothing is finite nothing can be told
        used = gradients_used(trial, k, end, agents)
        if trial.whole and not end.calls:
            moved = trial.states(0, k)[0] != end.state[0]
            used = moved.any(axis=2)[0, agents].astype(float)  # a draw counts as a gradient
        short = used > end.gradients[agents] + 1e-9
        if short.any():
            one = agents[short][0]
            return (
                f"step {k} uses {used[short][0]:g} gradients (or mini-batches) of agent {one}, but "
                f"Info counts {end.gradients[one]:g}"
            )
        for a, b, near in sides(topology, agents) if tree else ():
            told = min(float(end.broadcasts[a]), float(end.unicasts[a]))
            learned = flow(trial, k, end, a, near, told)
            if learned > told + 1e-9:
                return (
                    f"in step {k} agent {b} learns {learned:g} vectors from agent {a}, but Info "
                    f"counts {told:g}"
                )
        for a in () if tree else agents:
            if topology.agents == 1:
                break
            only = np.arange(topology.agents) == a
            more = only[:, None] * rng.standard_normal((trial.agents, trial.dim))
            after = trial.end(k, added=dict.fromkeys(range(len(end.calls)), more))
            same = np.array_equal(trial.rows(after.state, ~only), trial.rows(end.state, ~only))
            least = 1.0 if topology.messages is None else float(topology.messages[a])
            if not same and end.unicasts[a] < least - 1e-9:
                return (
                    f"in step {k} others learn of agent {a}'s gradient, but Info counts "
                    f"{end.unicasts[a]:g} vectors"
                )
    return ""
