r"""Laws read off a sampler's step: one call of it, whose chains are unit vectors.

On quadratic problems most samplers' steps are affine in the state s, in normal numbers w, in errors
:math:`\xi` of mini-batch gradients, and in what is heard beyond what was sent. A step is called
once on as many chains as these have entries, each with one of them at one and the others at zero,
and once on a few chains of random numbers of all sizes, which tell whether it is affine: as far as
they probe. What is drawn besides is refused, unless by ``random.draw_choice``, whose outcomes are
enumerated. Where the random chains move otherwise in another iteration, its step is read anew.

Parts of the state that are the same for all chains, such as push-sum's weights, are followed from
iteration to iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from concord.errors import ConcordError
from concord.laws.exact import Affine, Arrivals, Start, Update
from concord.laws.scripts import LOST, SIZES, ErringProblem, Script, ScriptedNetwork, Unreadable
from concord.laws.switching import Choices
from concord.minibatches import Batches
from concord.networks.network import Network
from concord.problem import CountedProblem, Quadratic
from concord.sampler import ReadOut, check_state

KINDS = ("state", "normals", "errors", "heard", "late")  # of numbers that a step is affine in
ROUNDING = 1e-10  # of the random chains, relative to what adds up to a number
LEAST = 1e-13  # relative to what is added and may cancel
# A step that does the same in these iterations does so in all: 0 is a multiple of every period.
ELSEWHERE = (0, 1, 2, 720_720)
MOST_NUMBERS = 1 << 24  # of a call's outcomes: more are read in several calls
READINGS = 8  # that are kept of one sampler


class NoLaw(ConcordError):
    """No exact law is known; the message says why."""


class Reading(NamedTuple):
    """A step as matrices, for each outcome of what it chooses.

    probability: of each outcome, (outcomes,). updates: one per outcome. arrivals: None where
    everything arrives.
    """

    probability: np.ndarray
    updates: list[Affine]
    arrivals: Arrivals | None


class StepReader:
    """Reads the steps of a sampler on a quadratic problem and a network, when they are needed.

    batches: of the gradients, whose errors are read as well; None: they are full ones.
    ``NoLaw`` where the sampler is not affine.
    """

    def __init__(
        self, sampler: Any, problem: Any, network: Network, batches: Batches | None = None
    ) -> None:
        self._sampler, self._problem = sampler, problem
        self._batches = None if batches is None or batches.batch_size is None else batches
        self._size = problem.agents * problem.dim
        self.network = ScriptedNetwork(network)
        self._empty = dict.fromkeys(getattr(sampler, "draws_ahead", ()), np.empty(0))
        if isinstance(sampler, ReadOut):
            raise self._refuse("its answer is not the positions of its state")
        if not isinstance(problem, Quadratic):
            raise NoLaw(
                f"{type(problem).__name__} is not quadratic, so no exact law is known; use "
                "quadratic or linear_regression, or sample it"
            )
        if self._batches is not None and self._batches.batch_order != "with_replacement":
            raise self._refuse("errors of mini-batches in epochs depend on each other")
        self._shift = float(np.abs(problem.shift).max(initial=0.0))
        with np.errstate(all="ignore"):
            try:
                self._learn_fields()
                probes = [self._probe(k) for k in ELSEWHERE]
            except Unreadable as why:
                raise self._refuse(str(why)) from None
        self.chooses = any(probe.chances for probe in probes)
        self._first = probes[0]
        self._steady = len(self._history) == 1 and all(p.does_as(probes[0]) for p in probes)
        self._readings: list[tuple[Script, Reading]] = []

    @cached_property
    def start(self) -> Start:
        """How the state starts from the positions."""
        with np.errstate(all="ignore"):
            try:
                return self._read_start()
            except Unreadable as why:
                raise self._refuse(str(why)) from None

    def at(self, k: int) -> Reading:
        """Return the step of iteration k; the same object while it does the same."""
        if self._steady and self._readings:
            return self._readings[0][1]
        with np.errstate(all="ignore"):
            try:
                probe = self._first if self._steady else self._probe(k)
                for before, reading in self._readings:
                    if probe.does_as(before):
                        return reading
                reading = self._read(k, probe)
            except Unreadable as why:
                raise self._refuse(str(why)) from None
        self._readings[:] = [(probe, reading), *self._readings[: READINGS - 1]]
        return reading

    def update(self) -> Update:
        """Return the law of a sampler that draws nothing but noise; else ``NoLaw``."""
        if self.chooses:
            raise self._refuse("it draws more than noise")

        def arrivals(k: int) -> Arrivals:
            reading = self.at(k).arrivals
            assert reading is not None
            return reading

        lossless = self.network.is_lossless
        return Update(lambda k: self.at(k).updates[0], self.start, None if lossless else arrivals)

    def choices(self) -> Callable[[int], Choices]:
        """Return what each iteration chooses from; the same object while it is the same."""
        last: list[tuple[Reading, Choices]] = []

        def at(k: int) -> Choices:
            reading = self.at(k)
            if not last or last[0][0] is not reading:
                parts = (
                    np.array([getattr(update, part) for update in reading.updates])
                    for part in ("matrix", "offset", "noise")
                )
                last[:] = [(reading, Choices(reading.probability, *parts))]
            return last[0][1]

        return at

    def _refuse(self, why: str) -> NoLaw:
        name = getattr(self._sampler, "name", "") or type(self._sampler).__name__
        return NoLaw(f"sampler {name} has no exact law here: {why}; sample it instead")

    def _begin(self, script: Script) -> Any:
        """Return the state at the script's positions."""
        x = script.take("state", self._size).reshape(-1, self._problem.agents, self._problem.dim)
        self._started = self.network.listen(script, x)
        state = self._sampler.init(x, self._counted(script, None), self._started, script)
        check_state(state, self._sampler, x.shape)
        self._lanes = len(self._started.vectors())
        return state

    def _advance(self, state: Any, k: int, script: Script) -> Any:
        """Return the state after iteration k."""
        state = state._replace(**self._empty)
        self._started = network = self.network.listen(script, state.x, self._lanes)
        network.begin(k)
        network.hear()
        after = self._sampler.step(state, k, self._counted(script, state.x), network, script)
        check_state(after, self._sampler, state.x.shape, state)
        network.check_sent()
        return after

    def _counted(self, script: Script, x: np.ndarray | None) -> CountedProblem:
        """Return the problem, whose gradients at positions x have errors if they are to be read."""
        if self._batches is None:
            return CountedProblem(self._problem, script.chains)
        return CountedProblem(ErringProblem(self._problem, self._batches, script, x), script.chains)

    def _learn_fields(self) -> None:
        """Tell fields that differ by chains, blocks of the state, from those that do not."""
        script, few = Script(len(SIZES)), self._begin(Script(2))
        state = self._begin(script)
        self._of_chains = {
            name
            for name, part in state._asdict().items()
            if part.shape[:1] == (script.chains,) and getattr(few, name).shape[:1] == (2,)
        } - {*self._empty}
        self._make = type(state)
        varying, shape = {"x"}, (script.chains, self._problem.agents, self._problem.dim)
        begun = state
        for k in range(3):
            if varying >= self._of_chains:
                break
            state = self._advance(state, k, Script(script.chains))
            for name in self._of_chains:
                part = getattr(state, name)
                if (part != part[:1]).any():
                    varying.add(name)
        for name in varying:
            if getattr(state, name).shape != shape:
                raise Unreadable(f"{name} of its state is no vector of each agent")
        self._blocks = [name for name in state._fields if name in varying]
        fixed = {name: getattr(begun, name) for name in state._fields if name not in varying}
        self._history = [self._take_one(fixed)]
        self._settled = not self._history[0]

    def _take_one(self, fields: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return fields that are the same for all chains, of one chain."""
        one = {}
        for name, part in fields.items():
            if name in self._of_chains:
                if (part != part[:1]).any():
                    raise Unreadable(f"{name} of its state depends on chance later on")
                part = part[:1]
            if name not in self._empty:
                one[name] = part
        return one

    def _pack(self, state: Any, script: Script) -> np.ndarray:
        """Return the blocks of a state and what was sent, (chains, ...)."""
        parts = [getattr(state, name).reshape(script.chains, -1) for name in self._blocks]
        return np.concatenate([*parts, *self._started.vectors()], axis=1)

    def _step(self, k: int, script: Script) -> np.ndarray:
        """Return blocks and vectors that are sent after iteration k from the script's state."""
        blocks = script.take("state", self._size * len(self._blocks)).reshape(
            script.chains, len(self._blocks), self._problem.agents, self._problem.dim
        )
        fixed = {
            name: np.broadcast_to(part, (script.chains, *part.shape[1:]))
            if name in self._of_chains
            else part
            for name, part in self._fixed_at(k).items()
        }
        varying = dict(zip(self._blocks, blocks.swapaxes(0, 1), strict=True))
        state = self._advance(self._make(**varying, **fixed, **self._empty), k, script)
        after = {name: getattr(state, name) for name in fixed}
        script.after = self._take_one(after)
        return self._pack(state, script)

    def _fixed_at(self, k: int) -> dict[str, np.ndarray]:
        """Return the fields that are the same for all chains before iteration k."""
        while len(self._history) <= k and not self._settled:
            last = len(self._history) - 1
            after = self._probe(last).after
            if all(_close(part, after[name]) for name, part in self._history[last].items()):
                self._settled = True
            else:
                self._history.append(after)
        return self._history[min(k, len(self._history) - 1)]

    def _probe(self, k: int) -> Script:
        """Return the script of a few random chains after iteration k."""
        script = Script(len(SIZES))
        script.results = self._step(k, script)
        return script

    def _read_start(self) -> Start:
        def begin(script: Script) -> np.ndarray:
            state = self._begin(script)
            return self._pack(state, script)

        script = Script(len(SIZES))
        script.results = begin(script)
        if script.chances or "errors" in script.inputs:
            raise Unreadable("it starts by chance")
        _, (matrix,), (offset,) = _solve(begin, script, self._shift)
        whole, size = len(self._blocks) * self._size, self._size
        noise = matrix[size:, :whole].T @ matrix[size:, :whole]
        if self.network.is_lossless:
            return Start(matrix[:size].T, offset, noise)
        if matrix[size:, whole:].any():
            raise Unreadable(LOST + "what neighbors know at first is random")
        lanes = matrix[:size, whole:].T, offset[whole:]
        return Start(matrix[:size, :whole].T, offset[:whole], noise, lanes)

    def _read(self, k: int, probe: Script) -> Reading:
        """Return the step of iteration k, of which random chains have told what it draws."""
        probability, matrices, offsets = _solve(
            lambda script: self._step(k, script), probe, self._shift
        )
        ends = np.cumsum([probe.count(kind) for kind in KINDS])
        size = int(ends[0])
        updates = []
        for matrix, offset in zip(matrices, offsets, strict=True):
            state, normals, errors, heard, late = np.split(matrix, ends[:-1])
            kicks = normals[:, :size]
            gain = np.ascontiguousarray(errors[:, :size].T) if self._batches else None
            own = np.ascontiguousarray(state[:, :size].T)
            updates.append(Affine(own, offset[:size], kicks.T @ kicks, gain))
        if self.network.is_lossless:
            return Reading(probability, updates, None)
        if len(updates) > 1:
            raise Unreadable(LOST + "it draws more than noise")
        if heard[:, size:].any():
            raise Unreadable(LOST + "what it sends depends on what it hears in the same step")
        arrivals = Arrivals(heard[:, :size].T, state[:, size:].T, offset[size:], normals.T, late.T)
        return Reading(probability, updates, arrivals)


def _solve(
    call: Callable[[Script], np.ndarray], probe: Script, shift: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the maps of what is called, of each outcome: chances, matrices (T, O), offsets (O,).

    call: returns results for a script. probe: the script of random chains for which it was called.
    shift: the largest number that may have been added and subtracted.
    """
    counts = [probe.count(kind) for kind in KINDS]
    total, ends = sum(counts), np.cumsum([0, *counts])
    inputs = np.concatenate([part for kind in KINDS for part in probe.inputs.get(kind, [])], axis=1)
    results = probe.results
    # Units as large as what is added, from which rounding would otherwise come.
    added = max(1.0, shift, np.abs(results[0]).max(initial=0.0))
    unit = 2.0 ** np.ceil(np.log2(added))
    chains = np.concatenate([np.zeros((1, total)), unit * np.eye(total)])
    outcomes = np.array(list(product(*[range(len(p)) for p in probe.chances])), dtype=int)
    chance = np.array([np.prod(p) for p in product(*probe.chances)])
    matrices = np.empty((len(chance), total, results.shape[1]))
    offsets = np.empty((len(chance), results.shape[1]))
    several = max(1, MOST_NUMBERS // max(1, len(chains) * results.shape[1]))
    for first in range(0, len(chance), several):
        some = outcomes[first : first + several]
        rows = np.tile(chains, (len(some), 1))
        given = {kind: rows[:, a:b] for kind, a, b in zip(KINDS, ends, ends[1:], strict=False)}
        found = call(Script(len(rows), given, np.repeat(some, len(chains), axis=0)))
        found = found.reshape(len(some), len(chains), -1)
        offsets[first : first + several] = found[:, 0]
        matrices[first : first + several] = (found[:, 1:] - found[:, :1]) / unit
    which = np.zeros(len(inputs), dtype=int)
    for number, p in zip(probe.outcomes, probe.chances, strict=True):
        which = which * len(p) + number
    for chosen in np.unique(which):
        rows, matrix, offset = which == chosen, matrices[chosen], offsets[chosen]
        own = inputs[rows]
        size = (np.abs(own) @ np.abs(matrix) + np.abs(offset)).max(axis=1, initial=0.0)
        apart = np.abs(own @ matrix + offset - results[rows])
        if not (apart <= ROUNDING * size[:, None] + LEAST * added).all():
            raise Unreadable("its step is not affine")
    return chance, matrices, offsets


def _close(before: np.ndarray, after: np.ndarray) -> bool:
    """Whether numbers have settled but for rounding."""
    if np.array_equal(before, after):
        return True
    return bool((np.abs(1.0 * after - before) <= 1e-15 * np.abs(before)).all())
