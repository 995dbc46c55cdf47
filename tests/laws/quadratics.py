"""A problem with quadratic potentials, drawn at random."""

from typing import Any

import numpy as np


class Quadratics:
    """Potentials x^T gram_i x / 2 - shift_i^T x."""

    def __init__(self, gram: np.ndarray, shift: np.ndarray) -> None:
        self.gram, self.shift = gram, shift
        self.agents, self.dim = shift.shape

    @classmethod
    def drawn(cls, agents: int, dim: int, seed: int = 3) -> "Quadratics":
        rng = np.random.default_rng(seed)
        roots = rng.standard_normal((agents, dim, 2 * dim))
        return cls(roots @ roots.swapaxes(1, 2) / 2, rng.standard_normal((agents, dim)))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return np.einsum("ade,cae->cad", self.gram, x) - self.shift

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        product: np.ndarray = (self.gram[agents] @ x[..., None])[..., 0]
        return product - self.shift[agents]

    def minimize(self, linear: np.ndarray, curvature: np.ndarray, start: np.ndarray) -> Any:
        matrices = self.gram + np.asarray(curvature)[:, None, None] * np.eye(self.dim)
        return np.linalg.solve(matrices, (linear + self.shift)[..., None])[..., 0], 1

    def hessian_product(self, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.einsum("ade,cae->cad", self.gram, v)

    def potential(self, x: np.ndarray) -> np.ndarray:
        values: np.ndarray = (x * (self.gradient(x) - self.shift) / 2).sum(axis=-1)
        return values

    def batch_noise_covariance(self, mean: np.ndarray, cov: np.ndarray, *how: Any) -> np.ndarray:
        return cov
