r"""Quadratic potentials, of which affine samplers have exact laws.

.. math:: f_i(x) = \tfrac12 x^\top H_i x - b_i^\top x, \qquad
          e^{-\sum_i f_i} \propto N(\Sigma \sum_i b_i, \Sigma), \quad \Sigma = (\sum_i H_i)^{-1}
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from concord.laws.gaussian import Gaussian

from concord_core.errors import ConcordError


class QuadraticProblem:
    """Agents with potentials x^T gram_i x / 2 - shift_i^T x.

    gram, shift: shapes (agents, dim, dim) and (agents, dim).
    """

    def __init__(self, gram: np.ndarray, shift: np.ndarray) -> None:
        self.gram, self.shift = gram, shift
        self.agents, self.dim = shift.shape
        self._inverses: tuple[bytes, np.ndarray] = b"", gram

    @cached_property
    def posterior(self) -> Gaussian:
        """The exact posterior."""
        cov = np.linalg.inv(self.gram.sum(axis=0))
        return Gaussian(cov @ self.shift.sum(axis=0), cov)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return gram_i x_i - shift_i, (chains, agents, dim)."""
        return _multiply(self.gram, x) - self.shift

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradients of chosen agents, (chains, few), at x, (chains, few, dim)."""
        product: np.ndarray = (self.gram[agents] @ x[..., None])[..., 0]
        return product - self.shift[agents]

    def minimize(
        self, linear: np.ndarray, curvature: np.ndarray, start: np.ndarray
    ) -> tuple[np.ndarray, int]:
        """Return the x with gram_i x - shift_i + c_i x = b_i, which costs one gradient."""
        key = curvature.tobytes()
        if self._inverses[0] != key:
            self._inverses = key, self._inverse(curvature)
        return _multiply(self._inverses[1], linear + self.shift), 1

    def _inverse(self, curvature: np.ndarray) -> np.ndarray:
        matrices = self.gram + curvature[:, None, None] * np.eye(self.dim)
        values = np.linalg.eigvalsh(matrices)
        flat = np.flatnonzero(values[:, 0] <= 1e-14 * values[:, -1])
        if flat.size:
            raise ConcordError(
                f"agent {flat[0]} has no unique minimizer: too few points or too little curvature, "
                "no prior and no neighbors; give it a share of the prior"
            )
        return np.linalg.inv(matrices)

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), (chains, agents)."""
        values: np.ndarray = (x * (_multiply(self.gram, x) / 2 - self.shift)).sum(axis=-1)
        return values

    def hessian_product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return gram_i v_i, whatever x."""
        return _multiply(self.gram, v)


def _multiply(matrices: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return M_i x_i for symmetric matrices, (agents, dim, dim), and x (chains, agents, dim)."""
    return np.ascontiguousarray((x.swapaxes(0, 1) @ matrices).swapaxes(0, 1))
