"""One standard deviation of a random number to either side of its mean."""

from typing import ClassVar

from concord_studies.layers import sd


class Params(sd.Params):
    """One standard deviation of the number itself, and not over chains."""

    says: ClassVar[str] = "± 1 standard deviation"
