"""Problems of two parameters whose posterior is known on a grid, and many data sets of one model.

All three have the prior N(0, I), which parameters are drawn from for simulation-based calibration.
"""

import dataclasses
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from msgspec.structs import replace

from concord import streams
from concord.laws import quadrature
from concord.problems.kinds import linear_regression, logistic_regression, tied_mixture
from concord.sampling import partition
from concord.sampling.partition import AgentData

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
        tied_mixture,
        tied_mixture.Params(points=10, prior_variances=(1.0, 1.0), variance=1.0),
        11.0,
    ),
}


def build(model: Model, agents: int, *labels: str | int, params: Any = None) -> Any:
    """Return the problem of the data set that labels name, the same for any number of agents."""
    return model.module.build(
        params or model.params,
        agents,
        SPLIT,
        lambda what: streams.generator(1, "calibration", *labels, what),
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


class Many:
    """Problems of R data sets at once: chain c holds data set c mod R.

    ``problem`` has the agents of all data sets, R times as many, so that the project's own
    gradients are computed.
    """

    posterior = None

    def __init__(self, problem: Any, sets: int) -> None:
        self._problem, self._sets = problem, sets
        self.agents, self.dim = problem.agents // sets, problem.dim
        self.counts = problem.counts[: self.agents]

    def _wide(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(-1, self._problem.agents, self.dim)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self._problem.gradient(self._wide(x)).reshape(x.shape)

    def minimize(
        self, linear: np.ndarray, curvature: np.ndarray, start: np.ndarray, agents: Any = None
    ) -> tuple[np.ndarray, Any]:
        wide, each = (self._wide(x) for x in (linear, start)), np.tile(curvature, self._sets)
        linear_wide, start_wide = wide
        x, cost = self._problem.minimize(linear_wide, each, start_wide)
        return x.reshape(linear.shape), cost if np.ndim(cost) == 0 else cost.reshape(
            len(linear), -1
        )

    def potential(self, x: np.ndarray) -> np.ndarray:
        return self._problem.potential(self._wide(x)).reshape(len(x), self.agents)


def data_sets(name: str, agents: int, sets: int, label: str) -> tuple[np.ndarray, list[Any]]:
    """Return parameters drawn from the prior, (sets, 2), and a problem of data drawn from each.

    Labels name independent ones.
    """
    model = MODELS[name]
    if name == "tied_mixture":
        truth = streams.generator(1, "calibration", label, "prior").standard_normal((sets, 2))
        laws = [replace(model.params, truth=tuple(theta)) for theta in truth]
        return truth, [build(model, agents, label, r, params=law) for r, law in enumerate(laws)]
    problems = [build(model, agents, label, r) for r in range(sets)]
    if name == "logistic_regression":
        return np.array([problem.truth for problem in problems]), problems
    # The first numbers of the stream of the data; the regression does not keep them.
    data = [streams.generator(1, "calibration", label, r, "data") for r in range(sets)]
    return np.array([rng.standard_normal(2) for rng in data]), problems


def together(name: str, problems: list[Any]) -> Any:
    """Return one problem of many data sets: chain c holds the one of c mod their number."""
    if name == "tied_mixture":
        return tied_mixture.TiedMixtures(problems, lambda what: streams.generator(1, what))
    data = AgentData(
        np.concatenate([problem.data.features for problem in problems]),
        np.concatenate([problem.data.targets for problem in problems]),
        np.concatenate([problem.data.counts for problem in problems]),
    )
    # Each agent holds 1/N of the prior N(0, I), where N is the agents of one data set.
    variance = "prior_variance" if name == "linear_regression" else "prior_scale"
    whole = {"prior_share": "whole", variance: float(problems[0].agents)}
    params = replace(MODELS[name].params, **whole)
    kind = {
        "linear_regression": linear_regression.LinearRegression,
        "logistic_regression": logistic_regression.LogisticRegression,
    }[name]
    return Many(kind(data, params), len(problems))


def truth_ranks(
    problem: Any, truth: np.ndarray, draws: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return the ranks of parameters (R, 2) among draws (L, R, 2) of their posteriors.

    Of each parameter and of the posterior's density, which also sees draws that ignore the data
    (Modrak et al. 2023). A rank r of 0, ..., L becomes (r + U) / (L + 1), U uniform: exactly
    uniform on (0, 1) if the draws are right.
    """

    def potential(x: np.ndarray) -> np.ndarray:
        everywhere = np.repeat(x.reshape(-1, 1, 2), problem.agents, axis=1)
        return problem.potential(everywhere).sum(axis=1).reshape(x.shape[:-1])

    quantities = {
        "coordinate 0": (truth[:, 0], draws[..., 0]),
        "coordinate 1": (truth[:, 1], draws[..., 1]),
        "density": (-potential(truth[None])[0], -potential(draws)),
    }
    return {
        name: ((among < own).sum(axis=0) + rng.random(len(own))) / (len(among) + 1)
        for name, (own, among) in quantities.items()
    }
