r"""Laws of updates that fall apart along eigenvectors, such as :math:`x' = W x - \eta H x + w`.

Where all blocks of an update, of its noise and of the state's start have eigenvectors in common, v,
each of these is a system of its own (a mode), of as many entries as the state has blocks. The
covariance of the positions is :math:`\sum_v z_v v v^\top`, with z_v the variance of the mode, so
that an iteration costs as much as what is asked of it.
"""

from collections.abc import Sequence

import numpy as np

from concord.laws.exact import Affine, Marginals, Moments
from concord.laws.paths import DeterministicPath, Path

ROUNDING = 1e-13  # of what is off the diagonal, relative to the largest entry on it


class ModalPath(DeterministicPath):
    """The laws of a path in modes, which stand on the axis after the versions'.

    whole: the path. vectors: the eigenvectors, columns of (versions or 1, entries, entries).
    steps: the updates of a cycle.
    """

    def __init__(
        self, whole: DeterministicPath, vectors: np.ndarray, steps: list[Affine], start: Moments
    ) -> None:
        """Set up the laws in modes, given the moments of the modes at the start."""
        args = start, whole._agents, whole._dim, whole._mix, (0, len(steps))
        super().__init__(lambda k: steps[k % len(steps)], *args)
        self._whole, self._vectors = whole, vectors

    def limit(self) -> Marginals | None:
        """Return the laws in the limit, (versions, ...), of which modes know nothing more."""
        return self._whole.with_answers(self._mix).limit()

    def _position_matrix(self, moments: Moments) -> np.ndarray:
        """Return the matrix, (1, blocks), that maps a mode's state to its position."""
        return np.eye(1, moments[0].shape[-1])

    def _reduce(self, moments: Moments) -> Sequence[np.ndarray]:
        """Return means and variances of the modes' positions, each (versions, modes)."""
        return moments[0][..., 0], moments[1][..., 0, 0]

    def _expand(self, parts: Sequence[np.ndarray]) -> Marginals:
        """Return the laws of agents and of their average from the modes' positions."""
        agents, dim = self._agents, self._dim
        lead = self._vectors.reshape(-1, agents, dim, agents * dim)
        if self._mix is not None:
            lead = np.einsum("ij,vjda->vida", self._mix, lead)
        lead = np.concatenate([lead, lead.mean(axis=1, keepdims=True)], axis=1)

        def combine(part: np.ndarray, of: np.ndarray) -> np.ndarray:
            """Return numbers of modes, (..., versions, modes), times those of each answer."""
            moved = part.reshape(-1, *part.shape[-2:]).swapaxes(0, 1)
            product = moved @ of.reshape(len(of), -1, agents * dim).swapaxes(-1, -2)
            return product.swapaxes(0, 1).reshape(*part.shape[:-1], *of.shape[1:-1])

        mean = combine(parts[0], lead)
        # Row by row, since all products of two entries of all vectors are many.
        cov = np.empty((*mean.shape, dim))
        for row in range(dim):
            part = combine(parts[1], lead[..., row:, :] * lead[..., [row], :])
            cov[..., row, row:] = cov[..., row:, row] = part
        return Marginals(
            mean[..., :-1, :], cov[..., :-1, :, :], mean[..., -1, :], cov[..., -1, :, :]
        )


def find_modes(path: Path, rounding: float = ROUNDING) -> Path:
    """Return a path's laws in modes, or the path itself where it does not fall apart into any.

    rounding: by how much blocks may differ from diagonal ones, relative to a version's entries; a
    hundredth of that by how much the update of positions may differ from a symmetric one.
    """
    begin, period = path._cycle or (1, 1)
    if type(path) is not DeterministicPath or begin:
        return path
    size, (mean, cov) = path._agents * path._dim, path._start
    count = mean.shape[-1] // size
    whole = [path._step(k) for k in range(period)]
    first = whole[0].matrix[:, :size, :size]
    apart = np.abs(first - first.swapaxes(-1, -2)).max()
    if not (np.isfinite(first).all() and apart <= 1e-2 * rounding * np.abs(first).max()):
        return path

    def project(mean: np.ndarray) -> np.ndarray:
        """Return means, (versions, blocks * size), along the eigenvectors, (..., size, blocks)."""
        return (mean.reshape(-1, count, size) @ vectors).swapaxes(-1, -2)

    def turn(matrix: np.ndarray) -> np.ndarray:
        """Return a state matrix's blocks for each mode; ``ValueError`` if they are not diagonal."""
        parts = matrix.reshape(-1, count, size, count, size).swapaxes(2, 3)
        turned = vectors.swapaxes(-1, -2)[:, None, None] @ parts @ vectors[:, None, None]
        diagonals = np.diagonal(turned, axis1=-2, axis2=-1).copy()
        np.einsum("...aa->...a", turned)[...] = 0.0
        rest, scale = (
            np.abs(part).reshape(len(part), -1).max(axis=1) for part in (turned, diagonals)
        )
        if not (rest <= rounding * scale).all():
            raise ValueError("blocks have other eigenvectors")
        return np.moveaxis(diagonals, -1, 1)

    for some in (first[:1], first):
        vectors = np.linalg.eigh(some)[1]
        try:
            steps = [Affine(turn(s.matrix), project(s.offset), turn(s.noise)) for s in whole]
            return ModalPath(path, vectors, steps, (project(mean), turn(cov)))
        except ValueError:
            continue
    return path
