r"""Neal's funnel, with adjustable heterogeneity between agents; exact draws.

.. math::
    v \sim N(0, s^2), \qquad x_j \mid v \sim N(0, e^v), \quad j = 2, \dots, d, \qquad
    f(v, x) = \frac{v^2}{2 s^2} + \frac{d - 1}{2} v + \frac{e^{-v}}{2} \sum_j x_j^2

with f_i = f/N and the tilts of ``concord.problems._heterogeneity``, which leave the posterior where
it is. Source: R. M. Neal, Annals of Statistics 31 (2003) 705-767, section 8, where s = 3 and d =
10. The curvature in x_j is e^-v: no step size suits all of it.

Examples
--------
>>> import concord
>>> concord.problems.funnel(agents=4, dim=3, sd=1.0).reference.mean
array([0., 0., 0.])
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from msgspec import Meta

from concord.contracts import DataSets, Stream
from concord.laws.reference_laws import AnalyticLaw
from concord.options import Positive
from concord.problems._heterogeneity import Heterogeneity, check_heterogeneity
from concord.sampling.partition import Partition
from concord_studies.problems._tabled import HeterogeneousProblem


class Params(Heterogeneity):
    """Options of the funnel, and of the heterogeneity of agents."""

    dim: Annotated[int, Meta(ge=2), "dimension d, that of v included"] = 2
    sd: Annotated[Positive, "standard deviation s of v, the logarithm of the others' variance"] = (
        1.0
    )


check = check_heterogeneity


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Funnel:
    """Build the funnel with randomly drawn tilts of the agents."""
    return Funnel(params, agents, stream("heterogeneity"))


def _draw(sd: float, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return independent draws of the posterior, (count, dim).

    sd: of the first coordinate, the log variance of the others.
    """
    draws = rng.standard_normal((count, dim))
    draws[:, 0] *= sd
    draws[:, 1:] *= np.exp(draws[:, :1] / 2)
    return draws


class Funnel(HeterogeneousProblem):
    """The funnel split over agents; ``reference`` is its exact posterior."""

    def __init__(self, params: Params, agents: int, rng: np.random.Generator) -> None:
        s, width = params.sd, params.dim - 1
        self._precision, self._half = s**-2, width / 2

        law = AnalyticLaw(
            mean=np.zeros(params.dim),
            cov=np.diag([s**2, *[np.exp(s**2 / 2)] * width]),
            third=np.zeros(params.dim),
            fourth=np.array([3 * s**4, *[3 * np.exp(2 * s**2)] * width]),
            draw=partial(_draw, s, params.dim),
        )
        super().__init__(law, agents, params, rng)

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Return f, minus the log density of the funnel, at x = (v, x_2, ..., x_d), (...)."""
        v = x[..., 0]
        squares = (x[..., 1:] ** 2).sum(axis=-1)
        return 0.5 * (self._precision * v**2 + np.exp(-v) * squares) + self._half * v

    def force(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of f at x, (..., dim)."""
        v, rest = x[..., :1], x[..., 1:]
        slopes = rest * np.exp(-v)
        first = self._precision * v + self._half - (rest * slopes).sum(axis=-1, keepdims=True) / 2
        return np.concatenate([first, slopes], axis=-1)
