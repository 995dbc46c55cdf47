"""What every problem promises: its gradients are those of its potential, whatever the estimate.

Problems that read downloaded data are tested beside this file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from concord import plugins
from concord.contracts import Batched
from concord.errors import ConcordError
from concord.sampling import partition, streams
from concord.sampling.gradients import estimator
from concord.testing import CHECKS, Inapplicable
from variants import variants

AGENTS, CHAINS = 3, 2


def accepted(module, params):
    """Tell whether the problem can be built, and without downloaded data."""
    if hasattr(module, "needs") and module.needs(params):
        return False
    try:
        module.check(params, AGENTS)
    except ConcordError:
        return False
    return True


PROBLEMS = {
    f"{kind}-{number}": (module, params)
    for kind in plugins.kinds("problems")
    for module in [plugins.plugin("problems", kind, "tests")]
    for number, params in enumerate(p for p in variants(module) if accepted(module, p))
}

every_problem = pytest.mark.parametrize("name", PROBLEMS)
_built: dict[str, object] = {}


def build(name):
    """Return the problem of 11 points (or its data set) over three agents, so unequal counts."""
    if name not in _built:
        module, params = PROBLEMS[name]
        split = partition.Partition.parse({"kind": "equal"}, "tests")
        _built[name] = module.build(
            params, AGENTS, split, lambda what: streams.generator(5, what), Path("unused")
        )
    return _built[name]


def somewhere(problem, seed=0):
    """Return positions at which no coordinate is near zero, where Laplace priors have a kink."""
    rng = np.random.default_rng(seed)
    shape = (CHAINS, problem.agents, problem.dim)
    return rng.choice([-1, 1], shape) * rng.uniform(0.2, 1.2, shape)


# What reads downloaded data is tested beside this file.
@pytest.mark.parametrize("check", CHECKS["problems"], ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", sorted({name.partition("-")[0] for name in PROBLEMS}))
def test_contract(kind, check):
    try:
        check(plugins.plugin("problems", kind, "tests"))
    except Inapplicable as reason:
        pytest.skip(str(reason))


@every_problem
def test_agents_share_the_points_as_evenly_as_can_be(name):
    problem = build(name)
    if not isinstance(problem, Batched):
        pytest.skip("it has no points")
    assert problem.agents == AGENTS and problem.counts.shape == (AGENTS,)
    assert problem.counts.max() - problem.counts.min() <= 1
    assert problem.counts.sum() > 20 or sorted(problem.counts) == [3, 4, 4]


@every_problem
def test_estimator_draws_every_point_of_every_agent_and_no_padding(name):
    """Frequencies of rows within five standard errors; the last row of the longest is reached."""
    problem = build(name)
    if not isinstance(problem, Batched) or problem.counts.max() > 20:
        pytest.skip("it has no points, or so many that the others show it")
    seen = []
    inner = problem.batch_gradient

    class Watched:
        agents, dim, counts = problem.agents, problem.dim, problem.counts

        @staticmethod
        def batch_gradient(chains, batch_size):
            step = inner(chains, batch_size)

            def watch(x, rows, out):
                seen.append(rows.copy())
                return step(x, rows, out)

            return watch

    x = somewhere(problem)
    estimate = estimator(Watched(), 5, CHAINS)
    rng = streams.generator(7, "rows")
    for _ in range(400):
        estimate(x, rng, np.empty_like(x))
    rows = np.array(seen)
    for agent, count in enumerate(problem.counts):
        drawn = np.bincount(rows[:, :, agent].ravel(), minlength=count)
        assert len(drawn) == count
        expected = drawn.sum() / count
        spread = np.sqrt(expected * (1 - 1 / count))
        assert np.abs(drawn - expected).max() < 5 * spread
