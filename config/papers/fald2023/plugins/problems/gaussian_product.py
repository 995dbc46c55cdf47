r"""The product of normal laws, one of each agent, as a registered table states them.

.. math:: f_i(x) = \tfrac12 (x - m_i)^\top C_i^{-1} (x - m_i)

Affine samplers have exact laws on it. It has no points: no mini-batches are drawn, and
``partition`` divides nothing. Agents may start at the product's mean (``initial: {kind:
problem}``).
"""

from typing import Annotated

import numpy as np
from scipy.sparse import block_diag, csr_array

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Index, Options, Positive, Some
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampling.partition import Partition
from concord_studies.contracts import ProblemDeclaration
from concord_studies.datasets.points import required_tables


class Params(Options):
    """Options of the agents' normal laws: their table, and the distance between them."""

    table: Annotated[
        str | None,
        "registered table (config/datasets.yaml) of the entries of the covariances C_i that are "
        "not zero: columns agent, row, column, covariance, and mean where row and column agree",
    ] = None
    apart: Annotated[
        Positive, "factor of what the means differ from that of the product: heterogeneity"
    ] = 1.0
    coordinates: Annotated[
        Some[Index] | None, "coordinates kept, of which the others are independent; none: all"
    ] = None


class Product(QuadraticProblem):
    """A problem with normal laws as potentials, whose agents may start at the product's mean."""

    def __init__(self, gram: np.ndarray, shift: np.ndarray) -> None:
        super().__init__(gram, shift)
        self._sparse = block_diag([csr_array(part) for part in gram], format="csr")

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return gram_i x_i - shift_i, (chains, agents, dim)."""
        product: np.ndarray = self._sparse @ x.reshape(len(x), -1).T
        return product.T.reshape(x.shape) - self.shift

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Return the mean of the product as initial positions, (chains, agents, dim)."""
        return np.broadcast_to(self.posterior.mean, shape)


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError if no table is named."""
    if params.table is None:
        raise ConcordError("table: there is none, and it states the laws; name a registered one")


DECLARES = ProblemDeclaration(name="product of Gaussians", needs=required_tables)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> Product:
    """Read the agents' laws from the table; a ConcordError if it has another number of them."""
    check(params, agents)
    table = data_sets.table(str(params.table))
    who, row, column = (table[name].astype(int) for name in ("agent", "row", "column"))
    if who.max() != agents - 1:
        raise ConcordError(
            f"{params.table} is for {who.max() + 1} agents, not {agents}; set agents"
        )
    dim, diagonal = row.max() + 1, row == column
    means, covs = np.zeros((agents, dim)), np.zeros((agents, dim, dim))
    covs[who, row, column] = table["covariance"]
    means[who[diagonal], row[diagonal]] = table["mean"][diagonal]
    if params.coordinates is not None:
        coordinates = list(params.coordinates)
        means, covs = means[:, coordinates], covs[:, coordinates][:, :, coordinates]
    gram = np.linalg.inv(covs)
    gram = (gram + gram.swapaxes(1, 2)) / 2
    shift = (gram @ means[..., None])[..., 0]
    middle = np.linalg.solve(gram.sum(axis=0), shift.sum(axis=0))
    means = middle + params.apart * (means - middle)
    return Product(gram, (gram @ means[..., None])[..., 0])
