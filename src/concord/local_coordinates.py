r"""Local coordinates: those that belong to the agent who holds them, such as a hospital's effect.

A problem may have a mask ``local``, (dim,). Agent i's position is then :math:`x_i = (\theta, u_i)`
in some order, and the posterior that of the whole model,

.. math:: \pi(\theta, u_1, \dots, u_N) \propto \exp\Bigl(-\sum_i f_i(\theta, u_i)\Bigr).

The network sends what is shared alone. Where a sampler's network average moves as a Langevin step
of theta with step size eta / N, and each u_i with eta, both have pi as their law at small steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from concord.errors import ConcordError, nearest, short
from concord.laws.gaussian import Gaussian
from concord.laws.reference_laws import Draws
from concord.reference import Reference
from concord.summary import Summarized


def read_local(local: object, dim: int, names: Sequence[str] | None = None) -> np.ndarray | None:
    """Return a caller's mask of local coordinates, (dim,); None where none is local.

    local: such a mask, or some of the coordinates' names. names: of all coordinates, if they have
    any.
    """
    if local is None:
        return None
    mask = np.asarray(local)
    if names is not None and mask.ndim == 1 and mask.dtype.kind == "U":
        for name in mask.tolist():
            if name not in names:
                raise ConcordError(f"local: there is no column {name!r}; {nearest(name, names)}")
        mask = np.isin(names, mask)
    if mask.dtype != bool or mask.shape != (dim,):
        raise ConcordError(
            f"local: {short(local)} is no mask of {dim} coordinates; give a list of {dim} values, "
            "True where the coordinate belongs to the agent who holds it"
        )
    if mask.all():
        raise ConcordError("local: agents share no coordinate; give each a problem of its own")
    return mask if mask.any() else None


def number_coordinates(local: np.ndarray, agents: int) -> np.ndarray:
    """Return the places of each agent's coordinates among those of the whole model, (agents, dim).

    The whole model has the shared coordinates, and then the local ones of one agent after another.
    local: the mask of local coordinates, (dim,).
    """
    shared, own = np.cumsum(~local) - 1, np.cumsum(local) - 1
    first = (~local).sum() + local.sum() * np.arange(agents)[:, None]
    return np.where(local, first + own, shared)


def name_coordinates(
    local: np.ndarray, agents: Sequence[object], names: Sequence[str] | None
) -> tuple[str, ...]:
    """Return names of the coordinates of the whole model, as ``number_coordinates`` numbers them.

    agents: their names or numbers. names: of the coordinates, (dim,); None: x[0], x[1], ...
    """
    of = names or [f"x[{j}]" for j in range(len(local))]
    shared = [name for name, is_own in zip(of, local, strict=True) if not is_own]
    own = [name for name, is_own in zip(of, local, strict=True) if is_own]
    who = [each if isinstance(each, str) else f"agent {each}" for each in agents]
    return tuple(shared + [f"{name} of {agent}" for agent in who for name in own])


def embed_quadratics(
    gram: np.ndarray, shift: np.ndarray, local: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return quadratic potentials as functions of all coordinates of the whole model.

    gram, shift: H_i and b_i of f_i(x) = x^T H_i x / 2 - b_i^T x, (agents, dim, dim) and (agents,
    dim). Returns them in the size of the whole model.
    """
    places = number_coordinates(local, len(shift))
    size, agent = places.max() + 1, np.arange(len(shift))[:, None]
    whole_gram, whole_shift = np.zeros((len(shift), size, size)), np.zeros((len(shift), size))
    whole_gram[agent[..., None], places[:, :, None], places[:, None]] = gram
    whole_shift[agent, places] = shift
    return whole_gram, whole_shift


def posterior_of_quadratics(
    gram: np.ndarray, shift: np.ndarray, local: np.ndarray
) -> PosteriorByAgent:
    """Return the exact posterior of quadratic potentials (``embed_quadratics``)."""
    whole_gram, whole_shift = embed_quadratics(gram, shift, local)
    cov = np.linalg.inv(whole_gram.sum(axis=0))
    return PosteriorByAgent(Gaussian(cov @ whole_shift.sum(axis=0), cov), local, len(shift))


@dataclass(frozen=True, repr=False, eq=False)
class PosteriorByAgent(Summarized):
    """The posterior of a model with local coordinates, with which agents are compared one by one.

    whole: the posterior of all coordinates, numbered as by ``number_coordinates``.
    local, agents: the mask of local coordinates, (dim,), and the number of agents.

    What an agent holds has the marginal of the shared and its own coordinates. The agents' average
    has the law of that average: of what is shared, and of the mean of their local coordinates.
    """

    whole: Reference
    local: np.ndarray
    agents: int

    @property
    def draws(self) -> float:
        """The number of independent draws behind the moments. Infinite where they are exact."""
        return self.whole.draws

    def of(self, agent: int | str) -> Gaussian | Draws:
        """Return the law of an agent's coordinates, by its number, or of the ``average``."""
        matrix = self._selections[-1 if agent == "average" else int(agent)]
        if isinstance(self.whole, Draws):
            return Draws(self.whole.values @ matrix.T, self.whole.weights)
        mean, cov = self.whole.moments()
        return Gaussian(matrix @ mean, matrix @ cov @ matrix.T)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return means (agents + 1, dim) and covariances (agents + 1, dim, dim).

        The last are those of the average.
        """
        mean, cov = self.whole.moments()
        maps = self._selections
        return maps @ mean, maps @ cov @ maps.swapaxes(1, 2)

    def monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of each x_j and x_j^2 of each agent, both (agents + 1, 2 dim).

        The last are those of the average.
        """
        each = [self.of(agent).monomials() for agent in (*range(self.agents), "average")]
        means, variances = map(np.stack, zip(*each, strict=True))
        return means, variances

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return independent draws of all agents and their average, (count, agents + 1, dim)."""
        return np.matvec(self._selections, self.whole.sample(count, rng)[:, None])

    def summary(self) -> dict[str, object]:
        """Return the numbers of agents, and of shared and local coordinates of each."""
        local = int(self.local.sum())
        return {"agents": self.agents, "shared": len(self.local) - local, "local": local}

    @cached_property
    def _selections(self) -> np.ndarray:
        """The matrices that map the whole model to each agent and the average, by agent."""
        places = number_coordinates(self.local, self.agents)
        each = np.eye(places.max() + 1)[places]
        return np.concatenate([each, each.mean(axis=0)[None]])
