"""Steps of samplers on small problems and networks, for tests against equations by hand."""

from typing import Any, NamedTuple

import numpy as np

import concord
from concord.batch_gradients import MiniBatches
from concord.chains import Labels, sample_chains
from concord.laws import exact
from concord.laws.read_off import StepReader
from concord.loop import run
from concord.minibatches import batches_of
from concord.networks.construction import network
from concord.options import build
from concord.problem import CountedProblem
from concord.problems.quadratic_problem import QuadraticProblem
from concord.record import Record
from concord.sampling.initial import Law
from concord.sampling.schedules import Schedule

EXACT = 1e-12  # rounding only
CONSTANT, DECAYING = Schedule(0.013), Schedule(0.02, b=2.0, c=1.0, exponent=0.7)
NETWORKS = [
    network("complete", 6),
    network("ring", 5),
    network("star", 4),
    network("path", 3),
    network("no_edges", 4),
    network("edge_list", 5, edges=[[0, 1], [0, 4], [1, 2], [2, 3], [1, 4]]),
    network("ring", 2),
    network("no_edges", 1),
]
NAMES = [f"{each.name}-{each.agents}" for each in NETWORKS]


class Bare:
    """A standard normal target of which nothing but gradients is known."""

    def __init__(self, agents: int, dim: int = 2) -> None:
        self.agents, self.dim, self.posterior = agents, dim, None

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return x


class Quadratic(QuadraticProblem):
    """Potentials x'H_i x / 2 - b_i'x, (agents, dim, dim) and (agents, dim); any, of no law too."""

    def __init__(self, gram: Any, shift: Any) -> None:
        super().__init__(np.array(gram, float), np.array(shift, float))
        if np.linalg.eigvalsh(self.gram.sum(axis=0))[0] <= 0:
            self.posterior = None


class Regression(Quadratic):
    """A linear regression of agents with few points each, the last with one more.

    The prior is N(0, I), a share of it each agent's.
    """

    def __init__(self, agents: int, dim: int, points: int = 3) -> None:
        rng = np.random.default_rng([3, agents])
        self.counts = np.full(agents, points) + (np.arange(agents) == agents - 1)
        self.features = rng.standard_normal((agents, points + 1, dim))
        self.targets = rng.standard_normal((agents, points + 1))
        there = np.arange(points + 1) < self.counts[:, None]
        whole = self.features * there[..., None]
        super().__init__(
            np.einsum("apd,ape->ade", whole, whole) + np.eye(dim) / agents,
            np.einsum("apd,ap->ad", whole, self.targets),
        )

    def prior_gradient(self, x):
        return x / self.agents

    def batch_gradient(self, x, rows):
        agent = np.arange(self.agents)[:, None]
        features, targets = self.features[agent, rows], self.targets[agent, rows]
        errors = np.einsum("cabd,cad->cab", features, x) - targets
        scale = self.counts[:, None] / rows.shape[2]
        return scale * np.einsum("cab,cabd->cad", errors, features) + self.prior_gradient(x)


def logistic(agents: int = 4) -> Any:
    """Return a logistic regression, no quadratic form, whose minima are charged 50 gradients."""
    X = np.random.default_rng(2).standard_normal((10 * agents, 2))
    problem = concord.problems.logistic_regression(X, X[:, 0] > 0.3, agents=agents)
    solve = problem.minimize
    problem.minimize = lambda *arguments: (solve(*arguments)[0], 50)
    return problem


class Still:
    """A generator without normal noise, whose other numbers are random."""

    def __init__(self, seed: int = 1) -> None:
        self.rng = np.random.default_rng(seed)

    def standard_normal(self, size: Any = None, dtype: Any = float) -> np.ndarray:
        return np.zeros(size, dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rng, name)


def start(problem: Any, chains: int = 3, seed: int = 0) -> np.ndarray:
    """Return normal positions."""
    return np.random.default_rng(seed).standard_normal((chains, problem.agents, problem.dim))


class Steps(NamedTuple):
    """What steps have led to: the state after each, that of the start first, and the counts."""

    states: list[Any]
    x: np.ndarray  # (1 + steps, chains, agents, dim)
    network: Any
    gradients: np.ndarray


def steps_of(
    sampler: Any,
    problem: Any,
    net: Any,
    steps: int = 5,
    *,
    x0: np.ndarray | None = None,
    rng: Any = None,
) -> Steps:
    """Return what steps lead to from normal positions, or x0.

    rng: of the noise; None: seeded by 1.
    """
    x0 = start(problem) if x0 is None else x0
    rng = np.random.default_rng(1) if rng is None else rng
    if batches := batches_of(sampler):
        problem = MiniBatches(problem, batches, len(x0), rng)
    counted, found = CountedProblem(problem, len(x0)), []
    running = net.start(x0, *(np.random.default_rng(seed) for seed in (21, 22)))
    run(sampler, counted, running, x0, steps, rng, [lambda k, state: found.append(state)])
    return Steps(found, np.array([state.x for state in found]), running, counted.total)


def chain(sampler: Any, problem: Any, net: Any, steps: int = 5, **given: Any) -> np.ndarray:
    """Return the positions after each step, (1 + steps, chains, agents, dim)."""
    return steps_of(sampler, problem, net, steps, **given).x


def recorded(
    sampler: Any, problem: Any, net: Any, iterations: int, chains: int = 3, **record: Any
) -> Any:
    """Return the trace of a run from normal positions."""
    return sample_chains(
        sampler,
        problem,
        net,
        law=Law("normal"),
        record=build(Record, record, "tests"),
        chains=chains,
        iterations=iterations,
        seed=1,
        labels=Labels(),
    )


def limit(sampler: Any, problem: Any, net: Any) -> tuple[np.ndarray, ...]:
    """Return means (agents, dim), variances, and the average's moments after very many steps.

    From positions that are N(0, I). The last is the covariance of all positions together.
    """
    reader, (agents, dim) = StepReader(sampler, problem, net), (problem.agents, problem.dim)
    begin = exact.initial_moments(agents, dim, (0.0, 1.0), reader.start)
    mean, cov = exact.limit(reader.update().at(0), *begin)
    means, covs, *average = exact.marginals(mean, cov, agents, dim)
    size = agents * dim
    return means, covs.diagonal(axis1=1, axis2=2), *average, cov[:size, :size]
