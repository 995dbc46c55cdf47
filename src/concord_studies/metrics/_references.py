"""The posteriors that metrics compare with, or the refusal of a metric that has none."""

from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.laws.quadrature import Grid
from concord.problem import Problem
from concord.reference import Reference, WithReference, reference_of
from concord_studies.metrics import lacking


def posterior(problem: Problem, metric: str) -> Reference:
    """Return the posterior of a problem, or an error that names the metric that needs it."""
    try:
        return reference_of(problem)
    except ConcordError as error:
        raise ConcordError(f"metric {metric}: {error}") from None


def gaussian(problem: Problem, metric: str) -> Gaussian:
    """Return a problem's Gaussian posterior, or an error that names the metric."""
    if problem.posterior is None:
        raise lacking(metric, "a problem with an exact Gaussian posterior")
    return problem.posterior


def grid(problem: Problem, metric: str) -> Grid:
    """Return a problem's posterior on a grid, or an error that names the metric."""
    found = problem.reference if isinstance(problem, WithReference) else None
    if not isinstance(found, Grid):
        raise ConcordError(
            f"metric {metric}: {type(problem).__name__} has no reference posterior on a grid; "
            "remove the metric"
        )
    return found
