r"""Poisson rates in their logarithms: exponential gradients, and exact draws.

.. math::
    y_{jk} \sim \mathrm{Poisson}(e_j \lambda_k), \qquad
    \lambda_k \sim \Gamma(a, b) \text{ (rate b)}, \qquad x_k = \log \lambda_k

    f_i(x) = \sum_k \Bigl[ \Bigl( \sum_{j=1}^{n_i} e_j + \frac bN \Bigr) e^{x_k}
             - \Bigl( \sum_{j=1}^{n_i} y_{jk} + \frac aN \Bigr) x_k \Bigr]

The posterior of lambda_k is Gamma(a + sum_j y_jk, b + sum_j e_j), independent over k; the e_j
are exposures. Gradients grow exponentially to the right, and are bounded to the left.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Annotated, Any

import numpy as np

from concord import streams
from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.laws.reference_laws import AnalyticLaw
from concord.libraries import special
from concord.options import Count, Options, Positive
from concord.problems.arrays import AgentsOfRows, divide_rows
from concord.problems.points import check_agents
from concord.sampling.partition import AgentData, Partition
from concord.values import read_numbers
from concord_studies.contracts import ProblemDeclaration
from concord_studies.problems._tabled import TableProblem

DECLARES = ProblemDeclaration(name="gamma-Poisson")


class Params(Options):
    """Options of the counts, and the parameters of the prior."""

    points: Annotated[Count, "number of points, over all agents, each a count of every rate"] = 100
    dim: Annotated[Count, "number of rates"] = 2
    shape: Annotated[Positive, "a of the rates' prior Gamma(a, b)"] = 2.0
    rate: Annotated[Positive, "b of the rates' prior Gamma(a, b)"] = 1.0


check = check_agents


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> GammaPoisson:
    """Draw rates from the prior and counts of exposure 1, and split the counts over agents."""
    rng = stream("data")
    rates = rng.standard_gamma(params.shape, params.dim) / params.rate
    counts = rng.poisson(rates, (params.points, params.dim)).astype(float)
    parts = partition.split(params.points, agents, stream("partition"))
    return GammaPoisson(AgentData.from_parts(counts, np.ones(params.points), parts), params)


def from_arrays(
    counts: Any,
    exposures: Any = None,
    agents: AgentsOfRows = None,
    *,
    shape: float = 2.0,
    rate: float = 1.0,
    partition: Any = "equal",
    seed: int | None = streams.SEED,
    rng: streams.Rng = None,
) -> GammaPoisson:
    """Return the gamma-Poisson problem on a caller's own counts.

    Parameters
    ----------
    counts
        Shape (rows, rates).
    exposures
        e_j, (rows,); none: 1 each.
    agents, partition, seed, rng
        As of ``concord.problems.linear_regression``.
    shape, rate
        a and b of the prior Gamma(a, b).

    Returns
    -------
    GammaPoisson
        With ``agents``, ``dim`` and ``reference``, the posterior.

    Raises
    ------
    ConcordError
        If the arrays do not fit each other or the number of agents, or a number is negative.

    Examples
    --------
    >>> import concord, concord_studies
    >>> problem = concord.problems.gamma_poisson([[3, 0], [5, 1], [4, 0]], agents=3)
    >>> problem.reference.mean.round(2)
    array([ 1.22, -0.46])
    """
    each = [counts] if agents is not None else counts
    for part in (tables := [read_numbers(part, "counts") for part in each]):
        if part.ndim != 2:
            raise ConcordError(f"counts of shape {part.shape}: give (rows, rates)")
    if exposures is None:
        ones = [np.ones(len(part)) for part in tables]
        exposures = ones[0] if agents is not None else ones
    data = divide_rows(counts, exposures, agents, partition, streams.seed_of(seed, rng))
    mask = data.mask.astype(bool)
    if data.features.min() < 0 or data.targets[mask].min() <= 0:
        raise ConcordError("counts or exposures: some are negative; give counts, and time observed")
    return GammaPoisson(data, Params(shape=shape, rate=rate))


class GammaPoisson(TableProblem):
    """The posterior of the logarithms of Poisson rates, with counts split over agents."""

    def __init__(self, data: AgentData, params: Params) -> None:
        self.counts = data.counts
        self.agent_names, self.coordinate_names = data.sites, data.columns
        self.agents, _, self.dim = data.features.shape
        # Of an agent: exposures + b / N, counts + a / N.
        exposures = data.targets.sum(axis=1)[:, None] + params.rate / self.agents
        self.tables = exposures, data.features.sum(axis=1) + params.shape / self.agents

    def potentials_at(self, x: np.ndarray, exposures: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the agents' potentials (...) at x (..., dim), up to a constant.

        exposures (..., 1), counts (..., dim): each agent's rows of ``tables``, the sums over its
        points plus its share of the prior, b / N and a / N.
        """
        return (exposures * np.exp(x) - counts * x).sum(axis=-1)

    def gradients_at(self, x: np.ndarray, exposures: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the gradients (..., dim) of ``potentials_at``, from the same arguments."""
        return exposures * np.exp(x) - counts

    @cached_property
    def reference(self) -> AnalyticLaw:
        """Return the posterior: logarithms of independent gamma variables."""
        exposure, shapes = (table.sum(axis=0) for table in self.tables)
        variance = special().polygamma(1, shapes)
        return AnalyticLaw(
            special().digamma(shapes) - np.log(exposure),
            np.diag(variance),
            special().polygamma(2, shapes),
            special().polygamma(3, shapes) + 3 * variance**2,
            partial(_draw, shapes, exposure),
        )


def _draw(
    shapes: np.ndarray, exposure: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return independent draws of the log rates' posterior, (count, dim), from gamma laws."""
    return np.log(rng.standard_gamma(shapes, (count, len(shapes))) / exposure)
