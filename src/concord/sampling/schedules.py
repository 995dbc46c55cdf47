r"""Schedules: positive step sizes and coefficients as functions of the iteration.

.. math:: s_k = \frac{a}{(b + c k)^p}, \qquad k = 0, 1, \dots

covers every schedule of the papers. In YAML:

- constant, :math:`a`: a number, or ``{kind: constant, value: 0.005}``;
- harmonic, :math:`a / (1 + c k)`: ``{kind: harmonic, a: 0.01, c: 0.1}``;
- power, :math:`a / (b + k)^p`: ``{kind: power, a: 0.48, b: 230, exponent: 0.05}``.

Sources: gurbuzbalaban2021, Figures 7 and 8 (harmonic); parayil2020, supplement S5, and
tzikas2024, section 6 (power).
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from concord.errors import ConcordError
from concord.options import HUGEST, TINIEST, Kind, NonNegative, Positive, build

LAST = 10**9  # no run has more iterations


class Constant(Kind):
    """The same value at every step."""

    value: Annotated[Positive, "the value of every step"]

    def _schedule(self) -> Schedule:
        return Schedule(self.value)


class Harmonic(Kind):
    """A value that falls as one over the iteration."""

    a: Annotated[Positive, "the value of the first step"]
    c: Annotated[NonNegative, "rate of decay per iteration"]

    def _schedule(self) -> Schedule:
        return Schedule(self.a, c=self.c)


class Power(Kind):
    """A value that falls as a power of the iteration."""

    a: Annotated[Positive, "numerator"]
    b: Annotated[Positive, "offset added to the iteration"]
    exponent: Annotated[NonNegative, "exponent of the decay"]

    def _schedule(self) -> Schedule:
        return Schedule(self.a, b=self.b, c=1.0, exponent=self.exponent)


class Schedule:
    """The schedule a / (b + c k)^exponent; by default the constant a."""

    __slots__ = ("a", "b", "c", "exponent")
    Form = Positive | Constant | Harmonic | Power  # what a file holds

    def __init__(self, a: float, b: float = 1.0, c: float = 0.0, exponent: float = 1.0) -> None:
        self.a, self.b, self.c, self.exponent = map(float, (a, b, c, exponent))

    def __eq__(self, other: object) -> bool:
        """Tell whether it is the same formula."""
        return isinstance(other, Schedule) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """Return what equal schedules share."""
        return hash(repr(self))

    def __repr__(self) -> str:
        """Return the call that makes it."""
        return f"Schedule({self.a!r}, {self.b!r}, {self.c!r}, {self.exponent!r})"

    @classmethod
    def parse(cls, value: Any, where: str) -> Schedule:
        """Build a schedule from its YAML form; ``where`` is the file and key for messages.

        Raises
        ------
        ConcordError
            If the form or kind is unknown, or a number is not positive.
        """
        form = build(cls.Form, value, where)
        schedule = cls(form) if isinstance(form, float) else form._schedule()
        for k in (0, LAST):  # it never rises
            try:
                value = schedule(k)
            except (OverflowError, ZeroDivisionError):
                value = math.nan
            if not TINIEST <= value <= HUGEST:
                text = (
                    f"its value at step {k} is no number from {TINIEST:g} to {HUGEST:g}; "
                    "give smaller exponents, or numbers nearer to 1"
                )
                raise ConcordError(f"{where}: {text}" if where else text)
        return schedule

    def __call__(self, k: int) -> float:
        """Return the value used by step k; the first step has k = 0."""
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

    def plain(self) -> float | dict[str, Any]:
        """Return the YAML form that ``parse`` reads, the same for the same schedule."""
        if self.c == 0:
            return self.initial
        if (self.b, self.exponent) == (1, 1):
            return {"kind": "harmonic", "a": self.a, "c": self.c}
        return {"kind": "power", "a": self.a, "b": self.b, "exponent": self.exponent}

    def __str__(self) -> str:
        """Return the formula for captions, such as ``0.01/(1+0.1k)``."""
        if self.constant:
            return _short(self.initial)
        slope = "k" if self.c == 1 else f"{_short(self.c)}k"
        power = "" if self.exponent == 1 else f"^{_short(self.exponent)}"
        return f"{_short(self.a)}/({_short(self.b)}+{slope}){power}"


def _short(number: float) -> str:
    return f"{number:.12g}"
