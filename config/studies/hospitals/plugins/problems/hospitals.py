r"""Hospitals with effects of their own around a common one; all variances are known.

.. math::
    y_{ij} \sim N(X_{ij}^\top \beta + \tau z_i, s_{ij}^2), \qquad z_i \sim N(0, 1), \qquad
    \beta \sim N(0, V)

With ``data: schools`` the row of each is its reported effect, in units of ten points, with its
standard error; beta is their mean, of standard deviation 0.5 (five points), as is tau. With
``data: clinics`` 20 clinics have 2 to 40 rows of two features and an intercept, drawn here, with
s = 1, tau = 0.5 and V = I.

Agent i holds beta and its own z_i (``effects: home``), or beta and the z of all
(``effects: shared``). The posterior is the same, and Gaussian.
"""

from typing import Annotated, Any, Literal

import numpy as np

from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.options import Options
from concord.problems.quadratic_problem import QuadraticProblem
from concord.problems.share_all import share_all
from concord.sampling.partition import Partition
from concord_studies.contracts import ProblemDeclaration

DECLARES = ProblemDeclaration(name="hospitals")
EFFECTS = np.array([2.8, 0.8, -0.3, 0.7, -0.1, 0.1, 1.8, 1.2])
ERRORS = np.array([1.5, 1.0, 1.6, 1.1, 0.9, 1.1, 1.0, 1.8])
HOSPITALS = {"schools": len(EFFECTS), "clinics": 20}
TAU = 0.5


class Params(Options):
    """Options of the hospitals' data, and of who holds their effects."""

    data: Annotated[Literal["schools", "clinics"], "eight rows, or rows of 20 clinics"]
    effects: Annotated[
        Literal["home", "shared"], "effects stay with their hospital, or all hold all of them"
    ] = "home"


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError for other than an agent for each hospital."""
    if agents != HOSPITALS[params.data]:
        raise ConcordError(f"agents: give {HOSPITALS[params.data]}, one for each hospital")


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> QuadraticProblem:
    """Return the problem, with what each hospital would know of its effect alone.

    ``effect``: vectors v_i, (agents, dim), by which the effect X^T beta + tau z_i (at features
    zero) is v_i^T x_i. ``alone``: its mean and standard deviation given the hospital's own rows.
    """
    if params.data == "schools":
        designs = [np.array([[0.5, TAU]]) / error for error in ERRORS]
        targets = [np.array([y]) / error for y, error in zip(EFFECTS, ERRORS, strict=True)]
        common = np.array([0.5])
    else:
        rng, common = stream("data"), np.array([1.0, 0.0, 0.0])
        counts = rng.integers(2, 41, agents)
        beta, z = rng.standard_normal(3), rng.standard_normal(agents)
        designs = [
            np.column_stack([np.ones(n), rng.standard_normal((n, 2)), np.full(n, TAU)])
            for n in counts
        ]
        targets = [
            X @ np.append(beta, own) + rng.standard_normal(len(X))
            for X, own in zip(designs, z, strict=True)
        ]
    dim = len(common) + 1
    likelihood = np.array([X.T @ X for X in designs])
    shift = np.array([X.T @ y for X, y in zip(designs, targets, strict=True)])
    prior = np.append(np.full(dim - 1, 1 / agents), 1.0)
    local = np.arange(dim) == dim - 1
    home: Any = QuadraticProblem(likelihood + np.diag(prior), shift, local)
    vector = np.append(common, TAU)
    covs = np.linalg.inv(likelihood + np.eye(dim))
    alone = (covs @ shift[..., None])[..., 0] @ vector, np.sqrt(vector @ covs @ vector)
    home.home, home.effect = home, np.tile(vector, (agents, 1))
    problem: Any = home
    if params.effects == "shared":
        problem = share_all(home)
        each = np.hstack([np.tile(common, (agents, 1)), TAU * np.eye(agents)])
        problem.home, problem.effect = home, each
    problem.alone = alone
    answer: QuadraticProblem = problem
    return answer
