r"""Exact laws, by reading a sampler's step as matrices: it is called with unit vectors as chains.

On quadratic problems most samplers' steps are affine. With s the state, w normal numbers,
:math:`\xi` errors of mini-batch gradients, d received minus sent vectors, and e vectors heard
before,

.. math:: s' = A s + B w + H \xi + G d + F e + c.

A step is called once on as many chains as these have entries, each with one of them at one and the
others at zero, and on a few chains of random numbers of all sizes, alone and among the others,
which tell whether it is affine: as far as they probe. What is drawn besides is refused, unless by
``random.draw_choice``, whose outcomes are enumerated.

A step is read anew in each iteration that it can tell from those read before: where it gets other
answers to what it asks of k (``laws.iterations``), or where fields of the state that all chains
share, such as push-sum's weights, have other values: these are followed from step to step.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
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
    IterationQuestion,
    join_cycles,
    make_number_question,
)
from concord.laws.scripts import (
    LOST,
    SIZES,
    SOURCES,
    UNEQUAL,
    Script,
    ScriptedNetwork,
    ScriptedSampler,
    UnreadableStep,
)
from concord.laws.switching import Choices
from concord.minibatches import batches_of
from concord.networks.network import Network
from concord.problem import Problem, Quadratic
from concord.sampler import WithReadOut

ROUNDING = 1e-10  # of the random chains, relative to what adds up to a number
LEAST = 1e-13  # relative to what is added and may cancel
MOST_NUMBERS = 1 << 24  # of a call's outcomes: more are read in several calls
READINGS = 8  # that are kept of one sampler
ORDER = np.roll(np.arange(len(SIZES)), 7)  # of random chains among others: each where another was
COUPLED = "its chains influence each other"
LEARNING = 3  # steps after which what depends on chance mostly shows it
MOST_FOLLOWED = 10_000  # iterations in which it is looked when steps repeat
MOST_CHANGES = 100_000  # of what all chains share

T = TypeVar("T")
Shared = dict[str, np.ndarray]  # values of the fields of a state that all chains share, by name


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


class StepReader:
    """A reader of a sampler's steps as matrices, on a quadratic problem and a network.

    Steps are read when they are first asked for, in any order. Raises ``NoLaw`` where a step is not
    affine.

    errors: whether to read what errors of full gradients do, too. chooses: whether steps make
    random choices.
    """

    def __init__(
        self, sampler: Any, problem: Problem, network: Network, errors: bool = False
    ) -> None:
        self._name = getattr(sampler, "name", "") or type(sampler).__name__
        if isinstance(sampler, WithReadOut):
            raise self._refuse("its answer is not the positions of its state")
        if not isinstance(problem, Quadratic):
            raise NoLaw(
                f"{type(problem).__name__} is not quadratic, so no exact law is known; take "
                "approximate=True, or sample it"
            )
        batches = batches_of(sampler)
        if batches is not None and batches.batch_order != "with_replacement":
            raise self._refuse("errors of mini-batches in epochs depend on each other")
        self._sampler = ScriptedSampler(sampler, problem, network, errors)
        self._largest = float(np.abs(problem.shift).max(initial=0.0))
        self._steps: _Steps | None = None
        self._plain = False
        self.chooses = self._ask(lambda steps: steps.chooses)

    def on(self, sampler: Any, problem: Quadratic) -> StepReader:
        """Return a reader of the sampler with other options, or on another problem of one size.

        Its steps are read anew, but taken to repeat, and to make choices, as they do here.
        """
        other = copy(self)
        vars(other).pop("start", None)
        other._sampler = self._sampler.on(sampler, problem)
        other._largest = float(np.abs(problem.shift).max(initial=0.0))
        other._steps = self._ask(lambda steps: steps.on(other._sampler, other._largest))
        return other

    @cached_property
    def start(self) -> Start:
        """The affine map from the initial positions to the state."""
        return self._ask(_Steps.read_start)

    @property
    def cycle(self) -> Cycle | None:
        """From which iteration on steps repeat, and after how many. None: not known, or never."""
        return self._ask(_Steps.find_cycle)

    def read_step(self, k: int) -> StepMaps:
        """Return the step of iteration k as matrices.

        It is the same object for iterations with the same step.
        """
        return self._ask(lambda steps: steps.read(k))

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

        lossy: Any = (lambda k: read(k).loss_effect) if self._sampler.loses else None
        return Update(lambda k: read(k).update, self.start, lossy, lambda: self.cycle)

    def _ask(self, question: Callable[[_Steps], T]) -> T:
        """Return what a function reads off the sampler's steps.

        Steps are handed an iteration number that notes its uses (``Iteration``). If a step fails on
        it, or tells its type, all steps are read anew with plain integers. Raises ``NoLaw`` where
        the steps cannot be read.
        """
        with np.errstate(all="ignore"):
            while True:
                try:
                    self._steps = self._steps or _Steps(self._sampler, self._plain, self._largest)
                    return question(self._steps)
                except UnreadableStep as why:
                    if self._plain or str(why) != COUPLED:
                        raise self._refuse(str(why)) from None
                except ConcordError:
                    raise
                except Exception:
                    if self._plain:
                        raise
                self._steps, self._plain = None, True

    def _refuse(self, why: str) -> NoLaw:
        """Return the error that the sampler has no exact law, and why."""
        return NoLaw(f"sampler {self._name} has no exact law here: {why}; sample it instead")


class _Reading(NamedTuple):
    """A step read as matrices, with what its iterations have in common.

    shared: values of shared fields. questions: those that the step asked about k. results, chances:
    results of random chains, and probabilities of their choices.
    """

    shared: Shared
    questions: list[IterationQuestion]
    results: np.ndarray
    chances: list[np.ndarray]
    maps: StepMaps

    def is_step_of(self, k: int, shared: Shared) -> bool:
        """Return whether this is the step of iteration k, in which shared fields are ``shared``."""
        return shared is self.shared and all(each.has_same_answer(k) for each in self.questions)

    def equals(self, other: _Reading) -> bool:
        """Return whether random chains moved as in another reading."""
        return (
            np.array_equal(self.results, other.results)
            and len(self.chances) == len(other.chances)
            and all(map(np.array_equal, self.chances, other.chances))
        )


class _Steps:
    """The steps of a sampler, as far as they have been followed and read.

    plain: whether they are given plain numbers of iterations, or such that note what is asked of
    them. largest: the largest number that steps may add and subtract.

    A field of the state is a block of the linear state s if it differs between random chains; other
    fields are shared by all. chooses: whether steps make random choices.
    """

    def __init__(self, sampler: ScriptedSampler, plain: bool, largest: float) -> None:
        self._sampler, self._plain, self._largest = sampler, plain, largest
        self._begin()
        state = self._state = self._first[1]
        few = sampler.init(Script(2))[0] if len(state) > 1 else state
        self._of_chains = {
            name
            for name in state._fields
            if getattr(state, name).shape[:1] == (len(SIZES),)
            and (name == "x" or getattr(few, name).shape[:1] == (2,))
        }
        self._blocks, self.chooses = ["x"], False
        self._shared = [self._read_shared(state, learning=True)]  # of iterations 0, 1, ...
        self._questions_cycle: Cycle | None = ALWAYS
        self._shared_cycle: Cycle | None = None
        self._readings: list[_Reading] = []
        due = 1
        while len(self._shared) <= due:
            self._follow(learning=True)
            begin, period = self._questions_cycle or ALWAYS
            may_learn = self._shared[-1] or not self._questions_cycle
            due = max(due, begin + period, LEARNING if may_learn else 1)
            if due > MOST_FOLLOWED:
                self._questions_cycle, due = None, LEARNING
        self._blocks = [name for name in state._fields if name in self._blocks]
        for name in self._blocks:
            if getattr(state, name).shape != state.x.shape:
                raise UnreadableStep(f"{name} of its state is no vector of each agent")
            for shared in self._shared:
                shared.pop(name, None)

    def _begin(self) -> None:
        """Start the sampler at random chains."""
        script = Script(len(SIZES))
        self._first = script, *self._sampler.init(script)

    def on(self, sampler: ScriptedSampler, largest: float) -> _Steps | None:
        """Return the steps of another sampler or on another problem, without following them again.

        None where chains share fields of the state, whose values may depend on the problem, or
        where the first step asks what these steps do not ask.
        """
        self.find_cycle()
        if any(self._shared):
            return None
        other = copy(self)
        other._sampler, other._largest = sampler, largest
        other._readings = []
        other._begin()
        *_, questions = other._advance(other._first[1], 0, Script(len(SIZES)))
        known = self._questions_cycle
        asked = join_cycles([known, *(question.cycle for question in questions)])
        return other if asked == known else None

    def find_cycle(self) -> Cycle | None:
        """Return from which iteration on steps repeat, and after how many; None: not known."""
        while (
            self._questions_cycle and not self._shared_cycle and len(self._shared) < MOST_FOLLOWED
        ):
            self._follow()
        return join_cycles([self._questions_cycle, self._shared_cycle])

    def read_start(self) -> Start:
        """Read the affine map from the initial positions to the state."""

        def begin(script: Script) -> np.ndarray:
            """Return the initial state's blocks and the vectors that neighbors know."""
            return self._pack(*self._sampler.init(script))

        probe, *begun = self._first
        results = self._pack(*begun)
        size, _, errors, *_ = probe.counts
        if probe.chances or errors:
            raise UnreadableStep("it starts by chance")
        whole = size * len(self._blocks)
        fit = _fit_affine_map(begin, probe, results, self._largest)
        matrix, normals = fit.parts["state"][0], fit.parts["normals"][0]
        noise = normals[:whole] @ normals[:whole].T
        if normals[whole:].any():
            raise UnreadableStep(LOST + "what neighbors know at first is random")
        heard = (matrix[whole:], fit.offset[0, whole:]) if self._sampler.loses else None
        return Start(matrix[:whole], fit.offset[0, :whole], noise, heard)

    def read(self, k: int) -> StepMaps:
        """Return the step of iteration k as matrices, which are kept for other iterations."""
        shared = self._find_shared(k)
        for reading in self._readings:
            if reading.is_step_of(k, shared):
                return reading.maps
        new = self._read_new(k, shared)
        for reading in self._readings:
            if new.equals(reading):
                new = new._replace(maps=reading.maps)
                break
        most = READINGS if self._questions_cycle else 1  # where steps never repeat, but by chance
        self._readings = [new, *self._readings[: most - 1]]
        return new.maps

    def _read_new(self, k: int, shared: Shared) -> _Reading:
        """Read step k as matrices. Random chains must move as they do without others at plain k."""
        probe, questions = Script(len(SIZES)), list[IterationQuestion]()
        after, results, _ = self._take(k, shared, probe, plain=True)

        def call(script: Script) -> np.ndarray:
            """Return the step's results, and note its questions."""
            after_many, results, asked = self._take(k, shared, script)
            if not _are_equal(after_many, after):
                raise UnreadableStep(COUPLED)
            questions.extend(asked)
            return results

        fit = _fit_affine_map(call, probe, results, self._largest)
        return _Reading(shared, questions, results, probe.chances, self._maps_of(fit, probe.draws))

    def _maps_of(self, fit: _Fit, draws: list[int]) -> StepMaps:
        """Return the maps of the states and of the sent vectors that were fitted to a step.

        draws: how many normal numbers of a chain each draw took.
        """
        matrix, normals, errors, differences, memory = (fit.parts[name] for name in SOURCES)
        size, offset, gain = matrix.shape[2], fit.offset, None
        if self._sampler.errs:
            gain = errors[:, :size]
            if not gain.shape[2]:  # a step without a gradient
                gain = np.zeros((len(gain), size, self._state.x[0].size))
        noise = normals[:, :size] @ normals[:, :size].swapaxes(1, 2)
        choices = Choices(fit.probability, matrix[:, :size], offset[:, :size], noise, gain)
        update = Affine(
            choices.matrix[0], choices.offset[0], noise[0], None if gain is None else gain[0]
        )
        kicks = np.split(normals[0, :size], np.cumsum(draws, dtype=int), axis=1)[:-1]
        if not self._sampler.loses:
            return StepMaps(choices, update, None, kicks)
        if len(fit.probability) > 1:
            raise UnreadableStep(LOST + "it draws more than noise")
        if differences[0, size:].any():
            raise UnreadableStep(LOST + "what it sends depends on what it hears in the same step")
        sent = matrix[0, size:], offset[0, size:]
        loss_effect = LossEffect(differences[0, :size], *sent, normals[0], memory[0], errors[0])
        return StepMaps(choices, update, loss_effect, kicks)

    def _take(
        self, k: int, shared: Shared, script: Script, plain: bool = False
    ) -> tuple[Shared, np.ndarray, list[IterationQuestion]]:
        """Take step k from a script's state with given shared fields.

        plain: whether k is handed over as a plain number. Returns the next shared fields, the
        results (``_pack``), and what the step asked of k.
        """
        shape = len(self._blocks), script.chains, *self._state.x.shape[1:]
        numbers = script.take("state", len(self._blocks) * self._state.x[0].size)
        blocks = numbers.reshape(script.chains, len(self._blocks), -1).swapaxes(0, 1).reshape(shape)
        fields = dict(zip(self._blocks, blocks, strict=True))
        for name, part in shared.items():
            wide = name in self._of_chains
            fields[name] = np.broadcast_to(part, (script.chains, *part.shape[1:])) if wide else part
        state = type(self._state)(**fields, **self._sampler.unused)
        after, network, questions = self._advance(state, k, script, plain)
        return self._read_shared(after), self._pack(after, network), questions

    def _advance(
        self, state: Any, k: int, script: Script, plain: bool = False
    ) -> tuple[Any, ScriptedNetwork, list[IterationQuestion]]:
        """Take step k from a state; return the next, its network, and what was asked of k."""
        questions: list[IterationQuestion] = []
        number: Any = Iteration(k, questions)
        if plain or self._plain:
            number, questions = k, [make_number_question(k)]
        return *self._sampler.step(state, number, script), questions

    def _pack(self, state: Any, network: ScriptedNetwork) -> np.ndarray:
        """Return the state's blocks and the sent vectors side by side, (chains, entries)."""
        parts = [getattr(state, name).reshape(len(state.x), -1) for name in self._blocks]
        return np.concatenate([*parts, *network.vectors()], axis=1)

    def _follow(self, learning: bool = False) -> None:
        """Take the next step of random chains, and note its questions and the shared fields.

        learning: whether fields that differ between chains may become blocks of the state.
        """
        k, script, before = len(self._shared), Script(len(SIZES)), self._state
        self._state, _, questions = self._advance(before, k - 1, script)
        if k == 1 and not self._plain:
            given, *_ = self._advance(before, k - 1, Script(len(SIZES)), plain=True)
            if not np.array_equal(given.x, self._state.x, equal_nan=True):
                raise UnreadableStep(COUPLED)  # or it tells the type of k
        self.chooses |= bool(script.chances)
        asked = (question.cycle for question in questions)
        self._questions_cycle = join_cycles([self._questions_cycle, *asked])
        shared, last = self._read_shared(self._state, learning), self._shared[-1]
        self._shared.append(last if _are_equal(shared, last) else shared)
        if self._questions_cycle and not self._shared_cycle:
            begin, period = self._questions_cycle
            if k - period >= begin and _are_equal(shared, self._shared[k - period]):
                self._shared_cycle = k - period, period

    def _read_shared(self, state: Any, learning: bool = False) -> Shared:
        """Return the values of the fields that all chains share, of one chain where each has some.

        learning: whether fields that differ between chains may become blocks of the state.
        """
        shared = {}
        for name, part in state._asdict().items():
            if name in self._blocks or name in self._sampler.unused:
                continue
            if name in self._of_chains and (part != part[:1]).any():
                if not learning:
                    raise UnreadableStep(f"{name} of its state depends on chance later on")
                self._blocks.append(name)
            else:
                shared[name] = part[:1] if name in self._of_chains else part
        return shared

    def _find_shared(self, k: int) -> Shared:
        """Return the shared fields of iteration k, the same object while they do not change."""
        if not self._shared[0]:
            return self._shared[0]
        while len(self._shared) <= k and not self._shared_cycle:
            if len(self._shared) > MOST_CHANGES:
                raise UnreadableStep(
                    f"its state, or what it asks of k, still changes after {MOST_CHANGES} steps"
                )
            self._follow()
        if k >= len(self._shared):
            assert self._shared_cycle
            begin, period = self._shared_cycle
            k = begin + (k - begin) % period
        return self._shared[k]


def _are_equal(some: Shared, others: Shared) -> bool:
    """Return whether arrays by name are those of the same names, up to rounding."""
    return all(_is_equal(part, others[name]) for name, part in some.items())


def _is_equal(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays are equal, numbers with a point up to rounding."""
    if one.dtype.kind not in "fc" or one.shape != other.shape:
        return np.array_equal(one, other)
    return np.allclose(one, other, rtol=1e-15, atol=0)


class _Fit(NamedTuple):
    """An affine map that was fitted to a call, for each outcome of its random choices.

    probability: of the outcomes, (outcomes,). parts: matrices by the source of the numbers that
    they map to results, (outcomes, results, numbers). offset: (outcomes, results).
    """

    probability: np.ndarray
    parts: dict[str, np.ndarray]
    offset: np.ndarray


def _fit_affine_map(
    call: Callable[[Script], np.ndarray], probe: Script, results: np.ndarray, largest: float
) -> _Fit:
    """Find the affine map that a function of scripts is, for each outcome of its random choices.

    call: the function, which returns results (chains, entries). probe: the script of random chains
    from which it took T numbers a chain, and made choices. results: what it returned for them.
    largest: the largest number that may have been added and subtracted.
    Raises ``UnreadableStep`` if the random chains' results contradict the map, or differ among
    other chains.
    """
    inputs, chances = probe.inputs(), probe.chances
    total, few = inputs.shape[1], len(inputs)
    ends = np.cumsum(probe.counts)[:-1]
    chosen = np.array(probe.outcomes, dtype=int).reshape(-1, few).T
    outcomes = np.array([*product(*(range(len(p)) for p in chances))], dtype=int)
    # Units as large as what is added, from which rounding would otherwise come.
    added = max(1.0, largest, np.abs(results[0]).max(initial=0.0))
    unit = 2.0 ** np.ceil(np.log2(added))
    units = np.concatenate([np.zeros((1, total)), unit * np.eye(total)])
    matrix = np.empty((len(outcomes), results.shape[1], total))
    offset = np.empty((len(outcomes), results.shape[1]))
    among = np.empty_like(results)
    several = max(1, MOST_NUMBERS // max(1, len(units) * results.shape[1]))
    for first in range(0, len(outcomes), several):
        some = outcomes[first : first + several]
        rows = np.concatenate([inputs[ORDER], np.tile(units, (len(some), 1))])
        script = Script(
            len(rows),
            dict(zip(SOURCES, np.split(rows, ends, axis=1), strict=True)),
            np.concatenate([chosen[ORDER], np.repeat(some, len(units), axis=0)]),
        )
        outputs = call(script)
        if script.counts != probe.counts or [*map(len, script.chances)] != [*map(len, chances)]:
            raise UnreadableStep(UNEQUAL)
        among[ORDER], outputs = outputs[:few], outputs[few:].reshape(len(some), len(units), -1)
        offset[first : first + several] = outputs[:, 0]
        moved = (outputs[:, 1:] - outputs[:, :1]) / unit
        matrix[first : first + several] = moved.swapaxes(1, 2)
    for outcome, linear, constant in zip(outcomes, matrix, offset, strict=True):
        case = (chosen == outcome).all(axis=1)
        taken, got = inputs[case], among[case]
        size = (np.abs(taken) @ np.abs(linear.T) + np.abs(constant)).max(axis=1, initial=0.0)
        rounding = ROUNDING * size[:, None] + LEAST * added
        if not (np.abs(taken @ linear.T + constant - got) <= rounding).all():
            raise UnreadableStep("its step is not affine")
        if not (np.abs(results[case] - got) <= rounding).all():
            raise UnreadableStep(COUPLED)
    probability = np.array([np.prod(p) for p in product(*chances)])
    parts = dict(zip(SOURCES, np.split(matrix, ends, axis=2), strict=True))
    return _Fit(probability, parts, offset)
