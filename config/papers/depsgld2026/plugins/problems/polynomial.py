r"""A density on an interval by its polynomial potential; agents hold shares of it, or all of it.

.. math::
    f(x) = c_1 x + c_2 x^2 + \dots, \qquad \pi(x) \propto e^{-f(x)} \text{ on } [a, b]

with f_i = f/N (``share: split``) or f_i = f (``share: whole``, by which agents together sample the
N-th power of the density, as in depsgld2026's released code). The interval is the posterior's
alone: gradients do not see it, and a sampler needs a constraint of its own. A mini-batch's gradient
is exact but for an error, whose standard deviation is ``error_sd`` over the root of its size.

Source: Islam and Zhu, 2026, arXiv:2605.00723, from its authors' released code, where f is
x^2/2 + x^4/8 - x on [-1, 1]. ``reference`` is the posterior by quadrature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.laws.reference_laws import AnalyticLaw
from concord.libraries import special
from concord.options import NonNegative, Options
from concord.sampling.partition import Partition
from concord_studies.problems._tabled import TableProblem

SOURCE = (-1.0, 0.5, 0.0, 0.125)
CELLS = 20_000
REACH = 12.0  # standard deviations of the part off the interval
ERRORS = 1000  # values of an error, which are as likely: the normal law's quantiles


class Params(Options):
    """Options of the potential, the interval, and the agents' shares of the potential."""

    coefficients: Annotated[tuple[float, ...], "c_1, c_2, ... of the potential"] = SOURCE
    interval: Annotated[tuple[float, float], "[a, b]"] = (-1.0, 1.0)
    share: Annotated[Literal["split", "whole"], "agents hold f/N, or f"] = "split"
    error_sd: Annotated[NonNegative, "standard deviation of the error of one point's gradient"] = (
        0.0
    )


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for an empty interval."""
    a, b = params.interval
    if not a < b:
        raise ConcordError(f"interval: nothing lies between {a:g} and {b:g}; swap them")


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Polynomial:
    """Build the problem of the options; nothing is drawn."""
    return Polynomial(params, agents)


def _inverse(below: np.ndarray, edges: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the quantiles of a law at given levels, by interpolation.

    below: the probability below each edge of its cells, (edges,). levels: any shape in [0, 1].
    """
    return np.interp(levels, below, edges)


def _draw(
    inverse: Callable[[np.ndarray], np.ndarray], count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return independent draws, (count, 1), of the law whose quantile function is ``inverse``."""
    return inverse(rng.random(count))[:, None]


@dataclass(frozen=True, repr=False)
class OnLine(AnalyticLaw):
    """A law of one parameter with a quantile function."""

    inverse: Callable[[np.ndarray], np.ndarray]

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Return the quantiles at given levels in [0, 1], (levels, 1)."""
        return self.inverse(levels)[:, None]


class Polynomial(TableProblem):
    """The density with a polynomial potential, split over agents; ``reference`` is exact."""

    dim = 1

    def __init__(self, params: Params, agents: int) -> None:
        self.agents, self._powers = agents, np.array([*params.coefficients[::-1], 0.0])
        self._slopes = np.polyder(self._powers)
        share = 1 / agents if params.share == "split" else 1.0
        self.tables = (np.full(agents, share),)
        self.counts = np.full(agents, ERRORS)
        scores = special().ndtri((np.arange(ERRORS) + 0.5) / ERRORS)
        self._errors = params.error_sd * scores / scores.std()
        self._ends = params.interval
        self.reference = self.softened(0.0)

    def values(self, x: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return the potentials at x (..., dim) of agents with the given table rows, (...)."""
        return share * np.polyval(self._powers, x[..., 0])

    def slopes(self, x: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return the gradients at x (..., dim) of agents with the given table rows, (..., dim)."""
        return share[..., None] * np.polyval(self._slopes, x)

    def softened(self, smoothing: float) -> OnLine:
        """Return the law with density exp(-f(x) - d(x)^2 / (2 smoothing)).

        d(x) is the distance of x from the interval. With smoothing 0 the law is on the interval
        alone.
        """
        a, b = self._ends
        beyond = REACH * np.sqrt(smoothing)
        edges = np.linspace(a - beyond, b + beyond, CELLS + 1)
        x = (edges[1:] + edges[:-1]) / 2
        log = -np.polyval(self._powers, x)
        if smoothing:
            log -= (x - x.clip(a, b)) ** 2 / (2 * smoothing)
        mass = np.exp(log - log.max())
        mass /= mass.sum()
        mean = mass @ x
        second, third, fourth = (mass @ (x - mean) ** power for power in (2, 3, 4))
        below = np.concatenate([[0.0], mass.cumsum()])

        inverse = partial(_inverse, below, edges)
        return OnLine(
            *(np.array([mean]), np.array([[second]]), np.array([third]), np.array([fourth])),
            partial(_draw, inverse),
            inverse,
        )

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the gradients plus the mean of the errors of a mini-batch, (chains, agents, 1).

        rows: points of the mini-batches, (chains, agents, batch), numbered within each agent.
        """
        return self.gradient(x) + self._errors[rows].mean(axis=2, keepdims=True)
