r"""Schedules: positive step sizes and coefficients as functions of the iteration.

.. math:: s_k = \frac{a}{(b + c k)^p}, \qquad k = 0, 1, \dots

covers every schedule of the papers. A number is a constant one; other kinds are modules of this
folder (``contracts.ScheduleKind``), which may return any function of k instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from concord import kinds
from concord.errors import ConcordError, short
from concord.mistakes import parse_number
from concord.options import Chosen, Positive, build
from concord.values import HUGEST, TINIEST

LAST = 10**9  # no run has more iterations

Step = TypeVar("Step", float, np.ndarray)  # one, or several, (steps,)


class Schedule:
    """The schedule a / (b + c k)^exponent; by default the constant a."""

    __slots__ = ("a", "b", "c", "exponent")

    def __init__(self, a: float, b: float = 1.0, c: float = 0.0, exponent: float = 1.0) -> None:
        """Set the parameters of a / (b + c k)^exponent."""
        self.a, self.b, self.c, self.exponent = map(float, (a, b, c, exponent))

    def __eq__(self, other: object) -> bool:
        """Return whether another schedule has the same a, b, c and exponent."""
        return isinstance(other, Schedule) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """Return a hash of the formula, the same for equal schedules."""
        return hash(repr(self))

    def __repr__(self) -> str:
        """Return the Python call that makes the schedule."""
        return f"Schedule({self.a!r}, {self.b!r}, {self.c!r}, {self.exponent!r})"

    @classmethod
    def parse(cls, value: object, where: str) -> Schedule:
        """Build a schedule from its YAML form; ``where`` is the file and key for messages.

        A ConcordError if the form or kind is unknown, or a number is not positive.
        """
        schedule: Schedule
        at = f"{where}: " if where else ""
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            schedule = cls(build(Positive, value, where))
        elif isinstance(value, Mapping):
            form = _ScheduleChoice.parse(dict(value), where)
            function = form.module.schedule(form.params)
            schedule = (
                function if isinstance(function, Schedule) else FunctionSchedule(form, function)
            )
        else:
            forms = ", ".join(kinds.names(_ScheduleChoice.room))
            number = parse_number(value)
            wish = "does not fit; give a number"
            if number is not None:
                wish = f"is a text; give the number {number!r}"
            raise ConcordError(f"{at}{short(value)} {wish}, or a mapping with a kind: {forms}")
        for k in (0, LAST):  # those of the papers never rise
            try:
                step = schedule(k)
            except (OverflowError, ZeroDivisionError):
                step = math.nan
            if not TINIEST <= step <= HUGEST:
                raise ConcordError(
                    f"{at}its value at step {k} is no number from {TINIEST:g} to {HUGEST:g}; "
                    "give smaller exponents, or numbers nearer to 1"
                )
        return schedule

    def __call__(self, k: Step) -> Step:
        """Return a / (b + c k)^exponent at step k, or at several, (steps,); the first has k = 0."""
        return self.a / (self.b + self.c * k) ** self.exponent

    @property
    def constant(self) -> bool:
        """Whether all steps use the same value."""
        return self.c == 0 or self.exponent == 0

    @property
    def decay(self) -> float:
        """The exponent with which the values fall as k grows; 0 of a constant."""
        return 0.0 if self.constant else self.exponent

    @property
    def initial(self) -> float:
        """The value of the first step."""
        return self(0)

    @property
    def kind(self) -> str:
        """The kind of the schedule in its YAML form."""
        form = self.plain()
        return str(form["kind"]) if isinstance(form, dict) else "constant"

    def plain(self) -> float | dict[str, object]:
        """Return the YAML form that ``parse`` reads; equal schedules have equal forms."""
        if self.c == 0:
            return self.initial
        if (self.b, self.exponent) == (1, 1):
            return {"kind": "harmonic", "a": self.a, "c": self.c}
        return {"kind": "power", "a": self.a, "b": self.b, "exponent": self.exponent}

    def __str__(self) -> str:
        """Return the formula for captions, such as ``0.01/(1+0.1k)``."""
        if self.constant:
            return _format_number(self.initial)
        slope = "k" if self.c == 1 else f"{_format_number(self.c)}k"
        power = "" if self.exponent == 1 else f"^{_format_number(self.exponent)}"
        return f"{_format_number(self.a)}/({_format_number(self.b)}+{slope}){power}"


class _ScheduleChoice(Chosen):
    """A kind of schedule with its options, as a file states it."""

    room = "schedules"


class FunctionSchedule(Schedule):
    """A schedule of another form: any function of k that a plug-in returns."""

    __slots__ = ("form", "function")
    constant, decay = False, math.nan  # nobody knows

    def __init__(self, form: Chosen, function: Callable[[float], float]) -> None:
        """Set the YAML form, and the function of k."""
        super().__init__(math.nan)
        self.form, self.function = form, function

    def __call__(self, k: Step) -> Step:
        """Return the function's value at step k, or at several steps, (steps,)."""
        if isinstance(k, np.ndarray):
            return np.array([float(self.function(one)) for one in k.tolist()])
        return float(self.function(k))

    def __repr__(self) -> str:
        """Return a text that is the same for equal schedules."""
        return f"FunctionSchedule({self.form!r})"

    def plain(self) -> dict[str, object]:
        """Return the YAML form that ``parse`` reads."""
        return self.form.plain()

    def __str__(self) -> str:
        """Return kind and options as text, for captions."""
        options = ", ".join(f"{k}={v}" for k, v in self.plain().items() if k != "kind")
        return f"{self.form.kind}({options})"


def _format_number(number: float) -> str:
    """Return a number as text with at most twelve digits."""
    return f"{number:.12g}"
