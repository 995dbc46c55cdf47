"""The posterior of two parameters as each agent's draws have it, on a coarse grid."""

from collections.abc import Iterator

import numpy as np

from concord.laws.gaussian import Gaussian
from concord.laws.quadrature import Grid, from_log_density
from concord.problem import Problem
from concord.reference import WithReference
from concord_studies.metrics import Measurement, Row, yields
from concord_studies.metrics._references import check_grid, require_grid

CELLS = 44
POSTERIOR = "posterior"  # an agent of its own


def _check_dim(problem: Problem) -> None:
    """Refuse a problem that has neither a normal posterior of two parameters nor one on a grid."""
    if problem.dim != 2 or problem.posterior is None:
        check_grid("posterior_density", problem)


@yields(("density", "cell_[01]"), records=("draws",), check_problem=_check_dim)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the density of draws in the cells of a grid, per agent, and the posterior's own.

    The column iteration has the number of a cell: its row (first parameter) times the number of
    columns plus its column. cell_0, cell_1: center of each row and column, with its edges as lo and
    hi. density: mass over area, per agent, and for the agent "posterior" that of the exact law.
    """
    law = None if isinstance(m.problem, WithReference) else m.problem.posterior
    exact = require_grid(m.problem, "posterior_density") if law is None else _tabulate_normal(law)
    edges = []
    for axis in range(2):
        tails = np.interp([1e-3, 1 - 1e-3], exact.cdf(axis), exact.edges[axis])
        margin = 0.12 * (tails[1] - tails[0])
        edges.append(np.linspace(tails[0] - margin, tails[1] + margin, CELLS + 1))
        for cell, (low, high) in enumerate(zip(edges[axis][:-1], edges[axis][1:], strict=True)):
            yield Row(cell, "network", f"cell_{axis}", 0.5 * (low + high), low, high, False)
    area = float(np.prod([edge[1] - edge[0] for edge in edges]))
    yield from _density_rows(POSTERIOR, exact.rebin((edges[0], edges[1])) / area, chance=False)
    late = m.trace["x"][:, m.late]
    for column, agent in enumerate(m.agents):
        draws = late[:, :, column].reshape(-1, 2)
        count, _, _ = np.histogram2d(draws[:, 0], draws[:, 1], bins=edges)
        if not np.isfinite(draws).all():
            count[:] = np.nan
        yield from _density_rows(agent, count / (len(draws) * area), chance=True)


def _tabulate_normal(law: Gaussian) -> Grid:
    """Return a normal law of two parameters on a grid of 320 cells a side, to 9 sd either way."""
    precision, half = np.linalg.inv(law.cov), 9 * np.sqrt(np.diag(law.cov))

    def log_density(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the normal law's log density of two parameters, up to a constant."""
        a, b = first - law.mean[0], second - law.mean[1]
        cross = precision[0, 1] * a * b
        return -0.5 * (precision[0, 0] * a**2 + precision[1, 1] * b**2) - cross

    low, high = law.mean - half, law.mean + half
    return from_log_density(log_density, ((low[0], high[0]), (low[1], high[1])), 320)


def _density_rows(agent: str, density: np.ndarray, chance: bool) -> Iterator[Row]:
    """Yield a density as one row per cell of the grid."""
    for cell, value in enumerate(density.ravel()):
        yield Row(cell, agent, "density", value, chance=chance)
