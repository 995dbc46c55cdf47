r"""Least squares for ten digits: five agents with two digits each.

.. math::
    f_i(W) = \tfrac12 \sum_{j=1}^{n_i} \lVert W^\top X_j - e_{y_j} \rVert^2
             + \frac{\delta}{2 N} \lVert W \rVert^2

W, (49, 10), is one vector x of 490 entries; X_j are 49 pixels in [0, 1], and e_y are unit vectors.
The posterior is Gaussian, with the same covariance for each digit's weights and none between them.
``partition`` divides nothing: agent i of N has the digits c with i = floor(c N / 10).

Source: mollenhoff2025's released code.
"""

import numpy as np

from concord.contracts import DataSets, Stream
from concord.options import Options as Params
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampling.partition import Partition, check_rows
from concord_studies.contracts import ProblemDeclaration

TABLE, CLASSES = "mollenhoff2025_digits", 10
PRIOR_PRECISION = 25.0  # delta
DECLARES = ProblemDeclaration(name="least squares for digits", needs=lambda params: (TABLE,))


class RidgeDigits(QuadraticProblem):
    """The agents' potentials, the prior's share of each, and the constants of the losses."""

    def __init__(
        self, gram: np.ndarray, shift: np.ndarray, share: float, constants: np.ndarray
    ) -> None:
        super().__init__(gram, shift)
        self.prior_precision, self._constants = share, constants

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), with the constants of squared errors, (chains, agents)."""
        return super().potential(x) + self._constants


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for more agents than digits."""
    check_rows(CLASSES, agents)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> RidgeDigits:
    """Read the images, and give them to the agents by digit."""
    table = dict(data_sets.table(TABLE))
    labels = table.pop("digit").astype(int)
    X, Y = np.column_stack(list(table.values())) / 255, np.eye(CLASSES)[labels]
    owner = (labels * agents // CLASSES == np.arange(agents)[:, None]).astype(float)
    share = PRIOR_PRECISION / agents
    gram = np.einsum("an,np,nq->apq", owner, X, X, optimize=True)
    blocks = np.kron(gram, np.eye(CLASSES)) + share * np.eye(X.shape[1] * CLASSES)
    shift = np.einsum("an,np,nc->apc", owner, X, Y, optimize=True).reshape(agents, -1)
    return RidgeDigits(blocks, shift, share, owner.sum(axis=1) / 2)
