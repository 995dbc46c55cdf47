r"""Posteriors of two parameters, known up to a constant, on a dense grid.

The midpoint rule on the box that holds the mass integrates a smooth density that has decayed at the
box's border with an error far below 1e-6, so densities, distribution functions and draws made here
stand for the exact posterior where no closed form exists.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from concord.summary import WithMoments

LogDensity = Callable[[np.ndarray, np.ndarray], np.ndarray]

# The box ends where the log density lies this far below its maximum: e^-32 is 1e-14.
DROP = 32.0
COARSE = 300


@dataclass(frozen=True, repr=False)
class Grid(WithMoments):
    """A density on the cells of a grid in two dimensions.

    edges: cell edges along each axis, shapes (m + 1,) and (n + 1,), evenly spaced.
    density: normalized density at the cells' centers, shape (m, n).
    """

    edges: tuple[np.ndarray, np.ndarray]
    density: np.ndarray
    draws: ClassVar[float] = math.inf

    @property
    def steps(self) -> tuple[float, float]:
        """The width and height of a cell."""
        first, second = (float(edge[1] - edge[0]) for edge in self.edges)
        return first, second

    @property
    def centers(self) -> tuple[np.ndarray, np.ndarray]:
        """The centers of the cells along each axis, (m,) and (n,)."""
        first, second = (0.5 * (edge[1:] + edge[:-1]) for edge in self.edges)
        return first, second

    @cached_property
    def mass(self) -> np.ndarray:
        """The probability of each cell, shape (m, n)."""
        first, second = self.steps
        return self.density * (first * second)

    def cdf(self, axis: int) -> np.ndarray:
        """Return the distribution function of one parameter at the cell edges of its axis."""
        total = np.concatenate([[0.0], np.cumsum(self.mass.sum(axis=1 - axis))])
        return total / total[-1]

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        """Return quantiles of both parameters, (levels, 2), at levels from 0 to 1."""
        both = [np.interp(levels, self.cdf(axis), self.edges[axis]) for axis in range(2)]
        return np.stack(both, axis=1)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean (2,) and covariance (2, 2)."""
        mass = self.mass
        points = np.stack(np.meshgrid(*self.centers, indexing="ij"), axis=-1)
        mean = np.einsum("mn,mnd->d", mass, points)
        centered = points - mean
        return mean, np.einsum("mn,mnd,mne->de", mass, centered, centered)

    def monomials(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of x_1, x_2, x_1^2, x_2^2, both (4,)."""
        masses = [self.mass.sum(axis=1 - axis) for axis in range(2)]
        marginals = list(zip(masses, self.centers, strict=True))
        first, second, fourth = (
            np.array([mass @ center**power for mass, center in marginals]) for power in (1, 2, 4)
        )
        means = np.concatenate([first, second])
        return means, np.concatenate([second, fourth]) - means**2

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return ``count`` independent draws, shape (count, 2).

        A cell is drawn by its probability, then a point of it uniformly: no draw is further than a
        cell from one of the density itself.
        """
        cumulative = np.cumsum(self.mass.ravel())
        u = rng.random(count) * cumulative[-1]
        cell = np.minimum(np.searchsorted(cumulative, u, side="right"), cumulative.size - 1)
        corner = np.stack(np.unravel_index(cell, self.density.shape), axis=1)
        draws = corner + rng.random((count, 2))
        draws *= self.steps
        draws += [edge[0] for edge in self.edges]
        return draws

    def rebin(self, edges: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the probability of each cell of a coarser grid, from the distribution function.

        The mass within a cell of this grid is taken as uniform.
        """
        first, second = self.steps
        joint = np.zeros(np.add(self.density.shape, 1))
        joint[1:, 1:] = self.density.cumsum(axis=0).cumsum(axis=1) * (first * second)
        along = np.stack([np.interp(edges[0], self.edges[0], column) for column in joint.T], axis=1)
        both = np.stack([np.interp(edges[1], self.edges[1], row) for row in along])
        mass = np.diff(np.diff(both, axis=0), axis=1)
        return np.maximum(mass, 0.0, out=mass)  # differences of equal numbers may round below 0


def from_log_density(
    log_density: LogDensity, box: tuple[tuple[float, float], tuple[float, float]], cells: int
) -> Grid:
    """Compute the grid of a density in two dimensions that is given up to a constant.

    log_density: maps arrays of first and second parameters, which broadcast, to log densities.
    box: ends of each axis of a box that surely holds the mass; the grid covers the part of it where
    the density is not negligible.
    cells: number of cells along each axis.
    """
    for _ in range(2):
        box = _shrink_box(log_density, box)
    edges = tuple(np.linspace(low, high, cells + 1) for low, high in box)
    first, second = (0.5 * (edge[1:] + edge[:-1]) for edge in edges)
    log = log_density(first[:, None], second[None, :])
    density = np.exp(log - log.max())
    area = (edges[0][1] - edges[0][0]) * (edges[1][1] - edges[1][0])
    return Grid((edges[0], edges[1]), density / (density.sum() * area))


def _shrink_box(
    log_density: LogDensity, box: tuple[tuple[float, float], tuple[float, float]]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the part of a box where a density is not negligible, with a margin of one cell."""
    axes = [np.linspace(low, high, COARSE) for low, high in box]
    log = log_density(axes[0][:, None], axes[1][None, :])
    inside = log > log.max() - DROP
    ends = []
    for axis, points in enumerate(axes):
        cells = np.flatnonzero(inside.any(axis=1 - axis))
        low, high = max(cells[0] - 1, 0), min(cells[-1] + 1, points.size - 1)
        ends.append((float(points[low]), float(points[high])))
    return ends[0], ends[1]
