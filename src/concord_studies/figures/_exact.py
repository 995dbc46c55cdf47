"""The exact posterior density of two parameters, in maps and under draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LinearSegmentedColormap

from concord_studies import results
from concord_studies.figures import style
from concord_studies.results import Measured

EXACT = "posterior"
LINE: dict[str, Any] = {"color": style.VERMILION, "linewidth": 0.8}
MAP = LinearSegmentedColormap.from_list("density", ["#ffffff", "#9ecae1", style.BLUE, "#08306b"])


def density_of(run: Measured, agent: int | str) -> np.ndarray:
    """Return the density of an agent's draws, or the exact one, in the cells of the grid."""
    return results.series(run, "density", agent).value


def mass_levels(density: np.ndarray, mass: Sequence[float]) -> list[float]:
    """Return the densities whose upper level sets hold the given parts of the mass."""
    falling = np.sort(density, axis=None)[::-1]
    held = np.cumsum(falling) / falling.sum()
    return sorted({float(falling[np.searchsorted(held, part)]) for part in mass})


@dataclass(frozen=True)
class Exact:
    """The exact posterior density on a grid, shape (cells of the first, of the second parameter).

    ``edges`` are those of the cells along each axis; contours are at ``levels``.
    """

    edges: list[np.ndarray]
    density: np.ndarray
    levels: list[float]

    @classmethod
    def from_run(cls, run: Measured, mass: Sequence[float]) -> Self:
        """Read the exact density from a run's metrics."""
        cells = [results.series(run, f"cell_{axis}", "network") for axis in range(2)]
        edges = [np.append(cell.lo, cell.hi[-1]) for cell in cells]
        density = density_of(run, EXACT)
        shape = [len(edge) - 1 for edge in edges]
        return cls(edges, density.reshape(shape), mass_levels(density, mass))

    @property
    def area(self) -> float:
        """The area of one cell of the grid."""
        return float(np.prod([edge[1] - edge[0] for edge in self.edges]))

    def shade(self, axes: Axes, density: np.ndarray, vmax: float | None = None) -> QuadMesh:
        """Draw densities of the grid's cells as a map."""
        values = density.reshape(self.density.shape).T
        return axes.pcolormesh(*self.edges, values, cmap=MAP, vmin=0, vmax=vmax, rasterized=True)

    def contour(self, axes: Axes) -> None:
        """Draw the contours of the exact density."""
        centers = [0.5 * (edge[1:] + edge[:-1]) for edge in self.edges]
        look = {"colors": LINE["color"], "linewidths": LINE["linewidth"]}
        axes.contour(*centers, self.density.T, levels=self.levels, **look)
        axes.grid(False)
