"""Get the posterior that a metric compares with, or raise an error that names the metric."""

from collections.abc import Sequence
from typing import Any

from concord.errors import ConcordError
from concord.laws.gaussian import Gaussian
from concord.laws.quadrature import Grid
from concord.local_coordinates import PosteriorByAgent
from concord.problem import Problem, local_of
from concord.reference import Reference, WithReference, reference_of
from concord_studies.metrics import unmet_need


def require_posterior(problem: Problem, metric: str) -> Reference:
    """Return a problem's posterior; raise an error that names the metric if it is not known."""
    _refuse_local(problem, metric)
    try:
        return reference_of(problem)
    except ConcordError as error:
        raise ConcordError(f"metric {metric}: {error}") from None


def require_gaussian(problem: Problem, metric: str) -> Gaussian:
    """Return a problem's Gaussian posterior; raise an error that names the metric without one."""
    _refuse_local(problem, metric)
    if problem.posterior is None:
        raise unmet_need(metric, "a problem with an exact Gaussian posterior")
    return problem.posterior


def group_by_law(
    problem: Problem, metric: str, names: Sequence[str]
) -> list[tuple[list[int], Gaussian]]:
    """Return the Gaussian laws with which agents are compared, and the places of their names.

    One law for all names, or where coordinates are local one for each. names: numbers of agents, or
    ``average``. Raises an error that names the metric if the posterior is not Gaussian.
    """
    if local_of(problem) is None:
        return [([*range(len(names))], require_gaussian(problem, metric))]
    laws = [select_law(problem.posterior, name) for name in names]
    if not all(isinstance(law, Gaussian) for law in laws):
        raise unmet_need(metric, "a problem with an exact Gaussian posterior")
    return [([place], law) for place, law in enumerate(laws)]


def _refuse_local(problem: Problem, metric: str) -> None:
    """Refuse a problem with local coordinates, of which each agent has a posterior of its own.

    metric: the name of the metric, for the message.
    """
    if local_of(problem) is not None:
        raise unmet_need(metric, "a problem all of whose coordinates are shared")


def select_law(posterior: Any, agent: int | str) -> Any:
    """Return the law with which an agent, or the ``average``, is compared."""
    return posterior.of(agent) if isinstance(posterior, PosteriorByAgent) else posterior


def check_grid(metric: str, problem: Problem) -> None:
    """Refuse a metric of a problem that cannot have a posterior on a grid."""
    if problem.dim != 2 or not hasattr(type(problem), "reference"):
        raise unmet_need(metric, "a problem of two parameters with a posterior on a grid")


def require_grid(problem: Problem, metric: str) -> Grid:
    """Return a problem's posterior on a grid; raise an error that names the metric without one."""
    reference = problem.reference if isinstance(problem, WithReference) else None
    if not isinstance(reference, Grid):
        raise ConcordError(
            f"metric {metric}: {type(problem).__name__} has no reference posterior on a grid; "
            "remove the metric"
        )
    return reference
