"""The posterior with which results are compared, exact or known by draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from concord.errors import ConcordError, short
from concord.laws.reference_laws import Draws
from concord.values import read_numbers

if TYPE_CHECKING:
    from concord.problem import Problem


@runtime_checkable
class Reference(Protocol):
    """A posterior with which results are compared: exact, on a grid, or known by draws.

    A ``Gaussian``, a ``Grid`` of two parameters, an ``AnalyticLaw``, or the ``Draws`` of a
    certified run (``concord.laws``). Where agents hold coordinates of their own it is a
    ``PosteriorByAgent``, whose arrays have a first axis of the agents and their average.
    """

    @property
    def draws(self) -> float:
        """The number of independent draws behind the moments. Infinite where they are exact."""

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior's mean (dim,) and covariance (dim, dim)."""

    def monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x_1, ..., x_d, x_1^2, ..., x_d^2, both (2 dim,)."""

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return independent draws from the posterior, (count, dim)."""


@runtime_checkable
class WithReference(Protocol):
    """A problem whose posterior is known, though it is not Gaussian."""

    @property
    def reference(self) -> Reference:
        """Return the posterior. A ConcordError if it is not known for these options."""


def reference_of(problem: Problem) -> Reference:
    """Return the posterior of a problem. A ConcordError if it is not known."""
    if isinstance(problem, WithReference):
        return problem.reference
    if problem.posterior is None:
        raise ConcordError(
            f"the posterior of {type(problem).__name__} is not known; remove what compares with "
            "it, or choose another problem"
        )
    return problem.posterior


def read_reference(posterior: object, dim: int, name: str) -> Reference:
    """Return a caller's posterior, draws (draws, dim) or an object with moments, checked.

    dim: the dimension that it must have. name: of the argument, for errors.
    """
    law = posterior if isinstance(posterior, Reference) else Draws(read_numbers(posterior, name))
    size = 0 if isinstance(law, Draws) and law.values.ndim != 2 else law.moments()[0].shape[-1]
    if size != dim:
        raise ConcordError(
            f"{name}: {short(posterior)} is no posterior of dimension {dim}; give draws of shape "
            f"(draws, {dim})"
        )
    return law
