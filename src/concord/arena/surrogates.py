r"""Laws of large networks by small ones, to choose settings by; not exact.

``Coordinates``: in the eigenbasis of the posterior's precision :math:`\sum_i H_i`, what is off the
diagonal of the H_i dropped: as many networks of dimension one, whose laws cost a hundredth.
``Spectrum``: besides, agents have their mean curvature in place of their own, so that updates by W,
or by the Laplacian, fall apart into one small system for each eigenvector. What agents' gradients
are at the posterior's mean is kept by both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from concord.laws import exact
from concord.laws.exact import Affine, Moments, Seen
from concord.laws.paths import Determined, Path, Turn, turn_of
from concord.metrics import _laws
from concord.networks.topology import Topology
from concord.problems._fit import Fit
from concord.problems._quadratic import QuadraticProblem


def along(found: Fit, positions: Moments) -> tuple[np.ndarray, list[QuadraticProblem], Moments]:
    """Return the eigenbasis (dim, dim), a problem for each of its vectors, and starts along them."""
    basis = np.linalg.eigh(found.hessians.sum(axis=0))[1]
    center, mean = basis.T @ found.mean, np.broadcast_to(positions[0], found.mean.shape)
    slopes = (found.hessians @ found.mean - found.shift) @ basis
    curved = np.einsum("da,ide,ea->ia", basis, found.hessians, basis)
    shifts = curved * center - slopes
    problems = [
        QuadraticProblem(curved[:, a, None, None], shifts[:, a, None]) for a in range(len(center))
    ]
    spread = positions[1]
    cov = spread**2 * np.eye(len(center)) if np.ndim(spread) == 0 else np.asarray(spread)
    return basis, problems, (basis.T @ mean, np.diag(basis.T @ cov @ basis))


class Coordinates:
    """The laws of versions of a sampler, each with options, as those of one coordinate after another.

    mean: take the mean curvature of agents, and the network's spectrum.
    """

    def __init__(
        self,
        sampler: Any,
        found: Fit,
        topology: Topology,
        params: Sequence[Any],
        positions: Moments,
        mean: bool = False,
    ) -> None:
        self._basis, problems, (starts, spreads) = along(found, positions)
        self._paths: list[Path] = []
        for problem, start, spread in zip(problems, starts, spreads, strict=True):
            own = np.array([start]), np.array([[spread]])
            if mean:
                level = np.broadcast_to(problem.gram.mean(axis=0), problem.gram.shape)
                center = problem.posterior.mean
                slopes = (problem.gram @ center - problem.shift) - (level @ center)
                even = QuadraticProblem(level, -slopes)
                self._paths.append(_spectrum(sampler, even, topology, params, own))
                continue
            every = [problem] * len(params)
            self._paths.append(
                _laws.of_versions(sampler, every, topology, params, own, most=np.inf)
            )

    def reading(self, mix: np.ndarray | None) -> Coordinates:
        """Return the same laws with other answers, as ``Path`` does."""
        other = object.__new__(Coordinates)
        other._basis, other._paths = self._basis, [path.reading(mix) for path in self._paths]
        return other

    def at(self, iterations: Sequence[int]) -> Seen:
        """Return the laws at increasing iterations, first axes (iterations, versions)."""
        parts = [path.at(iterations) for path in self._paths]
        means = (np.concatenate([getattr(p, name) for p in parts], axis=-1) @ self._basis.T
                 for name in ("mean", "average_mean"))  # fmt: skip
        covs = (
            (self._basis * np.concatenate([getattr(p, name)[..., 0] for p in parts], axis=-1)[..., None, :])
            @ self._basis.T
            for name in ("cov", "average_cov")
        )
        (mean, average), (cov, spread) = means, covs
        return Seen(mean, cov, average, spread)


class _Modes(Determined):
    """Laws by eigenvectors of the network, (agents, agents): modes stand on the second axis."""

    vectors: np.ndarray

    def _seen(self, moments: Moments) -> Seen:
        lead = self.vectors if self._mix is None else self._mix @ self.vectors
        mean, spread = moments[0][..., 0], moments[1][..., 0, 0]
        whole = lead.mean(axis=0)
        return Seen(
            (mean @ lead.T)[..., None],
            (spread @ (lead**2).T)[..., None, None],
            (mean @ whole)[..., None],
            (spread @ whole**2)[..., None, None],
        )


def _spectrum(
    sampler: Any,
    problem: QuadraticProblem,
    topology: Topology,
    params: Sequence[Any],
    positions: Moments,
) -> Path:
    """Return the laws of versions on agents of one curvature, of dimension one.

    ``NoLaw`` where the parts of an update have no eigenvectors in common.
    """
    agents, vectors = problem.agents, np.empty(0)
    if not topology.conditions.perfect:
        raise _laws.NoLaw(f"of {agents} agents no law is computed where vectors get lost")
    steps: list[list[Affine]] = []
    starts, turns = [], set[Turn | None]()

    def modes(matrix: np.ndarray) -> np.ndarray:
        """Return the blocks of a matrix by eigenvectors, (agents, blocks, blocks)."""
        count = len(matrix) // agents
        parts = matrix.reshape(count, agents, count, agents).swapaxes(1, 2)
        turned = vectors.T @ parts @ vectors
        found = np.diagonal(turned, axis1=2, axis2=3)
        rest = turned - found[..., None] * np.eye(agents)
        if np.abs(rest).max() > 1e-7 * max(np.abs(found).max(), 1e-300):
            raise _laws.NoLaw("the parts of its update have no eigenvectors in common")
        return np.moveaxis(found, 2, 0)

    for own in params:
        update = _laws.update_of(sampler, problem, topology, own)
        turn = turn_of(update)
        turns.add(turn)
        if turn is None or turn[0] or len(turns) > 1:
            raise _laws.NoLaw("its updates do not repeat from the first one on")
        each = [update.at(k) for k in range(turn[1])]
        if not vectors.size:
            first = each[0].matrix[:agents, :agents]
            if not np.allclose(first, first.T, atol=1e-12):
                raise _laws.NoLaw("its update is not symmetric")
            vectors = np.linalg.eigh(first)[1]
        blocks = len(each[0].offset) // agents

        def turned(mean: np.ndarray, blocks: int = blocks) -> np.ndarray:
            return (mean.reshape(blocks, agents) @ vectors).T

        steps.append([Affine(modes(s.matrix), turned(s.offset), modes(s.noise)) for s in each])
        mean, cov = exact.initial(agents, 1, positions, *update.auxiliary)
        starts.append((turned(mean), modes(cov)))
    period = next(iter(turns))[1]  # type: ignore[index]
    whole = [Affine.stacked([own[k] for own in steps]) for k in range(period)]
    begun = tuple(np.stack(parts) for parts in zip(*starts, strict=True))
    path = _Modes(lambda k: whole[k % period], begun, agents, 1, None, (0, period))  # type: ignore[arg-type]
    path.vectors = vectors
    return path
