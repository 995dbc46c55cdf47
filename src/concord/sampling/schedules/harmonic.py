"""A value that falls as one over the iteration: a / (1 + c k).

Source: gurbuzbalaban2021, Figures 7 and 8.
"""

from typing import Annotated

from concord.options import NonNegative, Options, Positive
from concord.sampling.schedules import Schedule


class Params(Options):
    """First value a and decay rate c of a / (1 + c k)."""

    a: Annotated[Positive, "the value of the first step"]
    c: Annotated[NonNegative, "rate of decay per iteration"]


def schedule(params: Params) -> Schedule:
    """Return the step size as a function of iteration k, a / (1 + c k)."""
    return Schedule(params.a, c=params.c)
