"""The same value at every step; a number stands for it."""

from typing import Annotated

from concord.options import Options, Positive
from concord.sampling.schedules import Schedule


class Params(Options):
    """The value of every step."""

    value: Annotated[Positive, "the value of every step"]


def schedule(params: Params) -> Schedule:
    """Return the step size as a function of iteration k, the same value for all k."""
    return Schedule(params.value)
