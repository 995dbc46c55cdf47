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
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord.options import HUGEST, TINIEST, build, param

LAST = 10**9  # no run has more iterations


@dataclass(frozen=True)
class Schedule:
    """The schedule a / (b + c k)^exponent; by default the constant a."""

    a: float
    b: float = 1.0
    c: float = 0.0
    exponent: float = 1.0

    @classmethod
    def parse(cls, value: Any, where: str) -> Schedule:
        """Build a schedule from its YAML form; ``where`` is the file and key for messages.

        Raises
        ------
        ConcordError
            If the form or kind is unknown, or a number is not positive.
        """
        if isinstance(value, Mapping):
            options = dict(value)
            kind = options.pop("kind", None)
            if kind is None:
                raise ConcordError(
                    f"{where}: the key 'kind' is missing; add one of {', '.join(_KINDS)}"
                )
            if not isinstance(kind, str) or kind not in _KINDS:
                raise ConcordError(
                    f"{where}.kind: {short(kind)} is not a schedule; {nearest(kind, _KINDS)}"
                )
            return build(_KINDS[kind], options, where).schedule()._checked(where)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            remedy = "give a positive number, or a mapping with a kind: " + ", ".join(_KINDS)
            if isinstance(value, str) and "e" in value.lower():
                remedy += " (YAML reads 1e-4 as text: write 1.0e-4)"
            raise ConcordError(f"{where}: {short(value)} is not a schedule; {remedy}")
        if not 0 < value <= sys.float_info.max:
            raise ConcordError(f"{where}: {short(value)} is not positive; give a positive number")
        return cls(float(value))._checked(where)

    def _checked(self, where: str) -> Schedule:
        """Return the schedule if it is a positive number at the first step and all others."""
        for k in (0, LAST):  # it never rises
            try:
                value = self(k)
            except (OverflowError, ZeroDivisionError):
                value = math.nan
            if not TINIEST <= value <= HUGEST:
                raise ConcordError(
                    f"{where}: its value at step {k} is no number from {TINIEST:g} to {HUGEST:g}; "
                    "give smaller exponents, or numbers nearer to 1"
                )
        return self

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


@dataclass(frozen=True)
class _Constant:
    value: float = param("the value of every step", above=0)

    def schedule(self) -> Schedule:
        return Schedule(self.value)


@dataclass(frozen=True)
class _Harmonic:
    a: float = param("the value of the first step", above=0)
    c: float = param("rate of decay per iteration", minimum=0)

    def schedule(self) -> Schedule:
        return Schedule(self.a, c=self.c)


@dataclass(frozen=True)
class _Power:
    a: float = param("numerator", above=0)
    b: float = param("offset added to the iteration", above=0)
    exponent: float = param("exponent of the decay", minimum=0)

    def schedule(self) -> Schedule:
        return Schedule(self.a, b=self.b, c=1.0, exponent=self.exponent)


_KINDS: dict[str, type[_Constant] | type[_Harmonic] | type[_Power]] = {
    "constant": _Constant,
    "harmonic": _Harmonic,
    "power": _Power,
}
