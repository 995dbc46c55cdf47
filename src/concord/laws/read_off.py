r"""Exact laws, by reading a sampler's step as matrices: it is called with unit vectors as chains.

On quadratic problems most samplers' steps are affine in the state s, in normal numbers w, in errors
:math:`\xi` of mini-batch gradients, and in the differences of received and sent vectors. A step is
called once on as many chains as these have entries, each with one of them at one and the others at
zero, and once on a few chains of random numbers of all sizes, which tell whether it is affine: as
far as they probe. What is drawn besides is refused, unless by ``random.draw_choice``, whose
outcomes are enumerated. Where the random chains move otherwise in another iteration, its step is
read anew.

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
from concord.laws.exact import Affine, LossEffect, Start, Update
from concord.laws.scripts import (
    LOST,
    SIZES,
    Script,
    ScriptedNetwork,
    ScriptedProblem,
    UnreadableStep,
)
from concord.laws.switching import Choices
from concord.minibatches import Batches
from concord.networks.network import Network
from concord.problem import CountedProblem, Quadratic
from concord.sampler import WithReadOut, check_state

# Kinds of numbers that a step is affine in.
KINDS = ("state", "normals", "errors", "differences", "memory")
ROUNDING = 1e-10  # of the random chains, relative to what adds up to a number
LEAST = 1e-13  # relative to what is added and may cancel
# A step that does the same in these iterations does so in all: 0 is a multiple of every period.
ELSEWHERE = (0, 1, 2, 720_720)
MOST_NUMBERS = 1 << 24  # of a call's outcomes: more are read in several calls
READINGS = 8  # that are kept of one sampler
MOST_STEPS = 10_000  # in which what all chains share must settle


class NoLaw(ConcordError):
    """An error that says why a sampler has no exact law on a problem and a network."""


class StepMaps(NamedTuple):
    """A step as affine maps.

    choices: the map of each outcome of its random choices. update: that of the first outcome.
    loss_effect: effect of losses; None where every vector arrives.
    """

    choices: Choices
    update: Affine
    loss_effect: LossEffect | None


class StepReader:
    """A reader of a sampler's steps as matrices, on a quadratic problem and a network.

    Steps are read when they are first asked for. batches: options of mini-batches, whose errors are
    read as well; None: full gradients. Raises ``NoLaw`` where a step is not affine.
    """

    def __init__(
        self, sampler: Any, problem: Any, network: Network, batches: Batches | None = None
    ) -> None:
        self._sampler, self._problem = sampler, problem
        self._batches = None if batches is None or batches.batch_size is None else batches
        self._size = problem.agents * problem.dim
        self.network = ScriptedNetwork(network)
        self._empty = dict.fromkeys(getattr(sampler, "draws_ahead", ()), np.empty(0))
        if isinstance(sampler, WithReadOut):
            raise self._refuse("its answer is not the positions of its state")
        if not isinstance(problem, Quadratic):
            raise NoLaw(
                f"{type(problem).__name__} is not quadratic, so no exact law is known; take "
                "approximate=True, or sample it"
            )
        if self._batches is not None and self._batches.batch_order != "with_replacement":
            raise self._refuse("errors of mini-batches in epochs depend on each other")
        self._shift = float(np.abs(problem.shift).max(initial=0.0))
        with np.errstate(all="ignore"):
            try:
                self._learn_fields()
                probes = [self._probe(k) for k in ELSEWHERE]
            except UnreadableStep as why:
                raise self._refuse(str(why)) from None
        self.chooses = any(probe.chances for probe in probes)
        self._first = probes[0]
        self._steady = len(self._history) == 1 and all(p.matches(probes[0]) for p in probes)
        self._readings: list[tuple[Script, StepMaps]] = []

    @cached_property
    def start(self) -> Start:
        """The affine map from the initial positions to the state."""
        with np.errstate(all="ignore"):
            try:
                return self._read_start()
            except UnreadableStep as why:
                raise self._refuse(str(why)) from None

    def read_step(self, k: int) -> StepMaps:
        """Return the step of iteration k as matrices.

        It is the same object for iterations with the same step.
        """
        if self._steady and self._readings:
            return self._readings[0][1]
        # Steps mostly take as many random numbers as the one before, which needs no probe then.
        before = self._readings[0][0] if self._readings else self._first
        with np.errstate(all="ignore"):
            try:
                try:
                    probe, reading = self._read(k, before)
                except UnreadableStep:
                    probe, reading = self._read(k, self._probe(k))
            except UnreadableStep as why:
                raise self._refuse(str(why)) from None
        for earlier, same in self._readings:
            if probe.matches(earlier):
                return same
        self._readings[:] = [(probe, reading), *self._readings[: READINGS - 1]]
        return reading

    def update(self) -> Update:
        """Return the sampler's affine update as a function of the iteration.

        Raises ``NoLaw`` if it makes random choices.
        """
        if self.chooses:
            raise self._refuse("it draws more than noise")

        lossy: Any = None if self.network.is_lossless else lambda k: self.read_step(k).loss_effect
        return Update(lambda k: self.read_step(k).update, self.start, lossy)

    def _refuse(self, why: str) -> NoLaw:
        """Return the error that the sampler has no exact law, and why."""
        name = getattr(self._sampler, "name", "") or type(self._sampler).__name__
        return NoLaw(f"sampler {name} has no exact law here: {why}; sample it instead")

    def _initialize(self, script: Script) -> Any:
        """Initialize the sampler at the script's positions; return its state."""
        x = script.take("state", self._size).reshape(-1, self._problem.agents, self._problem.dim)
        self._running_network = self.network.start_step(script, x)
        state = self._sampler.init(
            x, self._scripted_problem(script, None), self._running_network, script
        )
        check_state(state, self._sampler, x.shape)
        self._lanes = len(self._running_network.lanes)
        return state

    def _advance(self, state: Any, k: int, script: Script) -> Any:
        """Call the sampler's step of iteration k on a state; return the next state.

        script: the source of random numbers, gradient errors and received vectors.
        """
        state = state._replace(**self._empty)
        self._running_network = network = self.network.start_step(script, state.x, self._lanes)
        network.begin(k)
        network.take_received()
        after = self._sampler.step(
            state, k, self._scripted_problem(script, state.x), network, script
        )
        check_state(after, self._sampler, state.x.shape, state)
        network.check_sent()
        return after

    def _scripted_problem(self, script: Script, x: np.ndarray | None) -> CountedProblem:
        """Return the problem that a step sees, whose gradients have scripted mini-batch errors.

        x: the positions at which gradients must be taken. Without mini-batches they have no errors.
        """
        if self._batches is None:
            return CountedProblem(self._problem, script.chains)
        return CountedProblem(
            ScriptedProblem(self._problem, self._batches, script, x), script.chains
        )

    def _learn_fields(self) -> None:
        """Find which fields of the state differ between chains, and which do not.

        The former are blocks of the linear state; the latter are followed from step to step.
        """
        script, few = Script(len(SIZES)), self._initialize(Script(2))
        state = self._initialize(script)
        self._of_chains = {
            name
            for name, part in state._asdict().items()
            if part.shape[:1] == (script.chains,) and getattr(few, name).shape[:1] == (2,)
        } - {*self._empty}
        self._state_type = type(state)
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
                raise UnreadableStep(f"{name} of its state is no vector of each agent")
        self._blocks = [name for name in state._fields if name in varying]
        fixed = {name: getattr(begun, name) for name in state._fields if name not in varying}
        self._history = [self._one_chain(fixed)]
        self._settled = not self._history[0]

    def _one_chain(self, fields: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return one chain's values of fields that are the same in all chains."""
        one = {}
        for name, part in fields.items():
            if name in self._of_chains:
                if (part != part[:1]).any():
                    raise UnreadableStep(f"{name} of its state depends on chance later on")
                part = part[:1]
            if name not in self._empty:
                one[name] = part
        return one

    def _pack(self, state: Any, script: Script) -> np.ndarray:
        """Return the state's blocks and the sent vectors side by side, (chains, entries)."""
        parts = [getattr(state, name).reshape(script.chains, -1) for name in self._blocks]
        return np.concatenate([*parts, *self._running_network.vectors()], axis=1)

    def _step(self, k: int, script: Script) -> np.ndarray:
        """Take step k from a script's state; return the next state's arrays and the sent vectors.

        script: the source of the state and of random numbers. The result has shape (chains,
        entries): arrays and vectors one after the other, as ``_pack`` orders them.
        """
        blocks = script.take("state", self._size * len(self._blocks)).reshape(
            script.chains, len(self._blocks), self._problem.agents, self._problem.dim
        )
        fixed = {
            name: np.broadcast_to(part, (script.chains, *part.shape[1:]))
            if name in self._of_chains
            else part
            for name, part in self._constant_fields(k).items()
        }
        varying = dict(zip(self._blocks, blocks.swapaxes(0, 1), strict=True))
        state = self._advance(self._state_type(**varying, **fixed, **self._empty), k, script)
        after = {name: getattr(state, name) for name in fixed}
        script.after = self._one_chain(after)
        return self._pack(state, script)

    def _constant_fields(self, k: int) -> dict[str, np.ndarray]:
        """Return the fields that are the same in all chains, as before iteration k."""
        while len(self._history) <= k and not self._settled:
            last = len(self._history) - 1
            if last == MOST_STEPS:
                raise UnreadableStep(f"its state still changes after {MOST_STEPS} steps")
            after = self._probe(last).after
            before = self._history[last]
            if all(np.allclose(after[n], part, rtol=1e-15, atol=0) for n, part in before.items()):
                self._settled = True
            else:
                self._history.append(after)
        return self._history[min(k, len(self._history) - 1)]

    def _probe(self, k: int) -> Script:
        """Run iteration k on a few random chains; return their script with its results."""
        script = Script(len(SIZES))
        script.results = self._step(k, script)
        return script

    def _read_start(self) -> Start:
        """Read the affine map from the initial positions to the state."""

        def begin(script: Script) -> np.ndarray:
            """Return the initial state's blocks and the vectors that neighbors know."""
            state = self._initialize(script)
            return self._pack(state, script)

        script = Script(len(SIZES))
        script.results = begin(script)
        if script.chances or "errors" in script.inputs:
            raise UnreadableStep("it starts by chance")
        _, _, (matrix,), (offset,) = _solve(begin, script, self._shift)
        whole, size = len(self._blocks) * self._size, self._size
        noise = matrix[size:, :whole].T @ matrix[size:, :whole]
        if self.network.is_lossless:
            return Start(matrix[:size].T, offset, noise)
        if matrix[size:, whole:].any():
            raise UnreadableStep(LOST + "what neighbors know at first is random")
        lanes = matrix[:size, whole:].T, offset[whole:]
        return Start(matrix[:size, :whole].T, offset[:whole], noise, lanes)

    def _read(self, k: int, before: Script) -> tuple[Script, StepMaps]:
        """Read the step of iteration k as matrices; return them with a script of random chains.

        before: the script of random chains of a step that takes as many random numbers.
        """
        probe, probability, matrices, offsets = _solve(
            lambda script: self._step(k, script), before, self._shift
        )
        ends = np.cumsum([probe.count(kind) for kind in KINDS])
        size, matrices = int(ends[0]), matrices.swapaxes(1, 2)
        lead = np.ascontiguousarray(matrices[:, :size, :size])
        state, normals, errors, differences, memory = np.split(matrices, ends[:-1], axis=2)
        kicks, gain = normals[:, :size], None
        if self._batches:
            gain = np.ascontiguousarray(errors[:, :size])
        noise = kicks @ kicks.swapaxes(1, 2)
        choices = Choices(probability, lead, offsets[:, :size], noise, gain)
        update = Affine(lead[0], offsets[0, :size], noise[0], None if gain is None else gain[0])
        if self.network.is_lossless:
            return probe, StepMaps(choices, update, None)
        if len(probability) > 1:
            raise UnreadableStep(LOST + "it draws more than noise")
        if differences[0, size:].any():
            raise UnreadableStep(LOST + "what it sends depends on what it hears in the same step")
        sent = state[0, size:], offsets[0, size:]
        loss_effect = LossEffect(differences[0, :size], *sent, normals[0], memory[0], errors[0])
        return probe, StepMaps(choices, update, loss_effect)


def _solve(
    call: Callable[[Script], np.ndarray], before: Script, shift: float
) -> tuple[Script, np.ndarray, np.ndarray, np.ndarray]:
    """Find the affine map of a function, for each outcome of its random choices.

    call: the function, which returns results (chains, O) for a script of T numbers per chain.
    before: the script of random chains that took as many numbers, with results of that size.
    shift: the largest number that may have been added and subtracted.
    Returns the script of the same random chains with the function's results, probabilities of
    outcomes, matrices (outcomes, T, O) and offsets (outcomes, O). Raises ``UnreadableStep`` if the
    random chains' results contradict them, or the function takes other numbers.
    """
    counts = [before.count(kind) for kind in KINDS]
    total, ends = sum(counts), np.cumsum([0, *counts])
    inputs = np.concatenate(
        [part for kind in KINDS for part in before.inputs.get(kind, [])], axis=1
    )
    # Units as large as what is added, from which rounding would otherwise come.
    added = max(1.0, shift, np.abs(before.results[0]).max(initial=0.0))
    unit = 2.0 ** np.ceil(np.log2(added))
    chains = np.concatenate([np.zeros((1, total)), unit * np.eye(total)])
    outcomes = np.array(list(product(*[range(len(p)) for p in before.chances])), dtype=int)
    chosen = np.array(before.outcomes, dtype=int).reshape(-1, len(inputs)).T
    matrices = np.empty((len(outcomes), total, before.results.shape[1]))
    offsets = np.empty((len(outcomes), before.results.shape[1]))
    several = max(1, MOST_NUMBERS // max(1, len(chains) * before.results.shape[1]))
    probe = before
    for first in range(0, len(outcomes), several):
        some = outcomes[first : first + several]
        rows = np.concatenate([inputs, np.tile(chains, (len(some), 1))])
        prescribed = {kind: rows[:, a:b] for kind, a, b in zip(KINDS, ends, ends[1:], strict=False)}
        choices = np.concatenate([chosen, np.repeat(some, len(chains), axis=0)])
        script = Script(len(rows), prescribed, choices)
        outputs = call(script)
        probe = before.repeat(outputs[: len(inputs)], script)
        outputs = outputs[len(inputs) :].reshape(len(some), len(chains), -1)
        offsets[first : first + several] = outputs[:, 0]
        matrices[first : first + several] = (outputs[:, 1:] - outputs[:, :1]) / unit
    which = np.zeros(len(inputs), dtype=int)
    for number, p in zip(probe.outcomes, probe.chances, strict=True):
        which = which * len(p) + number
    for case in np.unique(which):
        of_case, matrix, offset = which == case, matrices[case], offsets[case]
        case_inputs = inputs[of_case]
        size = (np.abs(case_inputs) @ np.abs(matrix) + np.abs(offset)).max(axis=1, initial=0.0)
        error = np.abs(case_inputs @ matrix + offset - probe.results[of_case])
        if not (error <= ROUNDING * size[:, None] + LEAST * added).all():
            raise UnreadableStep("its step is not affine")
    chance = np.array([np.prod(p) for p in product(*probe.chances)])
    return probe, chance, matrices, offsets
