"""Condition 1 of parayil2020, every constant computed from the problem."""

import numpy as np

from concord_studies.theory import Condition


def condition1(
    delta_2: float, delta_1: float, b: float, first: float, laplacian_max: float
) -> list[Condition]:
    """Return parayil2020's conditions on alpha_k = a/(k+1)^delta_2 and beta_k = b/(k+1)^delta_1.

    (15) and Condition 1 of the supplement, (S6): 1/2 + delta_1 < delta_2 < 1, the eigenvalues of
    I - b L but one strictly inside the unit circle, and, in the text below (S6), b sigma_max(L)
    < 1, which implies it. The experiments have b_2 + k in place of k + 1, so that b may stand for
    the numerator or for the first value of beta; both are judged. ``laplacian_max`` is the largest
    eigenvalue of the graph's Laplacian L.
    """
    apart = delta_2 - delta_1
    numerator, first = b * laplacian_max, first * laplacian_max
    return [
        # delta_2 = 0.55 and delta_1 = 0.05 are 1/2 apart but for rounding.
        Condition("delta_2 - delta_1 > 1/2", apart, bool(apart > 0.5 + 1e-12)),
        Condition("delta_2 < 1", delta_2, delta_2 < 1),
        Condition("b sigma_max < 1", numerator, numerator < 1),
        Condition("beta_0 sigma_max < 1", first, first < 1),
        Condition("beta_0 sigma_max < 2", first, first < 2),
    ]


def step26(gram: np.ndarray, a: float, delta_2: float) -> Condition:
    r"""Return whether Theorem 2's choice of a, (26), can be met on linear regression.

    .. math::
        a = n^{-\gamma} \left(\frac{\rho_U (3 \delta_2 - 1)}{25 L^4 \delta_2}\right)^{1/3},
        \qquad \gamma > 2

    for some gamma, that is: a is below the right side with gamma = 2. rho_U is the constant of the
    posterior's log-Sobolev inequality, the smallest eigenvalue of its precision; L the largest
    Lipschitz constant of an agent's gradient. ``gram`` is each agent's Hessian, (agents, dim, dim);
    a and delta_2 are numerator and exponent of alpha.
    """
    rho = np.linalg.eigvalsh(gram.sum(axis=0))[0]
    lipschitz = np.linalg.eigvalsh(gram).max()
    largest = np.cbrt(rho * (3 * delta_2 - 1) / (25 * lipschitz**4 * delta_2)) / len(gram) ** 2
    return Condition("a below (26)", float(a / largest), a < largest)
