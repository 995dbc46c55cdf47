"""A value that falls as a power of the iteration: a / (b + k)^exponent.

Source: parayil2020, supplement S5; tzikas2024, section 6.
"""

from typing import Annotated

from concord.options import NonNegative, Options, Positive
from concord.sampling.schedules import Schedule


class Params(Options):
    """Numerator a, offset b and exponent of a / (b + k)^exponent."""

    a: Annotated[Positive, "numerator"]
    b: Annotated[Positive, "offset added to the iteration"]
    exponent: Annotated[NonNegative, "exponent of the decay"]


def schedule(params: Params) -> Schedule:
    """Return the step size as a function of iteration k, a / (b + k)^exponent."""
    return Schedule(params.a, b=params.b, c=1.0, exponent=params.exponent)
