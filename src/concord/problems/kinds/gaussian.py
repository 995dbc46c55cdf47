r"""A Gaussian posterior of chosen condition number, with adjustable heterogeneity of agents.

.. math::
    f(x) = \tfrac12 (x - \mu)^\top \Sigma^{-1} (x - \mu), \qquad
    f_i(x) = \tfrac1N f(x) + c_i^\top x + \tfrac12 (x - \mu)^\top S_i (x - \mu)

The eigenvalues of Sigma fall evenly on a log scale from 1 to 1/kappa, its eigenvectors are a random
rotation, and mu is drawn from N(0, I), that is in units of the largest standard deviation. The c_i
and S_i add up to zero, so that the posterior is N(mu, Sigma) whatever the heterogeneity
(``heterogeneity`` and ``curvature_heterogeneity``; ``concord.problems._heterogeneity`` has their
equations). Affine samplers have exact laws on it. It has no points: no mini-batches are drawn, and
``partition`` divides nothing.

Examples
--------
>>> import concord
>>> problem = concord.problems.gaussian(agents=16, condition=100.0, heterogeneity=10.0)
>>> problem.posterior.cov.shape
(2, 2)
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta

from concord.contracts import DataSets, Stream
from concord.kinds import Declaration
from concord.laws.gaussian import Gaussian
from concord.options import Count
from concord.problems._heterogeneity import Heterogeneity, check_heterogeneity, draw_tilts
from concord.problems.quadratic_problem import QuadraticProblem
from concord.sampling.partition import Partition

DECLARES = Declaration(name="Gaussian")


class Params(Heterogeneity):
    """Options of the Gaussian posterior, and of the heterogeneity of agents."""

    condition: Annotated[
        float, Meta(ge=1, le=1e8), "condition number kappa of the posterior covariance"
    ] = 10.0
    dim: Annotated[Count, "dimension d; one has the condition number 1"] = 2


check = check_heterogeneity


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> QuadraticProblem:
    """Draw the posterior's mean and rotation, then the tilts of the agents.

    The posterior depends on ``stream("data")`` alone, not on the number of agents nor on what they
    differ in.
    """
    rng, dim = stream("data"), params.dim
    mean = rng.standard_normal(dim)
    rotation, triangle = np.linalg.qr(rng.standard_normal((dim, dim)))
    rotation *= np.sign(np.diag(triangle))  # uniform, where QR alone has signs of its own
    values = params.condition ** -np.linspace(0, 1, dim)
    law = Gaussian(mean, (rotation * values) @ rotation.T)
    linear, quadratic = draw_tilts(agents, law, params, stream("heterogeneity"))
    precision = np.linalg.inv(law.cov)
    problem = QuadraticProblem(
        precision / agents + quadratic, precision @ law.mean / agents - linear
    )
    problem.posterior = law
    return problem
