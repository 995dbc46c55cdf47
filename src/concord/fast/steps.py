"""Samplers with compiled steps.

Compiled are the steps of samplers that state their ``Coefficients``, and of gossip ULA; of
quadratic potentials and tied mixtures with all of their points, of few agents and chains, and where
every vector arrives at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from concord.fast import kernels
from concord.networks.graph import DENSE_AGENTS
from concord.networks.network import Network
from concord.networks.trigger import trigger_of
from concord.problem import CountedProblem
from concord.random import draw_ticks
from concord.sampler import Positions
from concord.values import FINITE_RANGE

# Numbers up to which positions are few, and dimensions up to which loops are compiled by size.
SMALL, UNROLLED = 1 << 13, 8
# Steps from which on a call pays, those that it takes at most, and entries of their matrices.
FEWEST, MOST, ENTRIES = 4, 1000, 1 << 18

GOSSIP = "concord.samplers.gossip_ula.GossipULA.step"
QUADRATIC = "concord.problems.quadratic_problem.QuadraticProblem.gradient"
MIXTURE = "concord.problems.kinds.tied_mixture.TiedMixture.gradient"

Tables = tuple[Any, Any]  # of a quadratic gradient and a mixture's, of which one is None


class CompiledSampler:
    """A sampler of the same chains as a given one, with several compiled steps in one call.

    It takes single steps of the given sampler where steps cannot be compiled.
    """

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        self._compiled: Any = None

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the given sampler."""
        return getattr(self.sampler, name)

    def init(
        self, x0: np.ndarray, problem: CountedProblem, network: Network, rng: np.random.Generator
    ) -> Any:
        """Compile the steps if that is possible; return the sampler's state at x0."""
        self._compiled = None
        quiet = network.is_lossless and not network.keeps_time and network.order == "simultaneous"
        few = x0.size <= SMALL and network.agents <= DENSE_AGENTS and x0.dtype == np.float64
        suited = quiet and few and isinstance(rng, np.random.Generator)
        if suited and (tables := tables_of(problem.problem, len(x0))) is not None:
            if _states_step(self.sampler):
                self._compiled = _Langevin(self.sampler, network.agents, tables)
            elif _method(self.sampler, "step") == GOSSIP:
                self._compiled = _Gossip(self.sampler, tables)
        return self.sampler.init(x0, problem, network, rng)

    def multi_step(
        self, state: Any, k: int, most: int, problem: CountedProblem, network: Network, rng: Any
    ) -> tuple[Any, int]:
        """Take several compiled steps from iteration k on; return the state and their number.

        most: the largest number of steps. None are taken if it is small, or steps are not compiled.
        The last one is the first in which a chain leaves the finite range.
        """
        if self._compiled is None or most < FEWEST:
            return state, 0
        return self._compiled(state, k, min(most, MOST), problem, network, rng)


def _states_step(sampler: Any) -> bool:
    """Return whether a sampler's step is the one that its ``coefficients`` state."""
    for kind in type(sampler).__mro__:
        if "coefficients" in vars(kind):
            return getattr(sampler, "prior_gradient", "with_likelihood") == "with_likelihood"
        if "step" in vars(kind):  # of a kind of it that states none
            return False
    return False


def _method(one: Any, name: str) -> str:
    """Return the qualified name of an object's method.

    By names, since a module imported here counts as code of every run.
    """
    method = getattr(type(one), name, None)
    return f"{getattr(method, '__module__', '')}.{getattr(method, '__qualname__', '')}"


def tables_of(problem: Any, chains: int) -> Tables | None:
    """Return the arrays from which kernels compute a problem's gradients.

    They are of a quadratic or of a mixture, the other being None. None where no kernel is for the
    problem.
    """
    if _method(problem, "gradient") == QUADRATIC:
        return (problem.gram.swapaxes(1, 2).copy(), problem.shift.copy()), None
    sets = getattr(problem, "sets", [problem])
    if _method(sets[0], "gradient") != MIXTURE:
        return None
    each = [sets[chain % len(sets)] for chain in range(chains)]
    points = np.concatenate([one.points for one in each]).T.copy()
    totals = np.concatenate([one.totals for one in each]).T.copy()
    params = sets[0].params
    prior = 1 / np.array(params.prior_variances) / problem.agents
    model = np.array([params.second_mean != "theta_2", 1 / params.variance, *prior])
    return None, (points, totals, model)


def _dims(dim: int) -> Any:
    """Return a tuple of length dim, which is compiled in, or an array if dim is large."""
    return (0,) * dim if dim <= UNROLLED else np.zeros(dim)


class _Langevin:
    """A callable that takes compiled steps x' = M x - gain grad f(x) + sd w.

    sampler: states its ``coefficients``. tables: as of ``tables_of``.
    """

    def __init__(self, sampler: Any, agents: int, tables: Tables) -> None:
        self._sampler, self._tables, self._identity = sampler, tables, np.eye(agents)
        self._rows: tuple[Any, Any] = (None, None)  # of the last matrix

    def __call__(
        self, state: Any, k: int, most: int, problem: CountedProblem, network: Network, rng: Any
    ) -> tuple[Any, int]:
        """Take at most ``most`` steps from iteration k on; return the state and their number."""
        many = min(most, ENTRIES // network.agents**2)
        matrix, gain, sd = self._sampler.coefficients(np.arange(k, k + many), network)
        weights = self._identity if matrix is None else matrix
        if self._rows[0] is not weights:
            self._rows = weights, _by_rows(weights)
        rows, values = self._rows[1]
        x, spare = state.x.copy(), np.empty(state.x.shape)
        count = kernels.take_langevin_steps(
            *(x, spare, rng, rows, values, np.full(many, gain), np.full(many, sd), *self._tables),
            *(_dims(x.shape[2]), FINITE_RANGE),
        )
        if matrix is not None:
            network.meter.add_rounds(count, count * x.shape[-1] * x.itemsize)
        problem.pay(count)
        problem.close_count(None)
        return Positions(spare if count % 2 else x), count


def _by_rows(matrices: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Return matrices in compressed row form: (starts, columns) and values.

    matrices: (agents, agents) or (steps, agents, agents), where entries that are zero in all of
    them are left out. values: (steps, entries).
    """
    stack = matrices.reshape(-1, *matrices.shape[-2:])
    rows, columns = np.nonzero((stack != 0).any(axis=0))
    starts = np.searchsorted(rows, np.arange(stack.shape[1] + 1))
    return (starts, columns), np.ascontiguousarray(stack[:, rows, columns])


class _Gossip:
    """A callable that takes compiled ticks of gossip ULA.

    sampler: a ``GossipULA``. tables: as of ``tables_of``.
    """

    def __init__(self, sampler: Any, tables: Tables) -> None:
        self._sampler, self._tables, self._levels = sampler, tables, np.empty(0)

    def __call__(
        self, state: Any, k: int, most: int, problem: CountedProblem, network: Network, rng: Any
    ) -> tuple[Any, int]:
        """Take at most ``most`` ticks from tick k on; return the state and their number."""
        sampler, graph = self._sampler, network.graph
        state, tick = draw_ticks(state, k, graph, rng)
        ticks = slice(tick, min(tick + most, len(state.pairs)))
        steps = np.arange(k, k + ticks.stop - tick)
        alpha, beta = sampler.step_size(steps), sampler.fusion(steps)
        amounts = (
            *(sampler.gradient_weights(graph), alpha, network.agents * np.sqrt(alpha)),
            beta if sampler.communication != "never" else beta[:0],
        )
        x, dim, trigger = state.x.copy(), state.x.shape[2], trigger_of(sampler)
        sent, times = state.sent.copy(), np.zeros(x.shape[:2])
        if trigger is not None:
            times = times + (0 if network.meter.activations is None else network.meter.activations)
            if len(self._levels) <= k + len(steps):  # the most that an agent has been active
                numbers = np.arange(2.0 * (k + len(steps)) + 1).clip(1)
                self._levels = trigger.threshold * numbers**-trigger.decay
        counts = active, triggers = np.zeros((2, *x.shape[:2]), dtype=np.int64)
        count = kernels.take_gossip_ticks(
            *(x, (state.pairs[ticks], state.normals[ticks]), amounts),
            *((sent, times, self._levels), counts, *self._tables, _dims(dim), FINITE_RANGE),
        )
        if sampler.communication == "always":
            network.meter.add_sent(active, active, dim * 8)
        elif trigger is not None:
            network.meter.add_sent(triggers * graph.degrees, triggers, dim * 8)
        problem.pay(active)
        network.active = active
        network.end(k, problem.close_count(None))
        return state._replace(x=x, sent=sent), count
