"""Tracing integers: they record how a step uses the iteration's number, to find when steps repeat.

A step that is given an ``Iteration`` in place of k computes with it as with a number: sums,
multiples and remainders are iterations again. Each comparison, or conversion to a plain number, is
recorded as an ``IterationQuestion`` with its answer. Iterations with the same answers have the same
step, since nothing else tells them apart. Comparisons of k with a number have one answer from some
iteration on, and questions about a remainder repeat after the divisor, so that the cycle of most
steps is known.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

# From which iteration on something repeats, and after how many iterations.
Cycle = tuple[int, int]
Operator = Callable[[Any, Any], Any]
ALWAYS: Cycle = (0, 1)  # the cycle of what never changes
MOST_QUESTIONS = 64  # of a step; one that asks more, as a loop up to k, is given plain numbers
# Special methods: those of whole numbers that yield whole numbers, and others.
WHOLE = ("add", "sub", "mul", "floordiv", "mod", "lshift", "rshift", "and", "or", "xor")
COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")
CONVERSIONS = ("int", "float", "index", "hash", "str", "repr", "format", "abs", "invert")
ROUNDINGS = ("round", "trunc", "floor", "ceil")


class IterationQuestion(NamedTuple):
    """A recorded question about the number of an iteration, with the answer that a step got.

    ask: function of an iteration that returns the answer there. answer: the step's.
    cycle: when answers repeat; None: not known, or never.
    """

    ask: Callable[[int], object]
    answer: object
    cycle: Cycle | None

    def has_same_answer(self, k: int) -> bool:
        """Return whether iteration k has the answer that the step got where it asked."""
        return bool(self.ask(k) == self.answer)


def make_number_question(k: int) -> IterationQuestion:
    """Return the question for the number k itself: no other iteration has the same answer."""
    return IterationQuestion(lambda number: number, k, None)


def join_cycles(cycles: Iterable[Cycle | None]) -> Cycle | None:
    """Return the cycle in which several cycles repeat together; None if one of them is None."""
    begin, period = ALWAYS
    for cycle in cycles:
        if cycle is None:
            return None
        begin, period = max(begin, cycle[0]), math.lcm(period, cycle[1])
    return begin, period


def find_cycle(function: Callable[[Any], object]) -> Cycle | None:
    """Find the cycle in which a function of the iteration repeats; None where it is not known.

    The function is called with an ``Iteration`` for k = 0, 1, ... until it repeats.
    """
    cycle: Cycle | None = ALWAYS
    k = 0
    while cycle is not None and k < sum(cycle):
        questions: list[IterationQuestion] = []
        try:
            function(Iteration(k, questions))
        except OverflowError:  # too many questions
            return None
        cycle, k = join_cycles([cycle, *(question.cycle for question in questions)]), k + 1
    return cycle


class Iteration:
    """A tracing integer: a function of the iteration's number k that records its uses.

    Every comparison, or value that a step takes from it, is an ``IterationQuestion``, from which
    the period of the step follows.

    k: the present iteration. questions: the list to which questions are added. value: the function
    of k. slope: (a, c) if it is a k + c, else None. cycle: when its values repeat; None: unknown.
    """

    # ``isinstance(k, int)`` holds as it does in a run.
    __class__ = property(lambda self: int)

    def __init__(
        self,
        k: int,
        questions: list[IterationQuestion],
        value: Callable[[int], int] = lambda k: k,
        slope: tuple[int, int] | None = (1, 0),
        cycle: Cycle | None = None,
    ) -> None:
        self._k, self._questions = k, questions
        self._value, self._slope, self._cycle = value, slope, cycle

    def _ask(self, ask: Callable[[int], object], cycle: Cycle | None) -> Any:
        """Record a question, and return its answer at this iteration."""
        if len(self._questions) == MOST_QUESTIONS:
            raise OverflowError(f"a step asks more than {MOST_QUESTIONS} questions about k")
        self._questions.append(IterationQuestion(ask, ask(self._k), cycle))
        return self._questions[-1].answer

    def _ask_number(self) -> int:
        """Record a question about the number itself, and return the number."""
        number: int = self._ask(self._value, self._cycle)
        return number

    def _apply(self, function: Operator, other: Any, swapped: bool) -> Any:
        """Apply a binary operator to this number and another operand, which comes first if swapped.

        The result is a plain number where the other is no whole number, and where it is the same
        at all iterations.
        """
        is_whole = isinstance(other, (Iteration, int, np.integer))
        if not is_whole or function in (operator.truediv, operator.pow):
            if type(other) is float and other == 0 and function is operator.mul:
                return other  # the slope of a constant schedule
            number = self._ask_number()
            return function(other, number) if swapped else function(number, other)

        left, slope, cycle = self._value, None, self._cycle
        if isinstance(other, Iteration):
            right, cycle = other._value, join_cycles([self._cycle, other._cycle])
        else:
            plain = int(other)
            right = lambda k: plain  # noqa: E731
        if swapped:
            left, right = right, left

        def compute(k: int) -> int:
            """Return the result of the operator at iteration k."""
            number: int = function(left(k), right(k))
            return number

        result = compute(self._k)
        if not isinstance(other, Iteration) and self._slope:
            if function in (operator.add, operator.sub, operator.mul):
                slope = compute(1) - compute(0), compute(0)
            elif function is operator.mod and not swapped:
                cycle = 0, abs(int(other))
        if cycle == ALWAYS or (slope and not slope[0]):
            return result
        return Iteration(self._k, self._questions, compute, slope, cycle)

    def _compare(self, function: Operator, other: Any) -> Any:
        """Record the comparison with another operand as a question, and return its answer."""
        if isinstance(other, Iteration):
            both = join_cycles([self._cycle, other._cycle])
            return self._ask(lambda k: function(self._value(k), other._value(k)), both)
        if isinstance(other, np.ndarray):
            return function(self._ask_number(), other)
        if isinstance(other, np.generic):
            other = other.item()  # of few bits, it would overflow
        cycle = self._cycle
        if self._slope and isinstance(other, (int, float)) and math.isfinite(other):
            slope, offset = self._slope
            cycle = max(0, int((other - offset) // slope) + 1), 1
        return self._ask(lambda k: function(self._value(k), other), cycle)

    def __array__(self, dtype: DTypeLike | None = None, copy: object = None) -> np.ndarray:
        """Return the number as an array without axes."""
        return np.array(self._ask_number(), dtype)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: object, **options: object
    ) -> Any:
        """Apply a universal function of numpy to the number."""
        plain = [each._ask_number() if isinstance(each, Iteration) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __reduce__(self) -> tuple[type, tuple[int]]:
        """Have copies of the number be plain integers."""
        return int, (self._ask_number(),)

    def __getattr__(self, name: str) -> Any:
        """Return another attribute of whole numbers."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._ask_number(), name)


def _add_method(name: str, method: Callable[..., object]) -> None:
    """Add a special method to ``Iteration``."""
    setattr(Iteration, f"__{name}__", method)


for _name in (*WHOLE, "truediv", "pow"):
    _of = getattr(operator, f"__{_name}__")
    _add_method(_name, lambda self, other, _of=_of: self._apply(_of, other, False))
    _add_method(f"r{_name}", lambda self, other, _of=_of: self._apply(_of, other, True))
for _name in COMPARISONS:
    _of = getattr(operator, _name)
    _add_method(_name, lambda self, other, _of=_of: self._compare(_of, other))
for _name in (*CONVERSIONS, *ROUNDINGS):
    _of = getattr(int, f"__{_name}__")
    _add_method(_name, lambda self, *more, _of=_of: _of(self._ask_number(), *more))
_add_method("bool", lambda self: bool(self != 0))
_add_method("neg", lambda self: self * -1)
_add_method("pos", lambda self: self)
_add_method("divmod", lambda self, other: (self // other, self % other))
_add_method("complex", lambda self: complex(self._ask_number()))
