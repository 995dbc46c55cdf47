r"""Quadratic potentials, of which affine samplers have exact laws.

.. math:: f_i(x) = \tfrac12 x^\top H_i x - b_i^\top x, \qquad
          e^{-\sum_i f_i} \propto N(\Sigma \sum_i b_i, \Sigma), \quad \Sigma = (\sum_i H_i)^{-1}
"""

from functools import cached_property
from typing import Any

import numpy as np

from concord.compiled import Kernel, built, kernel
from concord.contracts import Gradient, GradientAt, HessianProduct, Prox
from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.problems._data import OneDataSet
from concord.problems._own import numbers

FEW = 8  # dimensions, beyond which BLAS multiplies
LITTLE = 1 << 16  # numbers, of which as many products are held


class QuadraticProblem(OneDataSet):
    """Agents with potentials x^T gram_i x / 2 - shift_i^T x; ``concord.problems.quadratic``.

    gram, shift: shapes (agents, dim, dim) and (agents, dim): the gradient of f_i is gram_i x -
    shift_i. posterior: the exact posterior, a ``Gaussian``.
    """

    dim: int
    gram: np.ndarray
    shift: np.ndarray

    def __init__(self, gram: np.ndarray, shift: np.ndarray) -> None:
        self.gram, self.shift = gram, shift
        self.agents, self.dim = shift.shape

    @cached_property
    def posterior(self) -> Gaussian:
        """The exact posterior; a ConcordError if there is none, as of some linearized gradients."""
        cov = np.linalg.inv(self.gram.sum(axis=0))
        return Gaussian(cov @ self.shift.sum(axis=0), cov)

    @property
    def sampled(self) -> Gaussian:
        """The law proportional to exp(-sum_i f_i), which is the posterior."""
        return self.posterior

    def gradient(self, chains: int) -> Gradient:
        """Return ``g(x, out)`` writing gram_i x_i - shift_i; x, out: (chains, agents, dim)."""
        return _product(self.gram, chains, self.shift)

    def hessian_product(self, chains: int) -> HessianProduct:
        """Return ``h(x, v, out)`` writing gram_i v_i, whatever x."""
        product = _product(self.gram, chains)
        return lambda x, v, out: product(v, out)

    def prox(self, chains: int, curvature: np.ndarray) -> Prox:
        """Return ``solve(agent, linear, start, out)``, in closed form, inverted once."""
        matrices = self.gram + np.asarray(curvature, dtype=float)[:, None, None] * np.eye(self.dim)
        values = np.linalg.eigvalsh(matrices)
        flat = np.flatnonzero(values[:, 0] <= 1e-14 * values[:, -1])
        if flat.size:
            raise ConcordError(
                f"agent {flat[0]} has no unique minimizer: too few points or too little curvature, "
                "no prior and no neighbors; give it a share of the prior"
            )
        inverse = np.linalg.inv(matrices)
        product = _product(inverse, chains)

        def solve(agent: Any, linear: np.ndarray, start: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.add(linear, self.shift[agent], out=linear)
            if not isinstance(agent, slice):
                return np.matmul(linear, inverse[agent], out=out)
            return product(linear, out)

        return solve

    def gradient_at(self, chains: int, width: int) -> GradientAt:
        """Return ``g(x, agents, out)``: the gradients of ``width`` chosen agents of each chain."""
        gram = np.empty((chains, width, self.dim, self.dim))
        shift = np.empty((chains, width, self.dim))

        def gradient(x: np.ndarray, agents: np.ndarray, out: np.ndarray) -> np.ndarray:
            self.gram.take(agents, 0, gram, "clip")
            self.shift.take(agents, 0, shift, "clip")
            np.matmul(gram, x[..., None], out=out[..., None])
            return np.subtract(out, shift, out=out)

        return gradient

    def compiled_gradient(self, chains: int, width: int | None = None) -> tuple[Any, Any] | None:
        """Return the compiled gradient of chosen agents, in two dimensions, and its tables."""
        if width is None or self.dim != 2 or (gradient := built(_chosen)) is None:
            return None
        shape, nothing = (self.agents, 4), np.empty((0, 0))
        gram, shift = map(np.ascontiguousarray, (self.gram.reshape(shape), self.shift))
        return gradient, (gram, shift, *[nothing] * 6)

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), shape (chains, agents)."""
        quadratic = 0.5 * np.einsum("cad,ade,cae->ca", x, self.gram, x)
        return quadratic - np.einsum("cad,ad->ca", x, self.shift)


def quadratic(H: Any, b: Any) -> QuadraticProblem:
    """Return the problem of agents with potentials x^T H_i x / 2 - b_i^T x.

    Its posterior is Gaussian, and the laws of affine samplers are exact (``concord.law``).

    Parameters
    ----------
    H
        Shape (agents, dim, dim), symmetric; their sum is positive definite.
    b
        Shape (agents, dim).

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
    """
    gram, shift = numbers(H, "H"), numbers(b, "b")
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
    values = np.linalg.eigvalsh(gram.sum(axis=0))
    if values[0] <= 1e-14 * np.abs(values).max():
        raise ConcordError(
            "the sum of H is not positive definite, so that there is no posterior; add a prior's "
            "precision to H"
        )
    return QuadraticProblem(gram, shift)


def _chosen() -> Kernel | None:
    from concord.problems._compiled_quadratic import as_blas, chosen  # of an extra

    return chosen if as_blas() else None


def _product(matrices: np.ndarray, chains: int, less: np.ndarray | None = None) -> Gradient:
    """Return ``multiply(x, out)``: symmetric ``matrices`` (agents, dim, dim) times x, less a shift.

    Up to ``FEW`` dimensions columns are added up in their order, as the compiled kernel does.
    """
    agents, dim, _ = matrices.shape
    shift = np.zeros((agents, dim)) if less is None else np.ascontiguousarray(less)
    if dim > FEW:

        def by_agent(x: np.ndarray, out: np.ndarray) -> np.ndarray:
            np.matmul(x.swapaxes(0, 1), matrices, out=out.swapaxes(0, 1))
            return out if less is None else np.subtract(out, shift, out=out)

        return by_agent
    # A few multiplications over all chains and agents beat as many tiny products: of all columns at
    # once, if that is not much.
    columns = np.ascontiguousarray(matrices.transpose(2, 0, 1))
    every, at_once = columns.reshape(-1), chains * agents * dim * dim <= LITTLE
    places = (np.arange(agents) * dim + np.arange(dim)[:, None]).repeat(dim, axis=1).reshape(-1)
    product = np.empty((chains, dim if at_once else 1, agents, dim))
    wide, compiled = product.reshape(chains, -1), kernel("multiply", dim)
    transposed = np.ascontiguousarray(matrices.swapaxes(1, 2))

    def multiply(x: np.ndarray, out: np.ndarray) -> np.ndarray:
        if compiled is not None:
            try:
                compiled(x, transposed, shift, out)
            except TypeError:  # parts of arrays
                pass
            else:
                return out
        if at_once:
            x.reshape(chains, -1).take(places, 1, wide, "clip")
            np.multiply(wide, every, out=wide)
            np.add.reduce(product, axis=1, out=out)
        else:
            np.multiply(x[..., :1], columns[0], out=out)
            for j in range(1, dim):
                np.multiply(x[..., j : j + 1], columns[j], out=product[:, 0])
                np.add(out, product[:, 0], out=out)
        return out if less is None else np.subtract(out, shift, out=out)

    return multiply
