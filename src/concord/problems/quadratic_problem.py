r"""Problems with quadratic potentials, on which affine samplers have exact laws.

.. math:: f_i(x) = \tfrac12 x^\top H_i x - b_i^\top x, \qquad
          e^{-\sum_i f_i} \propto N(\Sigma \sum_i b_i, \Sigma), \quad \Sigma = (\sum_i H_i)^{-1}
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.local_coordinates import (
    PosteriorByAgent,
    embed_quadratics,
    posterior_of_quadratics,
    read_local,
)
from concord.needs import check_positive_definite
from concord.problem import ALL, Agents
from concord.problems.arithmetic import multiply
from concord.problems.one_data_set import OneDataSet
from concord.values import read_numbers


class QuadraticProblem(OneDataSet):
    """A problem whose potentials are x^T gram_i x / 2 - shift_i^T x.

    gram, shift: shapes (agents, dim, dim) and (agents, dim); grad f_i(x) is gram_i x - shift_i.

    local: the mask of coordinates that belong to the agent who holds them, (dim,); None: none.

    posterior: the exact posterior, a ``Gaussian``, or a ``PosteriorByAgent``.
    """

    dim: int
    gram: np.ndarray
    shift: np.ndarray
    _inverted: tuple[np.ndarray, np.ndarray] | None = None  # curvature, inverses

    def __init__(
        self, gram: np.ndarray, shift: np.ndarray, local: np.ndarray | None = None
    ) -> None:
        self.gram, self.shift, self.local = gram, shift, local
        self.agents, self.dim = shift.shape

    @cached_property
    def posterior(self) -> Any:
        """Return the exact posterior. A ConcordError if it is not a proper law."""
        if self.local is not None:
            return posterior_of_quadratics(self.gram, self.shift, self.local)
        cov = np.linalg.inv(self.gram.sum(axis=0))
        return Gaussian(cov @ self.shift.sum(axis=0), cov)

    @property
    def sampled(self) -> Gaussian | PosteriorByAgent:
        """Return the law proportional to exp(-sum_i f_i), which is the posterior."""
        return self.posterior

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return gram_i x_i - shift_i, (chains, agents, dim)."""
        return multiply(x, self._transposed_gram) - self.shift

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradients of chosen agents, (chains, few, dim)."""
        slopes = self.gram.take(agents, axis=0) @ x[..., None]
        return slopes[..., 0] - self.shift.take(agents, axis=0)

    @cached_property
    def _transposed_gram(self) -> np.ndarray:
        """Return the transposed Hessians, (agents, dim, dim), for products from the left."""
        return np.ascontiguousarray(self.gram.swapaxes(1, 2))

    def hessian_product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return gram_i v_i, (chains, agents, dim), which does not depend on x."""
        return multiply(v, self._transposed_gram)

    def minimize(
        self, linear: np.ndarray, curvature: np.ndarray, start: np.ndarray, agents: Agents = ALL
    ) -> tuple[np.ndarray, int]:
        """Return minimizers as ``CountedProblem`` does, in closed form, and their cost of 1."""
        return multiply(linear + self.shift[agents], self._inverse(curvature)[agents]), 1

    def _inverse(self, curvature: np.ndarray) -> np.ndarray:
        """Return the inverses of gram_i + c_i I, cached for the last curvature c."""
        if self._inverted is not None and np.array_equal(self._inverted[0], curvature):
            return self._inverted[1]
        matrices = self.gram + np.asarray(curvature, dtype=float)[:, None, None] * np.eye(self.dim)
        check_positive_definite(matrices)
        self._inverted = curvature.copy(), np.linalg.inv(matrices)
        return self._inverted[1]

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents)."""
        return (x * (0.5 * multiply(x, self._transposed_gram) - self.shift)).sum(axis=-1)


def quadratic(
    H: ArrayLike, b: ArrayLike, *, local: Sequence[bool] | None = None
) -> QuadraticProblem:
    """Return the problem of given quadratic potentials x^T H_i x / 2 - b_i^T x.

    Its posterior is Gaussian, and the laws of affine samplers are exact (``concord.law``).

    Parameters
    ----------
    H
        Shape (agents, dim, dim), symmetric; their sum is positive definite.
    b
        Shape (agents, dim).
    local
        A mask (dim,) of coordinates that belong to the agent who holds them and are never sent; f_i
        is then a function of the shared coordinates and agent i's own. None: all are shared.

    Returns
    -------
    QuadraticProblem
        With ``agents``, ``dim`` and ``posterior``.

    Raises
    ------
    ConcordError
        If shapes do not fit, or there is no posterior.

    Examples
    --------
    >>> import concord, numpy as np
    >>> problem = concord.problems.quadratic(H=np.full((4, 1, 1), 0.5), b=[[0], [1], [2], [3]])
    >>> problem.posterior.mean, problem.posterior.cov
    (array([3.]), array([[0.5]]))
    >>> H = [[[1.0, 1.0], [1.0, 2.0]]] * 4  # of y_i ~ N(mu + u_i, 1), u_i ~ N(0, 1)
    >>> b = [[0, 0], [1, 1], [2, 2], [3, 3]]
    >>> effects = concord.problems.quadratic(H, b, local=[False, True])
    >>> effects.posterior.of(3).mean.round(6)  # of mu, and of u_3
    array([1.5 , 0.75])
    """
    gram, shift = read_numbers(H, "H"), read_numbers(b, "b")
    if shift.ndim != 2 or gram.shape != (*shift.shape, shift.shape[1]) or not gram.size:
        raise ConcordError(
            f"H of shape {gram.shape} and b of shape {shift.shape} do not fit; give (agents, dim, "
            "dim) and (agents, dim)"
        )
    skew = np.abs(gram - gram.swapaxes(1, 2)).max(axis=(1, 2))
    if skew.max() > 1e-10 * np.abs(gram).max():
        raise ConcordError(
            f"H[{skew.argmax()}] is not symmetric; give (H + H.transpose(0, 2, 1)) / 2"
        )
    mask = read_local(local, shift.shape[1])
    whole = gram if mask is None else embed_quadratics(gram, shift, mask)[0]
    values = np.linalg.eigvalsh(whole.sum(axis=0))
    if values[0] <= 1e-14 * np.abs(values).max():
        raise ConcordError(
            "the sum of H is not positive definite, so that there is no posterior; add a prior's "
            "precision to H"
        )
    return QuadraticProblem(gram, shift, mask)
