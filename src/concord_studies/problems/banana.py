r"""A bent Gaussian in two dimensions, with adjustable heterogeneity; exact draws.

.. math::
    x_1 \sim N(0, s^2), \qquad x_2 \mid x_1 \sim N(b (x_1^2 - s^2), 1), \qquad
    f(x) = \frac{x_1^2}{2 s^2} + \tfrac12 \bigl( x_2 - b (x_1^2 - s^2) \bigr)^2

with f_i = f/N and the tilts of ``concord.problems._heterogeneity``, which leave the posterior where
it is. Source: H. Haario, E. Saksman and J. Tamminen, Computational Statistics 14 (1999) 375-395,
where s = 10 and b = 0.03 or 0.1. Gradients grow like x^3.

Examples
--------
>>> import concord
>>> concord.problems.banana(agents=4, bend=0.5).reference.mean
array([0., 0.])
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np

from concord.contracts import DataSets, Stream
from concord.laws.reference_laws import AnalyticLaw
from concord.options import NonNegative, Positive
from concord.problems._heterogeneity import Heterogeneity, check_heterogeneity
from concord.sampling.partition import Partition
from concord_studies.problems._tabled import HeterogeneousProblem


class Params(Heterogeneity):
    """Options of the banana, and of the heterogeneity of agents."""

    sd: Annotated[Positive, "standard deviation s of x_1"] = 1.0
    bend: Annotated[NonNegative, "b; without it the banana is a Gaussian"] = 1.0


check = check_heterogeneity


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Banana:
    """Build the banana with randomly drawn tilts of the agents."""
    return Banana(params, agents, stream("heterogeneity"))


def _draw(sd: float, bend: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return independent draws of the posterior, (count, 2).

    sd: of the first coordinate. bend: how much the second follows its square.
    """
    first, second = rng.standard_normal((2, count))
    first *= sd
    return np.column_stack([first, second + bend * (first**2 - sd**2)])


class Banana(HeterogeneousProblem):
    """The banana split over agents; ``reference`` is its exact posterior."""

    def __init__(self, params: Params, agents: int, rng: np.random.Generator) -> None:
        s, b = params.sd, params.bend
        self._precision, self._bend, self._square = s**-2, b, s**2

        bent = (b * s**2) ** 2  # b (x_1^2 - s^2) has central moments 2, 8, 60 times its powers
        law = AnalyticLaw(
            mean=np.zeros(2),
            cov=np.diag([s**2, 1 + 2 * bent]),
            third=np.array([0, 8 * bent**1.5]),
            fourth=np.array([3 * s**4, 3 + 12 * bent + 60 * bent**2]),
            draw=partial(_draw, s, b),
        )
        super().__init__(law, agents, params, rng)

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Return f(x) of the module text, (...), for x (..., 2)."""
        first, second = x[..., 0], x[..., 1]
        off = second - self._bend * (first**2 - self._square)
        return 0.5 * (self._precision * first**2 + off**2)

    def force(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of f at x, (..., 2)."""
        first, second = x[..., 0], x[..., 1]
        off = second - self._bend * (first**2 - self._square)
        return np.stack([first * (self._precision - 2 * self._bend * off), off], axis=-1)
