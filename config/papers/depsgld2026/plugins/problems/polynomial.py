r"""A density on an interval by its polynomial potential; agents hold shares of it, or all of it.

.. math:: f(x) = \tfrac12 x^2 + \tfrac18 x^4 - x, \qquad
    \pi(x) \propto e^{-f(x)} \text{ on } [-1, 1]

with f_i = f/N (``share: split``) or f_i = f (``share: whole``, by which agents together sample the
N-th power of the density, as in depsgld2026's released code). The interval is the posterior's
alone: gradients do not see it, and a sampler needs a constraint of its own. A mini-batch's gradient
is exact but for an error, whose standard deviation is ``error_sd`` over the root of its size.

Source: Islam and Zhu, 2026, arXiv:2605.00723, from its authors' released code. ``reference`` is the
posterior by quadrature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np

from concord.contracts import DataSets, Stream
from concord.laws.reference_laws import Draws
from concord.libraries import special
from concord.options import NonNegative, Options
from concord.sampling.partition import Partition
from concord_studies.problems._tabled import TableProblem

POTENTIAL = np.array([0.125, 0.0, 0.5, -1.0, 0.0])  # coefficients, the highest power first
ENDS = (-1.0, 1.0)
CELLS = 20_000
REACH = 12.0  # standard deviations of the part off the interval
ERRORS = 1000  # values of an error, which are as likely: the normal law's quantiles


class Params(Options):
    """Options of the agents' shares of the potential, and of the errors of its gradient."""

    share: Annotated[Literal["split", "whole"], "agents hold f/N, or f"] = "split"
    error_sd: Annotated[NonNegative, "standard deviation of the error of one point's gradient"] = (
        0.0
    )


def check(params: Params, agents: int) -> None:
    """Refuse nothing: any number of agents can share the potential."""


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Polynomial:
    """Build the problem of the options; nothing is drawn."""
    return Polynomial(params, agents)


@dataclass(frozen=True, repr=False)
class OnLine(Draws):
    """A law of one parameter by the probabilities of equal cells, on which it is uniform.

    values, weights: the middles of the cells and their probabilities. edges: of the cells.
    """

    edges: np.ndarray = field(kw_only=True)
    draws: ClassVar[float] = math.inf

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Return the quantiles at given levels in [0, 1], (levels, 1)."""
        mass = np.append(0.0, np.cumsum(np.asarray(self.weights)))
        return np.interp(levels, mass, self.edges)[:, None]

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return independent draws, (count, 1)."""
        return self.quantiles(rng.random(count))


def soften(potential: np.ndarray, smoothing: float) -> OnLine:
    """Return the law with density exp(-f(x) - d(x)^2 / (2 smoothing)).

    d(x) is the distance of x from the interval. With smoothing 0 the law is on the interval alone.
    ``potential`` has the coefficients of f.
    """
    a, b = ENDS
    beyond = REACH * np.sqrt(smoothing)
    edges = np.linspace(a - beyond, b + beyond, CELLS + 1)
    x = (edges[1:] + edges[:-1]) / 2
    log = -np.polyval(potential, x)
    if smoothing:
        log -= (x - x.clip(a, b)) ** 2 / (2 * smoothing)
    mass = np.exp(log - log.max())
    return OnLine(x[:, None], mass / mass.sum(), edges=edges)


class Polynomial(TableProblem):
    """The density with a polynomial potential, split over agents; ``reference`` is exact."""

    dim = 1

    def __init__(self, params: Params, agents: int) -> None:
        self.agents = agents
        self.tables = (np.full(agents, 1 / agents if params.share == "split" else 1.0),)
        self.counts = np.full(agents, ERRORS)
        scores = special().ndtri((np.arange(ERRORS) + 0.5) / ERRORS)
        self._errors = params.error_sd * scores / scores.std()
        self.reference = soften(POTENTIAL, 0.0)

    def values(self, x: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return the potentials at x (..., dim) of agents with the given table rows, (...)."""
        return share * np.polyval(POTENTIAL, x[..., 0])

    def slopes(self, x: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Return the gradients at x (..., dim) of agents with the given table rows, (..., dim)."""
        return share[..., None] * np.polyval(np.polyder(POTENTIAL), x)

    def batch_gradient(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the gradients plus the mean of the errors of a mini-batch, (chains, agents, 1).

        rows: points of the mini-batches, (chains, agents, batch), numbered within each agent.
        """
        return self.gradient(x) + self._errors[rows].mean(axis=2, keepdims=True)
