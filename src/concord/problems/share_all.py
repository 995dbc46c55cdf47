"""Models with local coordinates, in which all agents hold, and send, all coordinates instead."""

import numpy as np

from concord.local_coordinates import embed_quadratics, name_coordinates, number_coordinates
from concord.problem import Problem, Quadratic, local_of, require_problem
from concord.problems import function_problem
from concord.problems.quadratic_problem import QuadraticProblem


def share_all(problem: Problem) -> Problem:
    """Return the same model as a problem without local coordinates.

    Its coordinates are the shared ones and then the local ones of one agent after another, which
    all agents hold and send. A problem without local coordinates is returned as it is.

    Parameters
    ----------
    problem
        A problem, such as ``concord.problems.quadratic(..., local=[False, True])``.

    Returns
    -------
    Problem
        With gradients, and potentials if the problem has them.

    Examples
    --------
    >>> import concord
    >>> H, b = [[[1.0, 1.0], [1.0, 2.0]]] * 4, [[0, 0], [1, 1], [2, 2], [3, 3]]
    >>> effects = concord.problems.quadratic(H, b, local=[False, True])
    >>> concord.share_all(effects).dim
    5
    """
    require_problem(problem)
    local, agents = local_of(problem), problem.agents
    if local is None:
        return problem
    agent_names = getattr(problem, "agent_names", None)
    coordinates = getattr(problem, "coordinate_names", None)
    names = name_coordinates(local, agent_names or range(agents), coordinates)
    if isinstance(problem, Quadratic):
        whole = QuadraticProblem(*embed_quadratics(problem.gram, problem.shift, local))
        whole.agent_names, whole.coordinate_names = agent_names, names
        return whole
    agent, places = np.arange(agents)[:, None], number_coordinates(local, agents)

    def gradient(x: np.ndarray) -> np.ndarray:
        """Return the gradients of f_i with respect to all coordinates, (chains, agents, size)."""
        slopes = np.zeros_like(x)
        slopes[:, agent, places] = problem.gradient(x[:, agent, places])
        return slopes

    potential = getattr(problem, "potential", None)
    shared = function_problem.Problem(
        gradient,
        agents=agents,
        dim=int(places.max()) + 1,
        potential=None if potential is None else lambda x: potential(x[:, agent, places]),
    )
    shared.agent_names, shared.coordinate_names = agent_names, names
    return shared
