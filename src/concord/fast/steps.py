"""Several steps in one call: of samplers whose step is read, and ticks of gossip ULA."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from math import prod
from operator import mul
from typing import Any

import numpy as np
from numpy.random import Generator

from concord.fast import kernels
from concord.laws.scheduled import ReadStep
from concord.minibatches import batches_of
from concord.networks.network import Network
from concord.networks.trigger import trigger_of
from concord.problem import CountedProblem, Quadratic, local_of
from concord.problems.quadratic_problem import QuadraticProblem
from concord.random import draw_ticks
from concord.sampler import Algorithm, ChainState
from concord.values import FINITE_RANGE

MOST = 1000  # steps of a call
READABLE = 1024  # numbers of all agents' positions up to which reading a step takes a second
FEWEST = 4  # ticks of gossip from which on a call pays
MANY = 4000  # normal numbers of a draw from which on a call of compiled code pays
# Microseconds by which times are predicted, from steps of many samplers, shapes and networks: of a
# call of compiled code, of a normal number, and of an entry of the matrices, alone and for each
# chain; of a plain step, of a number of its positions, and of one of its state.
CALL, NORMAL, ENTRY, ENTRY_OF_CHAIN = 40.0, 0.0033, 0.003, 0.00011
PLAIN, PLAIN_POSITION, PLAIN_STATE = 13.0, 0.007, 0.005
ROUNDING = 1e-10  # of a compiled step, relative to the largest number of a vector
PATIENCE = 200  # iterations in which what chains share may settle

GOSSIP = "concord.samplers.gossip_ula.GossipULA.step"
QUADRATIC = "concord.problems.quadratic_problem.QuadraticProblem.gradient"
MIXTURE = "concord.problems.kinds.tied_mixture.TiedMixture.gradient"

Arrays = tuple[np.ndarray, ...]
Tables = tuple[Arrays | None, Arrays | None]  # of a quadratic gradient and of a mixture's


class _Normals(np.random.Generator):
    """A generator of numpy's numbers, whose normal ones a compiled loop draws where they are many.

    Many are so many of a call that has a shape, and asks for double precision and a new array.
    """

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return the normal numbers that numpy's generator draws next, of a shape ``size``."""
        if out is not None or dtype != np.float64 or type(size) is not tuple or prod(size) < MANY:
            return super().standard_normal(size, dtype, out)
        numbers = np.empty(size)
        kernels.fill_normals(self, numbers.reshape(-1))
        return numbers


class CompiledSteps:
    """A callable that takes several steps of a sampler at once, where they can be compiled.

    iterations: length of the run. used: whether any were compiled.
    """

    def __init__(self, sampler: Algorithm, iterations: int) -> None:
        self._sampler, self._last, self.used = sampler, iterations - 1, False
        self._take: Any = None
        self._problem: object = None  # on which the step was read
        self._step: ReadStep | None = None

    def speed_up(self, rng: np.random.Generator) -> np.random.Generator:
        """Return a generator of the same numbers, which draws many normal ones faster."""
        return _Normals(rng.bit_generator)

    def __call__(
        self,
        state: ChainState,
        k: int,
        most: int,
        problem: CountedProblem,
        network: Network,
        rng: Generator,
    ) -> tuple[ChainState, int]:
        """Take at most ``most`` steps from iteration k on; return the state and their number.

        It is zero where the loop over iterations must take a plain step: at first, where steps are
        not compiled, and where a call does not pay. The last step is the first in which a chain
        leaves the finite range.
        """
        if k == 0:
            self._take = self._choose_way(state, problem.problem, network)
        if self._take is None:
            return state, 0
        state, count = self._take(state, k, min(most, MOST), problem, network, rng)
        self.used |= count > 0
        return state, count

    def _choose_way(self, state: Any, problem: Any, network: Network) -> Any:
        """Return what takes the steps of a block of chains. None where they are not compiled."""
        quiet = network.is_lossless and not network.keeps_time
        if not quiet or state.x.dtype != np.float64 or batches_of(self._sampler) is not None:
            return None
        quadratic, mixture = tables = build_tables(problem, len(state.x))
        if _method(self._sampler, "step") == GOSSIP:
            known = quadratic is not mixture and local_of(problem) is None
            return _Gossip(self._sampler, tables) if known else None
        fits = mixture is not None or isinstance(problem, Quadratic)
        if not fits or state.x[0].size > READABLE:
            return None

        def read() -> ReadStep | None:
            """Read the step, once for all blocks of chains of a problem; None: it cannot be."""
            if problem is not self._problem:
                self._problem, self._step = problem, None
                shape = state.x[0].shape
                flat = QuadraticProblem(np.zeros((*shape, shape[1])), np.zeros(shape))
                on, given = (problem, False) if mixture is None else (flat, True)
                with suppress(Exception):  # whatever a step does that cannot be read
                    self._step = ReadStep(self._sampler, on, network, self._last, given)
            return self._step

        return _Affine(read, mixture)


class _Affine:
    """A callable that takes compiled steps s' = (A, G, B, c) (s, g, w, 1) of a block of chains.

    read: function that reads the step. mixture: tables of the gradients g; None: they are part of A
    and c.
    """

    def __init__(self, read: Callable[[], ReadStep | None], mixture: Arrays | None) -> None:
        self._read, self._mixture, self._is_plain = read, mixture, False
        self._step: ReadStep | None = None
        self._blocks: list[str] = []  # names of the fields that s consists of
        self._gain = 0.0  # of a step, in microseconds
        self._before: Any = None  # the last plain step: its state, generator and counts
        self._counts: list[list[np.ndarray]] = []  # of the steps of a period

    def __call__(
        self,
        state: ChainState,
        k: int,
        most: int,
        problem: CountedProblem,
        network: Network,
        rng: Generator,
    ) -> tuple[ChainState, int]:
        """Take at most ``most`` steps from iteration k on; return the state and their number.

        None are taken where these are few, and before each of a period was taken plainly and is the
        same.
        """
        if self._before is not None:
            (before, *past), self._before = self._before, None
            self._is_plain = not self._learn(before, state, past, _count(problem, network), rng)
        if self._is_plain:
            return state, 0
        if self._step is None or len(self._counts) < self._step.period:
            self._before = state, k, deepcopy(rng), _count(problem, network)
            return state, 0
        if most * self._gain < CALL:
            return state, 0
        after, count = self._move(self._step, state, k, most, rng)
        begin, period = self._step.begin, self._step.period
        times = [len(range((begin + phase - k) % period, count, period)) for phase in range(period)]
        unicasts, broadcasts, size, gradients = (
            sum(map(mul, times, each)) for each in zip(*self._counts, strict=True)
        )
        network.meter.add_sent(unicasts, broadcasts, size / np.maximum(unicasts, 1))
        problem.pay(gradients)
        problem.close_count(None)
        return after, count

    def _learn(
        self,
        before: ChainState,
        after: ChainState,
        past: tuple[int, Generator, list[np.ndarray]],
        counts: list[np.ndarray],
        rng: Generator,
    ) -> bool:
        """Learn from a plain step, and return whether steps may be compiled later on.

        The step is read as soon as what is no vector of agents has settled. Then a compiled step of
        each in a period must lead where the plain one has led; what this has counted is stored.
        past: the iteration, and generator and counts before the plain step. counts, rng: after it.
        """
        k, other, past_counts = past
        like = after.x.shape, after.x.dtype
        self._blocks = [n for n, e in after._asdict().items() if (e.shape, e.dtype) == like]
        others = (name for name in after._asdict() if name not in self._blocks)
        if not all(np.array_equal(getattr(before, name), getattr(after, name)) for name in others):
            return bool(k < PATIENCE)
        self._step = self._step or self._read()
        if self._step is None or self._step.size != len(self._blocks) * after.x[0].size:
            return False
        self._gain, begin = _predict_gain(self._step, after.x), self._step.begin
        if k < begin or (k - begin) % self._step.period != len(self._counts):
            return True
        self._counts.append([new - old for new, old in zip(counts, past_counts, strict=True)])
        compiled, _ = self._move(self._step, before, k, 1, other)
        pairs = [(getattr(compiled, name), getattr(after, name)) for name in self._blocks]
        return (
            all(np.allclose(*pair, rtol=0, atol=ROUNDING * np.abs(pair[1]).max()) for pair in pairs)
            and str(other.bit_generator.state) == str(rng.bit_generator.state)
            and all(count.ndim == 1 for count in counts)
            and self._gain > 0
        )

    def _move(
        self, step: ReadStep, state: Any, k: int, most: int, rng: Generator
    ) -> tuple[Any, int]:
        """Take at most ``most`` steps from iteration k on; return the state and their number."""
        shape = state.x.shape
        places = np.array([state.x[0].size, step.size, step.size + step.errors])
        s = [getattr(state, name).reshape(len(state.x), -1).T for name in self._blocks]
        others = step.errors + step.draws.sum() + 1
        old = np.concatenate([*s, np.ones((others, len(state.x)))])
        new = old.copy()
        count = kernels.take_affine_steps(
            *(old, new, places, step.draws, rng, k - step.begin),
            *((step.starts, step.columns, step.coefficients), step.powers(np.arange(k, k + most))),
            *(self._mixture, is_inside(state.x)),
        )
        s = np.split((new if count % 2 else old)[: step.size], len(self._blocks))
        parts = (np.ascontiguousarray(part.T).reshape(shape) for part in s)
        return state._replace(**dict(zip(self._blocks, parts, strict=True))), count


def _predict_gain(step: ReadStep, x: np.ndarray) -> float:
    """Return by how many microseconds a compiled step at x is faster, by prediction from sizes."""
    chains = len(x)
    of_entries = len(step.columns) * (ENTRY + ENTRY_OF_CHAIN * chains)
    compiled = NORMAL * (step.errors + step.draws.sum()) * chains + of_entries
    plain = PLAIN + PLAIN_POSITION * x.size + PLAIN_STATE * step.size * chains
    return float(plain - compiled)


def _count(problem: CountedProblem, network: Network) -> list[np.ndarray]:
    """Return what each agent has sent so far, in vectors and bytes, and its gradients."""
    meter = network.meter
    return [meter.unicasts, meter.broadcasts, meter.unicast_bytes, problem.total]


def is_inside(x: np.ndarray) -> np.ndarray:
    """Return which chains of x, (chains, agents, dim), are within the finite range."""
    inside: np.ndarray = (np.abs(x) < FINITE_RANGE).all(axis=(1, 2))
    return inside


def _method(one: object, name: str) -> str:
    """Return the qualified name of an object's method.

    By names, since a module imported here counts as code of every run.
    """
    method = getattr(type(one), name, None)
    return f"{getattr(method, '__module__', '')}.{getattr(method, '__qualname__', '')}"


def build_tables(problem: Any, chains: int) -> Tables:
    """Return the arrays from which kernels compute a problem's gradients.

    The first are of a quadratic, the second of a mixture; each is None for other problems.
    chains: their number, where each has a data set of its own.
    """
    if _method(problem, "gradient") == QUADRATIC:
        return (problem.gram.swapaxes(1, 2).copy(), problem.shift.copy()), None
    sets = getattr(problem, "sets", [problem])
    if _method(sets[0], "gradient") != MIXTURE:
        return None, None
    each = [sets[chain % len(sets)] for chain in range(chains)]
    points = np.stack([one.points for one in each], axis=-1)
    totals = np.stack([one.totals.T for one in each], axis=-1).swapaxes(0, 1).copy()
    params = sets[0].params
    prior = 1 / np.array(params.prior_variances) / problem.agents
    model = np.array([params.second_mean != "theta_2", 1 / params.variance, *prior])
    return None, (points, totals, model)


class _Gossip:
    """A callable that takes compiled ticks of gossip ULA.

    sampler: a ``GossipULA``. tables: as of ``build_tables``.
    """

    def __init__(self, sampler: Any, tables: Tables) -> None:
        self._sampler, self._tables, self._levels = sampler, tables, np.empty(0)

    def __call__(
        self,
        state: Any,
        k: int,
        most: int,
        problem: CountedProblem,
        network: Network,
        rng: Generator,
    ) -> tuple[Any, int]:
        """Take at most ``most`` ticks from tick k on; return the state and their number.

        None are taken if these are few.
        """
        if most < FEWEST:
            return state, 0
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
            *(x, (state.pairs[ticks], state.normals[ticks]), amounts, (sent, times, self._levels)),
            *(counts, *self._tables, is_inside(x)),
        )
        if sampler.communication == "always":
            network.meter.add_sent(active, active, dim * 8)
        elif trigger is not None:
            network.meter.add_sent(triggers * graph.degrees, triggers, dim * 8)
        problem.pay(active)
        network.active = active
        network.end(k, problem.close_count(None))
        return state._replace(x=x, sent=sent), count
