r"""Adjustable heterogeneity between agents, which leaves the posterior unchanged.

.. math::
    f_i(x) = \frac1N f(x) + c_i^\top x + \tfrac12 (x - \mu)^\top S_i (x - \mu),
    \qquad \sum_i c_i = 0, \quad \sum_i S_i = 0

with mu and Sigma the posterior's mean and covariance, and Sigma^-1 = L L^T. It has two parts:

``heterogeneity``, zeta
    :math:`c_i = -\tfrac{\zeta}{N} L z_i` with random z_i whose entries have mean 0 over agents and
    mean square 1 over agents and coordinates. Where f is quadratic (and S_i = 0), agent i's own
    minimizer, that of N f_i, is :math:`\mu + \zeta L^{-\top} z_i`: in every coordinate on average
    (root mean square) zeta posterior standard deviations from mu. For comparison: points divided at
    random among N agents make zeta about sqrt(N).
``curvature_heterogeneity``, eta
    :math:`S_i = \tfrac1N L A_i L^\top` with random symmetric A_i whose least eigenvalue, over all
    agents, is -eta. Where f is quadratic, all f_i are convex if eta <= 1, and not all beyond: the
    curvature of some f_i is then negative in some direction, and it has no minimizer.

The z_i and A_i depend on the problem's stream of random numbers only, so that at another zeta
agents differ in the same directions.
"""

from typing import Annotated

import numpy as np

from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.options import NonNegative, Options


class Heterogeneity(Options, kw_only=True):
    """Options of the heterogeneity of agents, which come last among a problem's options."""

    heterogeneity: Annotated[
        NonNegative,
        "zeta: how far agents' own minimizers are from the posterior mean, in posterior standard "
        "deviations (root mean square); the posterior stays where it is",
    ] = 0.0
    curvature_heterogeneity: Annotated[
        NonNegative,
        "eta: how much agents' curvatures differ, relative to the posterior's; beyond 1 some f_i "
        "is not convex",
    ] = 0.0


def check_heterogeneity(params: Heterogeneity, agents: int) -> None:
    """Raise a ConcordError if a single agent is to differ from others."""
    for name in ("heterogeneity", "curvature_heterogeneity"):
        if agents == 1 and (value := getattr(params, name)):
            raise ConcordError(
                f"{name} {value:g} is for two agents or more, which differ; set it to 0"
            )


def draw_tilts(
    agents: int, law: Gaussian, options: Heterogeneity, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the tilts t_i^T x + x^T S_i x / 2 of the agents' potentials, whose sums are zero.

    law: the posterior's mean mu and covariance. Return t_i = c_i - S_i mu, (agents, dim), and S_i,
    (agents, dim, dim).
    """
    dim = len(law.mean)
    root = np.linalg.cholesky(np.linalg.inv(law.cov))
    z = rng.standard_normal((agents, dim))
    a = rng.standard_normal((agents, dim, dim))
    if agents == 1:
        return np.zeros((1, dim)), np.zeros((1, dim, dim))
    z -= z.mean(axis=0)
    z *= options.heterogeneity / np.sqrt((z**2).mean())
    a += a.swapaxes(1, 2)
    a -= a.mean(axis=0)
    a *= options.curvature_heterogeneity / -np.linalg.eigvalsh(a).min()
    quadratic = root @ a @ root.T / agents
    quadratic = (quadratic + quadratic.swapaxes(1, 2)) / 2
    linear = -z @ root.T / agents - quadratic @ law.mean
    # What rounding leaves of the sums would move the posterior.
    return linear - linear.mean(axis=0), quadratic - quadratic.mean(axis=0)
