"""Base classes of problems whose gradients need a few numbers of each agent."""

from collections.abc import Callable

import numpy as np

from concord.laws.gaussian import Gaussian
from concord.laws.reference_laws import AnalyticLaw
from concord.problems._heterogeneity import Heterogeneity, draw_tilts
from concord.problems.one_data_set import OneDataSet


class TableProblem(OneDataSet):
    """A base class of problems whose gradients need a few numbers of each agent, not its points.

    ``tables`` are these numbers, each (agents, ...). A subclass has ``gradients_at(x, *tables)``,
    the gradients at x (..., dim) of the agents to which rows of the tables belong, and
    ``potentials_at(x, *tables)``, their potentials (...).
    """

    agents: int
    dim: int
    posterior = None
    tables: tuple[np.ndarray, ...]
    gradients_at: Callable[..., np.ndarray]
    potentials_at: Callable[..., np.ndarray]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient of every f_i at x_i; both are (chains, agents, dim)."""
        return self.gradients_at(x, *self.tables)

    def gradient_of(self, agents: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the gradients of chosen agents at their positions x, both (chains, few, dim).

        agents: their numbers, (chains, few), or (few,) where all chains choose the same.
        """
        return self.gradients_at(x, *(table[agents] for table in self.tables))

    def potential(self, x: np.ndarray) -> np.ndarray:
        """Return f_i(x_i), (chains, agents), for x (chains, agents, dim)."""
        return self.potentials_at(x, *self.tables)


class HeterogeneousProblem(TableProblem):
    """A base class of problems whose agents hold f/N and a tilt.

    ``concord.problems._heterogeneity`` has the equation. A subclass has ``energy(x)``, f at x (...,
    dim) up to a constant, of shape (...), and ``force(x)``, the gradient of f.
    """

    energy: Callable[[np.ndarray], np.ndarray]
    force: Callable[[np.ndarray], np.ndarray]

    def __init__(
        self, law: AnalyticLaw, agents: int, options: Heterogeneity, rng: np.random.Generator
    ) -> None:
        self.agents, self.dim, self.reference = agents, len(law.mean), law
        self.tables = draw_tilts(agents, Gaussian(law.mean, law.cov), options, rng)

    def potentials_at(self, x: np.ndarray, linear: np.ndarray, quadratic: np.ndarray) -> np.ndarray:
        """Return f(x)/N + b'x + x'Ax/2, (...): an agent's share of f, tilted.

        x: (..., dim). linear: b, (..., dim). quadratic: A, symmetric, (..., dim, dim).
        """
        slope = linear + 0.5 * (quadratic @ x[..., None])[..., 0]
        return self.energy(x) / self.agents + (x * slope).sum(axis=-1)

    def gradients_at(self, x: np.ndarray, linear: np.ndarray, quadratic: np.ndarray) -> np.ndarray:
        """Return the gradients (..., dim) of ``potentials_at``, from the same arguments."""
        return self.force(x) / self.agents + linear + (quadratic @ x[..., None])[..., 0]
