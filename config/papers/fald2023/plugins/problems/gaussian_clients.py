r"""Clients with Gaussian potentials as in section 10.1, whose laws the print leaves open.

.. math:: U^i(x) = \tfrac12 (x - \mu_i)^\top \Sigma_i^{-1} (x - \mu_i)

The laws are drawn as the released code draws those of its five clients in 200 dimensions: means
:math:`\mu_i \sim N(0, 10^2 I)`, a scale from U(0.1, 10.1) for each client, and for each pair of its
coordinates two eigenvalues from U(0, 1) and an angle. They are the same in every run, as there.
Clients start at the posterior's mean, as in the print.
"""

from typing import Annotated, Literal

import numpy as np

from concord.contracts import DataSets, Stream
from concord.options import Count, Options, Positive, Some
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampling.partition import Partition
from concord_studies.contracts import ProblemDeclaration


class Params(Options):
    """Options of the clients' laws."""

    dim: Annotated[Count, "dimension d, an even number"] = 20
    draw: Annotated[Count, "seed of the draw of the laws; 3 is the code's"] = 3
    least: Annotated[float, "eigenvalues come from U(least, 1), times the client's scale"] = 0.0
    axes: Annotated[
        Literal["pairs", "all"], "rotations within pairs of coordinates, or of all coordinates"
    ] = "pairs"
    apart: Annotated[
        Positive, "factor of what the means differ from the product's mean: heterogeneity"
    ] = 1.0
    laws: Annotated[
        Some[tuple[float, float]] | None,
        "the clients' means and standard deviations in one dimension, in place of drawn laws",
    ] = None


class GaussianClients(QuadraticProblem):
    """A problem with normal laws as potentials, whose clients start at the posterior's mean."""

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Return the posterior's mean as initial positions, (chains, agents, dim)."""
        return np.broadcast_to(self.posterior.mean, shape)


DECLARES = ProblemDeclaration(name="Gaussian clients")


def check(params: Params, agents: int) -> None:
    """Accept all: laws of any number of clients can be drawn."""


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> GaussianClients:
    """Draw the clients' laws, or take those that are stated."""
    if params.laws is not None:
        means, sds = np.array(params.laws)[:, :, None].swapaxes(0, 1)
        gram = 1 / sds[..., None] ** 2
    else:
        means, gram = _draw(params, agents, np.random.default_rng(params.draw))
    shift = (gram @ means[..., None])[..., 0]
    middle = np.linalg.solve(gram.sum(axis=0), shift.sum(axis=0))
    means = middle + params.apart * (means - middle)
    return GaussianClients(gram, (gram @ means[..., None])[..., 0])


def _draw(params: Params, clients: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return means (clients, dim) and precisions (clients, dim, dim)."""
    dim = params.dim
    means = 10 * rng.standard_normal((clients, dim))
    scales = rng.uniform(0.1, 10.1, clients)[:, None]
    axes = np.zeros((clients, dim, dim))
    values = np.empty((clients, dim))
    for client in range(clients):
        for first in range(0, dim, 2):
            angle = 2 * np.pi + (1 - 2 * np.pi) * rng.random()
            values[client, first : first + 2] = rng.uniform(params.least, 1, 2)
            c, s = np.cos(angle), np.sin(angle)
            axes[client, first : first + 2, first : first + 2] = [[c, -s], [s, c]]
    if params.axes == "all":
        axes = np.linalg.qr(rng.standard_normal(axes.shape))[0]
    gram = (axes / (scales * values)[:, None, :]) @ axes.swapaxes(1, 2)
    return means, (gram + gram.swapaxes(1, 2)) / 2
