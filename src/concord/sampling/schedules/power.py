"""A value that falls as a power of the iteration: a / (b + k)^exponent.

The value of the first step, ``start``, may stand in the place of ``a``.

Source: parayil2020, supplement S5; tzikas2024, section 6.
"""

from typing import Annotated

from concord.options import NonNegative, Options, Positive
from concord.sampling.schedules import Schedule


class Params(Options, kw_only=True):
    """Numerator a, offset b and exponent of a / (b + k)^exponent."""

    a: Annotated[Positive | None, "numerator; none: so that the first step is start"] = None
    start: Annotated[Positive | None, "value of the first step, in the place of a"] = None
    b: Annotated[Positive, "offset added to the iteration"]
    exponent: Annotated[NonNegative, "exponent of the decay"]

    def __post_init__(self) -> None:
        """Refuse both a numerator and a first value, or neither."""
        if (self.a is None) == (self.start is None):
            both = "both start and a; leave one out, or write a: null"
            raise ValueError(
                f"$: it has {'neither a nor start; add one' if self.a is None else both}"
            )


def schedule(params: Params) -> Schedule:
    """Return the step size as a function of iteration k, a / (b + k)^exponent."""
    a = params.a
    if a is None:
        assert params.start is not None  # as has been checked
        # Beyond twelve digits eigenvalues, of which it may be a part, differ between processors.
        a = float(f"{params.start * params.b**params.exponent:.12g}")
    return Schedule(a, b=params.b, c=1.0, exponent=params.exponent)
