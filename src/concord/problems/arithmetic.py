"""Arithmetic that problems share: products by agent, the logistic function, softplus sums."""

from collections.abc import Iterable

import numpy as np

FACTORS = 1000  # of at most 2 each, whose product is finite


def multiply(x: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Return the products x_i^T M_i, (chains, agents, m), as a contiguous array.

    x: (chains, agents, n). matrices: M_i, (agents, n, m). Each agent takes one product of matrices.
    """
    products = np.empty((*x.shape[:2], matrices.shape[2]))
    np.matmul(x.swapaxes(0, 1), matrices, out=products.swapaxes(0, 1))
    return products


def sigmoid(z: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-z)) without overflow, as (1 + tanh(z / 2)) / 2."""
    share: np.ndarray = z * 0.5  # one array: large ones are slow to get
    np.tanh(share, out=share)
    share += 1.0
    share *= 0.5
    return share


def sum_softplus(terms: Iterable[np.ndarray]) -> np.ndarray:
    r"""Return :math:`\sum_j \log(1 + e^{z_j})` over arrays z_j of one shape, entry by entry.

    With :math:`1 + e^z = e^{\max(z, 0)} (1 + e^{-|z|})` a term takes one exponential, and the
    product of many terms one logarithm.
    """
    total, product = np.zeros(()), np.ones(())
    for number, z in enumerate(terms, 1):
        size = np.abs(z, out=np.empty_like(z))  # one array: large ones are slow to get
        total = total + np.maximum(z, 0.0)
        np.negative(size, out=size)
        np.exp(size, out=size)
        size += 1.0
        product = product * size
        if number % FACTORS == 0:
            total, product = total + np.log(product), np.ones(())
    return total + np.log(product)
