"""Problems of two parameters whose posterior is known on a grid, with the prior N(0, I)."""

import dataclasses
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from concord import streams
from concord.laws import quadrature
from concord.problems.kinds import linear_regression, logistic_regression, tied_mixture
from concord.sampling import partition

NOWHERE = Path("unused")
SPLIT = partition.Partition.parse({"kind": "equal"}, "tests")


@dataclasses.dataclass(frozen=True)
class Model:
    """A kind of problem with its options, and about the largest curvature of -log posterior."""

    module: ModuleType
    params: Any
    curvature: float


MODELS = {
    "linear_regression": Model(linear_regression, linear_regression.Params(points=12), 15.0),
    "logistic_regression": Model(
        logistic_regression, logistic_regression.Params(points=12, feature_variance=3.0), 9.0
    ),
    "tied_mixture": Model(
        tied_mixture, tied_mixture.Params(points=10, prior_variances=(1.0, 1.0), variance=1.0), 11.0
    ),
}


def build(name: str, agents: int) -> Any:
    """Return the problem of one data set, the same for any number of agents."""
    return MODELS[name].module.build(
        MODELS[name].params,
        agents,
        SPLIT,
        lambda what: streams.generator(1, "calibration", "one", what),
        NOWHERE,
    )


class Posterior:
    """The exact posterior of a problem, from the potential of one agent that holds all the data."""

    def __init__(self, alone: Any) -> None:
        def log_density(first: np.ndarray, second: np.ndarray) -> np.ndarray:
            x = np.stack(np.broadcast_arrays(first, second), axis=-1)
            return -alone.potential(x.reshape(-1, 1, 2)).reshape(x.shape[:-1])

        self.grid = quadrature.from_log_density(log_density, ((-8.0, 8.0), (-8.0, 8.0)), 300)
        order = np.argsort(self.grid.density, axis=None)
        self._density = self.grid.density.ravel()[order]
        self._mass = np.cumsum(self.grid.mass.ravel()[order])

    def ranks(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the ranks of draws x (n, 2): of each parameter, and of the density at the draw."""
        found, cells = {}, []
        for axis, edges in enumerate(self.grid.edges):
            found[f"coordinate {axis}"] = np.interp(x[:, axis], edges, self.grid.cdf(axis))
            cell = (x[:, axis] - edges[0]) / self.grid.steps[axis]
            cells.append(np.clip(cell, 0, len(edges) - 2).astype(int))
        inside = self.grid.density[tuple(cells)]
        found["density"] = np.interp(inside, self._density, self._mass)
        return found
