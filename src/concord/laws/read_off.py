r"""Exact laws, by reading a sampler's step as matrices: it is called with unit vectors as chains.

On quadratic problems most samplers' steps are affine in the state s, in normal numbers w, in errors
:math:`\xi` of mini-batch gradients, and in the differences of received and sent vectors. A step is
called once on as many chains as these have entries, each with one of them at one and the others at
zero, and once on a few chains of random numbers of all sizes, which tell whether it is affine: as
far as they probe. What is drawn besides is refused, unless by ``random.draw_choice``, whose
outcomes are enumerated.

A step is read anew in each iteration that it can tell from those read before: where it gets other
answers to what it asks of k (``laws.iterations``), or where fields of the state that all chains
share, such as push-sum's weights, have other values: these are followed from step to step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, TypeVar

import numpy as np

from concord.errors import ConcordError
from concord.laws.exact import Affine, LossEffect, Start, Update
from concord.laws.iterations import (
    ALWAYS,
    Cycle,
    Iteration,
    Question,
    join_cycles,
    make_number_question,
)
from concord.laws.scripts import (
    LOST,
    SIZES,
    Script,
    ScriptedNetwork,
    ScriptedProblem,
    UnreadableStep,
)
from concord.laws.switching import Choices
from concord.minibatches import batches_of
from concord.networks.network import Network
from concord.problem import CountedProblem, Quadratic
from concord.sampler import WithReadOut, check_state

# Kinds of numbers that a step is affine in.
KINDS = ("state", "normals", "errors", "differences", "memory")
ROUNDING = 1e-10  # of the random chains, relative to what adds up to a number
LEAST = 1e-13  # relative to what is added and may cancel
MOST_NUMBERS = 1 << 24  # of a call's outcomes: more are read in several calls
READINGS = 8  # that are kept of one sampler
ROLLED = 7  # places by which random chains are moved, so that each stands where another stood
COUPLED = "its chains influence each other"
LEARNING = 3  # steps after which what depends on chance mostly shows it
MOST_FOLLOWED = 10_000  # iterations in which it is looked when steps repeat
MOST_CHANGES = 100_000  # of what all chains share

T = TypeVar("T")


class NoLaw(ConcordError):
    """An error that says why a sampler has no exact law on a problem and a network."""


class StepMaps(NamedTuple):
    """A step as affine maps.

    choices: the map of each outcome of its random choices. update: that of the first outcome.
    loss_effect: effect of losses; None where every vector arrives.
    kicks: what the normal numbers of each draw add to the state, (S, numbers), in the order of the
    draws; of the first outcome.
    """

    choices: Choices
    update: Affine
    loss_effect: LossEffect | None
    kicks: list[np.ndarray]


class _Reading(NamedTuple):
    """A step read as matrices, with what its iterations have in common.

    since: the iteration since which shared fields have had their values. questions: those that the
    step asked about k. script: of random chains, with their results.
    """

    since: int
    questions: list[Question]
    script: Script
    maps: StepMaps

    def is_step_of(self, k: int, since: int) -> bool:
        """Return whether this is the step of iteration k; since: that of its shared fields."""
        return since == self.since and all(each.has_same_answer(k) for each in self.questions)


class StepReader:
    """A reader of a sampler's steps as matrices, on a quadratic problem and a network.

    Steps are read when they are first asked for, errors of mini-batches as well. Raises ``NoLaw``
    where a step is not affine.
    """

    def __init__(self, sampler: Any, problem: Any, network: Network) -> None:
        self._sampler, self._problem = sampler, problem
        self._batches = batches_of(sampler)
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
        self._readings: list[_Reading] = []
        self._notes_questions = True  # False: steps are given plain numbers of iterations
        self._call_with_retry(self._learn_fields)

    @cached_property
    def start(self) -> Start:
        """The affine map from the initial positions to the state."""
        with self._refuse_unreadable():
            return self._read_start()

    @cached_property
    def cycle(self) -> Cycle | None:
        """From which iteration on steps repeat, and after how many. None: not known, or never."""
        while (
            self._questions_cycle and not self._shared_cycle and len(self._sinces) < MOST_FOLLOWED
        ):
            self._call_with_retry(self._follow_step)
        return join_cycles([self._questions_cycle, self._shared_cycle])

    def read_step(self, k: int) -> StepMaps:
        """Return the step of iteration k as matrices.

        It is the same object for iterations with the same step.
        """
        since = self._call_with_retry(lambda: self._find_since(k))
        for reading in self._readings:
            if reading.is_step_of(k, since):
                return reading.maps
        new = self._call_with_retry(lambda: self._read_new_step(k, since))
        for earlier in self._readings:
            if new.script.matches(earlier.script):
                new = new._replace(maps=earlier.maps)
                break
        self._readings[:] = [new, *self._readings[: READINGS - 1]]
        return new.maps

    def update(self) -> Update:
        """Return the sampler's affine update as a function of the iteration.

        Raises ``NoLaw`` if it makes random choices.
        """
        refusal = self._refuse("it draws more than noise")
        if self.chooses:
            raise refusal

        def read(k: int) -> StepMaps:
            """Return the step of iteration k. ``NoLaw`` if it makes random choices there."""
            maps = self.read_step(k)
            if len(maps.choices.probability) > 1:
                raise refusal
            return maps

        lossy: Any = None if self.network.is_lossless else lambda k: read(k).loss_effect
        return Update(lambda k: read(k).update, self.start, lossy, lambda: self.cycle)

    def _call_with_retry(self, function: Callable[[], T]) -> T:
        """Call a function that takes steps, and return its result.

        Where a step fails it is called once more, with plain numbers of iterations. Raises
        ``NoLaw`` in the place of ``UnreadableStep``.
        """
        with self._refuse_unreadable():
            try:
                return function()
            except (UnreadableStep, ConcordError):
                raise
            except Exception:
                if not self._notes_questions:
                    raise
            self._notes_questions = False
            return function()

    @contextmanager
    def _refuse_unreadable(self) -> Iterator[None]:
        """Raise ``NoLaw`` in the place of ``UnreadableStep``, and ignore overflows."""
        with np.errstate(all="ignore"):
            try:
                yield
            except UnreadableStep as why:
                raise self._refuse(str(why)) from None

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

    def _advance(
        self, state: Any, k: int, script: Script, plain: bool = False
    ) -> tuple[Any, list[Question]]:
        """Call the sampler's step of iteration k on a state.

        script: the source of random numbers, gradient errors and received vectors. plain: whether k
        is handed over as a plain number. Returns the next state, and what the step asked of k.
        """
        state = state._replace(**self._empty)
        self._running_network = network = self.network.start_step(script, state.x, self._lanes)
        network.begin(k)  # a plain number: what happens on a scripted network does not depend on it
        network.take_received()
        questions: list[Question] = []
        number: Any = Iteration(k, questions)
        if plain or not self._notes_questions:
            number, questions = k, [make_number_question(k)]
        problem = self._scripted_problem(script, state.x)
        after = self._sampler.step(state, number, problem, network, script)
        check_state(after, self._sampler, state.x.shape, state)
        network.check_sent()
        return after, questions

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
        """Find the fields of the state that differ between chains, which are its linear blocks.

        The other fields, which chains share, and questions about k are followed from step to step,
        for so long that questions repeat.
        """
        script, few = Script(len(SIZES)), self._initialize(Script(2))
        self._state = state = self._initialize(script)
        self._of_chains = {
            name
            for name, part in state._asdict().items()
            if part.shape[:1] == (script.chains,) and getattr(few, name).shape[:1] == (2,)
        } - {*self._empty}
        self._blocks, self.chooses = ["x"], False
        # Values of shared fields, by the iteration since which they have them; and that iteration
        # for k = 0, 1, ...
        self._values: dict[int, dict[str, np.ndarray]] = {}
        self._values[0], self._sinces = self._shared_fields(state, learning=True), [0]
        self._questions_cycle: Cycle | None = ALWAYS
        self._shared_cycle: Cycle | None = None
        due = LEARNING
        while len(self._sinces) <= due:
            self._follow_step(learning=True)
            begin, period = self._questions_cycle or ALWAYS
            if begin + period > MOST_FOLLOWED:
                self._questions_cycle = None
            else:
                due = max(due, begin + period)
        for name in self._blocks:
            if getattr(state, name).shape != state.x.shape:
                raise UnreadableStep(f"{name} of its state is no vector of each agent")

    def _follow_step(self, learning: bool = False) -> None:
        """Take the next step of random chains, and note its questions and the shared fields.

        learning: whether fields that differ between chains may become blocks of the state.
        """
        script, count = Script(len(SIZES)), len(self._sinces)
        self._state, questions = self._advance(self._state, count - 1, script)
        self.chooses |= bool(script.chances)
        cycles = [self._questions_cycle, *(question.cycle for question in questions)]
        self._questions_cycle = join_cycles(cycles)
        values = self._shared_fields(self._state, learning)
        since = self._sinces[-1]
        if not _are_arrays_equal(values, self._values[since]):
            since = count
            self._values[since] = values
        self._sinces.append(since)
        if self._questions_cycle and not self._shared_cycle:
            begin, period = self._questions_cycle
            before = count - period
            if before >= begin and _are_arrays_equal(values, self._values[self._sinces[before]]):
                self._shared_cycle = before, period

    def _shared_fields(self, state: Any, learning: bool = False) -> dict[str, np.ndarray]:
        """Return one chain's values of the fields that are the same in all chains."""
        shared = {}
        for name, part in state._asdict().items():
            if name in self._blocks or name in self._empty:
                continue
            if name in self._of_chains:
                if (part != part[:1]).any():
                    if not learning:
                        raise UnreadableStep(f"{name} of its state depends on chance later on")
                    self._add_block(name)
                    continue
                part = part[:1]
            shared[name] = part
        return shared

    def _add_block(self, name: str) -> None:
        """Make a field of the state a block of the linear state, in the order of the fields."""
        self._blocks = [each for each in self._state._fields if each in {*self._blocks, name}]
        for values in self._values.values():
            values.pop(name, None)

    def _find_since(self, k: int) -> int:
        """Return the iteration since which shared fields have had their values of iteration k."""
        if not self._values[0]:
            return 0
        while len(self._sinces) <= k and not self._shared_cycle:
            if len(self._sinces) > MOST_CHANGES:
                raise UnreadableStep(
                    f"its state, or what it asks of k, still changes after {MOST_CHANGES} steps"
                )
            self._follow_step()
        if k >= len(self._sinces):
            assert self._shared_cycle
            begin, period = self._shared_cycle
            k = begin + (k - begin) % period
        return self._sinces[k]

    def _pack(self, state: Any, script: Script) -> np.ndarray:
        """Return the state's blocks and the sent vectors side by side, (chains, entries)."""
        parts = [getattr(state, name).reshape(script.chains, -1) for name in self._blocks]
        return np.concatenate([*parts, *self._running_network.vectors()], axis=1)

    def _step(
        self, k: int, since: int, script: Script, plain: bool = False
    ) -> tuple[np.ndarray, list[Question], dict[str, np.ndarray]]:
        """Take step k from a script's state, with shared fields as they are since an iteration.

        script: the source of the state and of random numbers. plain: whether k is handed over as a
        plain number. Returns the next state's arrays and the sent vectors, (chains, entries), as
        ``_pack`` orders them, what the step asked of k, and the next shared fields.
        """
        blocks = script.take("state", self._size * len(self._blocks)).reshape(
            script.chains, len(self._blocks), self._problem.agents, self._problem.dim
        )
        shared = {
            name: np.broadcast_to(part, (script.chains, *part.shape[1:]))
            if name in self._of_chains
            else part
            for name, part in self._values[since].items()
        }
        varying = dict(zip(self._blocks, blocks.swapaxes(0, 1), strict=True))
        begun = type(self._state)(**varying, **shared, **self._empty)
        state, questions = self._advance(begun, k, script, plain)
        return self._pack(state, script), questions, self._shared_fields(state)

    def _probe(self, k: int, since: int) -> Script:
        """Run iteration k on a few random chains; return their script with its results."""
        script = Script(len(SIZES))
        script.results, *_ = self._step(k, since, script)
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
        _, _, (matrix,), (offset,) = _fit_affine_map(begin, script, self._shift)
        whole, size = len(self._blocks) * self._size, self._size
        noise = matrix[size:, :whole].T @ matrix[size:, :whole]
        if self.network.is_lossless:
            return Start(matrix[:size].T, offset, noise)
        if matrix[size:, whole:].any():
            raise UnreadableStep(LOST + "what neighbors know at first is random")
        lanes = matrix[:size, whole:].T, offset[whole:]
        return Start(matrix[:size, :whole].T, offset[:whole], noise, lanes)

    def _read_new_step(self, k: int, since: int) -> _Reading:
        """Read a step of iteration k that differs from those read before as matrices.

        It mostly takes as many random numbers as the last one. One that tells an ``Iteration`` from
        a plain number, by its type, is given plain numbers from there on.
        """
        for last in self._readings[:1]:
            with suppress(UnreadableStep):
                return self._read(k, since, last.script)
        try:
            return self._read(k, since, self._probe(k, since))
        except UnreadableStep as why:
            if str(why) != COUPLED or not self._notes_questions:
                raise
        self._notes_questions = False
        self._learn_fields()
        self._readings.clear()
        vars(self).pop("cycle", None)
        since = self._find_since(k)
        return self._read(k, since, self._probe(k, since))

    def _read(self, k: int, since: int, before: Script) -> _Reading:
        """Read the step of iteration k as matrices.

        before: the script of random chains of a step that takes as many random numbers. They must
        move as they do in another order, without others, at a plain number of the iteration.
        """
        questions: list[Question] = []
        order = np.roll(np.arange(before.chains), ROLLED)
        numbers = {kind: np.concatenate(of, axis=1)[order] for kind, of in before.inputs.items()}
        outcomes = np.array(before.outcomes, dtype=int).reshape(-1, before.chains).T[order]
        rolled = Script(before.chains, numbers, outcomes)
        results, _, shared = self._step(k, since, rolled, plain=True)
        alone = results[np.argsort(order)]

        def call(script: Script) -> np.ndarray:
            """Return the step's results, and note its questions."""
            results, asked, shared_of_many = self._step(k, since, script)
            if not _are_arrays_equal(shared, shared_of_many):
                raise UnreadableStep(COUPLED)
            questions.extend(asked)
            return results

        probe, probability, matrices, offsets = _fit_affine_map(call, before, self._shift, alone)
        return _Reading(
            since, questions, probe, self._split_maps(probe, probability, matrices, offsets)
        )

    def _split_maps(
        self, probe: Script, probability: np.ndarray, matrices: np.ndarray, offsets: np.ndarray
    ) -> StepMaps:
        """Split the matrix of a step into its maps of states and of sent vectors."""
        ends = np.cumsum([probe.count(kind) for kind in KINDS])
        size, matrices = int(ends[0]), matrices.swapaxes(1, 2)
        lead = np.ascontiguousarray(matrices[:, :size, :size])
        state, normals, errors, differences, memory = np.split(matrices, ends[:-1], axis=2)
        kicks, gain = normals[:, :size], None
        if self._batches:
            gain = np.ascontiguousarray(errors[:, :size])
            if not gain.shape[-1]:  # a step without a gradient
                gain = np.zeros((*gain.shape[:-1], self._size))
        noise = kicks @ kicks.swapaxes(1, 2)
        choices = Choices(probability, lead, offsets[:, :size], noise, gain)
        update = Affine(lead[0], offsets[0, :size], noise[0], None if gain is None else gain[0])
        counts = [part.shape[1] for part in probe.inputs.get("normals", [])]
        draws = np.split(kicks[0], np.cumsum(counts, dtype=int), axis=1)[:-1]
        if self.network.is_lossless:
            return StepMaps(choices, update, None, draws)
        if len(probability) > 1:
            raise UnreadableStep(LOST + "it draws more than noise")
        if differences[0, size:].any():
            raise UnreadableStep(LOST + "what it sends depends on what it hears in the same step")
        sent = state[0, size:], offsets[0, size:]
        loss_effect = LossEffect(differences[0, :size], *sent, normals[0], memory[0], errors[0])
        return StepMaps(choices, update, loss_effect, draws)


def _are_arrays_equal(some: dict[str, np.ndarray], others: dict[str, np.ndarray]) -> bool:
    """Return whether arrays by name are equal up to rounding."""
    return all(_is_equal(part, others[name]) for name, part in some.items())


def _is_equal(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays are equal, numbers with a point up to rounding."""
    if one.dtype.kind not in "fc" or one.shape != other.shape:
        return np.array_equal(one, other)
    return np.allclose(one, other, rtol=1e-15, atol=0)


def _fit_affine_map(
    call: Callable[[Script], np.ndarray],
    before: Script,
    shift: float,
    alone: np.ndarray | None = None,
) -> tuple[Script, np.ndarray, np.ndarray, np.ndarray]:
    """Find the affine map that a function is, for each outcome of its random choices.

    call: the function, which returns results (chains, O) for a script of T numbers per chain.
    before: the script of random chains that took as many numbers, with results of that size.
    shift: the largest number that may have been added and subtracted.
    alone: the results of the random chains without others; None: not known.
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
        results, rounding = probe.results[of_case], ROUNDING * size[:, None] + LEAST * added
        if not (np.abs(case_inputs @ matrix + offset - results) <= rounding).all():
            raise UnreadableStep("its step is not affine")
        if alone is not None and not (np.abs(alone[of_case] - results) <= rounding).all():
            raise UnreadableStep(COUPLED)
    chance = np.array([np.prod(p) for p in product(*probe.chances)])
    return probe, chance, matrices, offsets
