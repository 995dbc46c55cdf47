r"""Approximate laws of large problems, cheap enough to screen settings by.

``CoordinatewiseLaws`` works in the eigenbasis of the posterior's precision :math:`\sum_i H_i` and
drops what is off the diagonal of the :math:`H_i`, so that each coordinate is a problem of dimension
one, whose law costs a hundredth. The first updates before a periodic cycle are dropped, too. With
``mean`` all agents have their mean curvature, so that updates by W, or by the Laplacian, split into
a small system for each eigenvector of the network. Both keep the agents' gradients at the
posterior's mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from concord.laws import exact
from concord.laws.exact import Marginals, Moments
from concord.laws.law import laws_of_updates, laws_of_versions, update_of
from concord.laws.modes import ModalPath, find_modes
from concord.laws.paths import Path
from concord.laws.read_off import NoLaw
from concord.networks.network import Network
from concord.problems.gaussian_fit import Fit
from concord.problems.quadratic_problem import QuadraticProblem

ROUNDING = 1e-7  # of what screens only

Coordinates = tuple[np.ndarray, list[QuadraticProblem], Moments]


def split(fit: Fit, positions: Moments) -> Coordinates:
    """Split a Gaussian fit into problems of dimension one along the eigenvectors of its precision.

    Returns the basis, (dim, dim), the problems, and the means and variances of starts, (dim,).
    positions: mean and covariance of an agent's start.
    """
    basis = np.linalg.eigh(fit.hessians.sum(axis=0))[1]
    center, mean = basis.T @ fit.mean, np.broadcast_to(positions[0], fit.mean.shape)
    slopes = (fit.hessians @ fit.mean - fit.shift) @ basis
    curved = np.einsum("da,ide,ea->ia", basis, fit.hessians, basis)
    shifts = curved * center - slopes
    problems = [
        QuadraticProblem(curved[:, a, None, None], shifts[:, a, None]) for a in range(len(center))
    ]
    spread = positions[1]
    cov = spread**2 * np.eye(len(center)) if np.ndim(spread) == 0 else np.asarray(spread)
    return basis, problems, (basis.T @ mean, np.diag(basis.T @ cov @ basis))


class CoordinatewiseLaws:
    """Approximate laws of a sampler's settings on a Gaussian posterior, one coordinate at a time.

    The coordinates are those along the posterior's principal axes, taken to be independent.
    samplers: the settings. coordinates: what ``split`` returns. mean: whether all agents get their
    mean curvature, so that laws follow from the network's spectrum.
    """

    def __init__(
        self,
        samplers: Sequence[Any],
        coordinates: Coordinates,
        network: Network,
        mean: bool = False,
    ) -> None:
        """Compute a law of dimension one for each eigenvector of the fitted curvature."""
        self._basis, problems, (starts, spreads) = coordinates
        self._paths: list[Path] = []
        for problem, start, spread in zip(problems, starts, spreads, strict=True):
            coordinate_start = np.array([start]), np.array([[spread]])
            if mean:
                level = np.broadcast_to(problem.gram.mean(axis=0), problem.gram.shape)
                center = problem.posterior.mean
                slopes = (problem.gram @ center - problem.shift) - (level @ center)
                even = QuadraticProblem(level, -slopes)
                self._paths.append(_laws_by_eigenvectors(samplers, even, network, coordinate_start))
                continue
            every = [problem] * len(samplers)
            law = laws_of_versions(samplers, every, network, coordinate_start, most=np.inf)
            self._paths.append(law.periodic_part())

    def with_answers(self, mix: np.ndarray | None) -> CoordinatewiseLaws:
        """Return the laws after a read-out, a matrix (agents, agents)."""
        other = object.__new__(CoordinatewiseLaws)
        other._basis, other._paths = self._basis, [path.with_answers(mix) for path in self._paths]
        return other

    def marginals_at(self, iterations: Sequence[int]) -> Marginals:
        """Return the laws at increasing iterations, first axes (iterations, versions)."""
        return self._merge([path.marginals_at(iterations) for path in self._paths])

    def time_average(self, iterations: int) -> Marginals | None:
        """Return the laws of time averages, as ``Path.time_average`` does."""
        parts = [path.time_average(iterations) for path in self._paths]
        computed = [part for part in parts if part is not None]
        return self._merge(computed) if len(computed) == len(parts) else None

    def _merge(self, parts: Sequence[Marginals]) -> Marginals:
        """Merge the laws of all coordinates into laws in the original basis."""
        basis = self._basis

        def mean(name: str) -> np.ndarray:
            """Return the means of all coordinates in the original basis, by field."""
            return np.concatenate([getattr(part, name) for part in parts], axis=-1) @ basis.T

        def cov(name: str) -> np.ndarray:
            """Return the covariances of all coordinates in the original basis, by field."""
            along = np.concatenate([getattr(part, name)[..., 0] for part in parts], axis=-1)
            return (basis * along[..., None, :]) @ basis.T

        return Marginals(mean("mean"), cov("cov"), mean("average_mean"), cov("average_cov"))


def _laws_by_eigenvectors(
    samplers: Sequence[Any],
    problem: QuadraticProblem,
    network: Network,
    positions: Moments,
) -> Path:
    """Return the laws of a sampler's settings, one eigenvector of the network at a time.

    problem: of dimension one, with the same curvature for all agents. positions: mean and
    covariance of an agent's start. Raises ``NoLaw`` where the blocks of an update have no
    eigenvectors in common.
    """
    agents = problem.agents

    def no_law(why: str) -> NoLaw:
        """Return the error that says why the spectrum of the network gives no law."""
        return NoLaw(
            f"laws of {agents} agents are computed by the network's spectrum, but {why}; sample it"
        )

    if not network.is_lossless:
        raise no_law("here not every vector arrives")
    updates = [update_of(sampler, problem, network) for sampler in samplers]
    starts = [exact.initial_moments(agents, 1, positions, update.start) for update in updates]
    path = find_modes(laws_of_updates(updates, starts, network, 1), ROUNDING)
    if not isinstance(path, ModalPath):
        raise no_law("its updates change, or their parts have no eigenvectors in common")
    return path
