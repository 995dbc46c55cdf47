r"""A regression whose prior is uniform on a ball about 0.

.. math::
    \pi(x) \propto 1\{\lVert x \rVert \le s\} \, e^{-\sum_i f_i(x)}

with f_i the negative log likelihood of agent i's points alone, so that gradients do not see the
ball: a sampler needs a constraint of its own. ``reference`` holds the posterior of two parameters
on a dense grid, cut off at the ball. Agents start in the ball (``initial: {kind: problem}``).

Source: Islam and Zhu, 2026, arXiv:2605.00723, from its authors' released code.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np

from concord import options
from concord.contracts import DataSets, Stream
from concord.errors import ConcordError
from concord.laws.quadrature import Grid, from_log_density
from concord.options import Options, Positive
from concord.problems.kinds import linear_regression, logistic_regression
from concord.problems.one_data_set import TwoParameters
from concord.sampling.partition import Partition
from concord_studies.contracts import ProblemDeclaration, declaration_of_problem
from concord_studies.problems import linear_regression_data, logistic_regression_data

MODELS: dict[str, Any] = {
    "linear_regression": linear_regression,
    "linear_regression_data": linear_regression_data,
    "logistic_regression": logistic_regression,
    "logistic_regression_data": logistic_regression_data,
}
CELLS = 800


class Params(Options):
    """Options of a regression whose prior is uniform on a ball."""

    radius: Annotated[Positive, "radius s of the ball"]
    model: Annotated[
        Literal[
            "linear_regression",
            "linear_regression_data",
            "logistic_regression",
            "logistic_regression_data",
        ],
        "kind of regression",
    ]
    options: Annotated[
        dict[str, Any] | None, "of the regression, but for those of its prior; none: 100 points"
    ] = None
    starts: Annotated[
        Literal["uniform", "coordinates"],
        "agents' starts are uniform in the ball, or each coordinate is that of another such point, "
        "as in depsgld2026's released code, and some lie outside",
    ] = "uniform"


def _model(params: Params) -> tuple[Any, Any]:
    """Return the module of the chosen regression, and its ``Params`` with a flat prior."""
    model_options = {"points": 100} if params.options is None else params.options
    for name in model_options:
        if name.startswith("prior"):
            raise ConcordError(f"options: the prior is the ball; remove {name}")
    kind = MODELS[params.model]
    flat = {**model_options, "prior_share": "omitted"}
    return kind, options.build(kind.Params, flat, "options")


def check(params: Params, agents: int) -> None:
    """Raise a ConcordError if the regression does, or if it is given another prior."""
    kind, model_options = _model(params)
    kind.check(model_options, agents)


def needs(params: Params) -> tuple[str, ...]:
    """Return the names of the data sets that the regression reads."""
    kind, model_options = _model(params)
    return declaration_of_problem(kind).needs(model_options)


DECLARES = ProblemDeclaration(needs=needs)


def build(
    params: Params, agents: int, partition: Partition, stream: Stream, data_sets: DataSets
) -> InBall:
    """Build the regression without its prior, restricted to the ball."""
    kind, model_options = _model(params)
    plain = kind.build(model_options, agents, partition, stream, data_sets)
    is_linear = isinstance(plain, linear_regression.LinearRegression)
    cls = LinearInBall if is_linear else LogisticInBall
    restricted: Any = object.__new__(cls)
    vars(restricted).update(vars(plain), radius=params.radius, starts=params.starts, posterior=None)
    problem: InBall = restricted
    return problem


class InBall(TwoParameters):
    """A mixin of regressions with a prior that is uniform on a ball."""

    radius: float
    starts: str
    dim: int

    def initial(self, shape: tuple[int, int, int], rng: np.random.Generator) -> np.ndarray:
        """Draw initial positions by ``starts``, of a shape (chains, agents, dim)."""
        points = self.dim if self.starts == "coordinates" else 1
        x = rng.standard_normal((points, *shape))
        x *= self.radius / np.linalg.norm(x, axis=-1, keepdims=True)
        x *= rng.random((*x.shape[:-1], 1)) ** (1 / self.dim)
        return x[0] if points == 1 else np.einsum("ecae->cae", x)

    @cached_property
    def reference(self) -> Grid:
        """Return the posterior on a dense grid. A ConcordError unless dim is 2."""
        if self.dim != 2:
            raise ConcordError(
                f"the posterior in a ball of {self.dim} parameters is not known; use 2"
            )
        return from_log_density(self.log_posterior, ((-self.radius, self.radius),) * 2, CELLS)

    def log_posterior(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the log density at two parameters, up to a constant; arrays broadcast."""
        inside = first**2 + second**2 <= self.radius**2
        return np.where(inside, TwoParameters.log_posterior(self, first, second), -np.inf)


class LogisticInBall(InBall, logistic_regression.LogisticRegression):
    """Logistic regression with a prior that is uniform on a ball."""


class LinearInBall(InBall, linear_regression.LinearRegression):
    """Linear regression with a prior that is uniform on a ball."""
