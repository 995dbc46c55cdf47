"""What every problem promises: its gradients are those of its potential, whatever the estimate.

Problems that read downloaded data are tested beside this file.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from concord import plugins
from concord.errors import ConcordError
from concord.sampling import partition, streams
from concord.sampling.gradients import estimator
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


def gradient(problem, x):
    out = np.full_like(x, np.nan)
    assert problem.gradient(len(x))(x, out) is out
    return out


@pytest.mark.parametrize("kind", plugins.kinds("problems"))
def test_every_problem_says_where_a_block_of_chains_begins(kind):
    """A problem that forgot it would give the chains of every block the data of the first."""
    module = plugins.plugin("problems", kind, "tests")
    classes = [one for one in vars(module).values() if inspect.isclass(one)]
    made = [c for c in classes if hasattr(c, "gradient") and c.__module__ == module.__name__]
    assert made
    for one in made:
        assert list(inspect.signature(one.from_chain).parameters) == ["self", "first"]


@every_problem
def test_chains_from_one_on_are_those_of_the_whole(name):
    problem = build(name)
    x = somewhere(problem)
    later = problem.from_chain(1)
    expected = gradient(problem, x)[1:]
    # Fewer chains may be added up in another order.
    rounding = 1e-12 * np.abs(expected).max()
    np.testing.assert_allclose(gradient(later, x[1:]), expected, rtol=0, atol=rounding)
    np.testing.assert_allclose(later.potential(x[1:]), problem.potential(x)[1:], rtol=1e-12)
    assert (later.agents, later.dim) == (problem.agents, problem.dim)


@every_problem
def test_agents_share_the_points_as_evenly_as_can_be(name):
    problem = build(name)
    assert problem.agents == AGENTS and problem.counts.shape == (AGENTS,)
    assert problem.counts.max() - problem.counts.min() <= 1
    assert problem.counts.sum() > 20 or sorted(problem.counts) == [3, 4, 4]


@every_problem
def test_gradient_is_the_slope_of_the_potential(name):
    """Central differences: their error is of order h^2, times third derivatives, and 1e-16 / h."""
    if getattr(PROBLEMS[name][1], "prior_gradient_at", "iterate") != "iterate":
        pytest.skip("a reading whose prior has, as released, another gradient than its slope")
    problem = build(name)
    x, h = somewhere(problem), 1e-5
    found = gradient(problem, x)
    assert problem.potential(x).shape == (CHAINS, AGENTS)
    slopes = np.empty_like(x)
    for coordinate in range(problem.dim):
        change = np.zeros(problem.dim)
        change[coordinate] = h  # every agent at once: f_i depends on x_i alone
        rise = problem.potential(x + change) - problem.potential(x - change)
        slopes[..., coordinate] = rise / (2 * h)
    np.testing.assert_allclose(slopes, found, rtol=1e-6, atol=1e-7 * np.abs(found).max())


@every_problem
def test_mini_batches_of_every_point_average_to_the_gradient(name):
    """All batches of one point, enumerated: the estimate is unbiased, exactly."""
    problem = build(name)
    x = somewhere(problem)
    most = problem.counts.max()
    estimate = problem.batch_gradient(CHAINS, 1)
    total = np.zeros_like(x)
    for row in range(most):
        inside = row < problem.counts
        rows = np.where(inside, row, 0)[None, :, None].repeat(CHAINS, axis=0)
        out = np.empty_like(x)
        estimate(x, rows, out)
        total += out * inside[:, None]
    mean = total / problem.counts[:, None]
    expected = gradient(problem, x)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-12 * np.abs(total).max())


@every_problem
def test_a_batch_is_the_mean_of_its_points(name):
    """So a batch of b has the expectation of one point, and the prior's part counts once."""
    problem = build(name)
    x = somewhere(problem)
    rows = np.random.default_rng(3).integers(0, problem.counts[:, None], (CHAINS, AGENTS, 4))
    together = problem.batch_gradient(CHAINS, 4)(x, rows, np.empty_like(x))
    alone = problem.batch_gradient(CHAINS, 1)
    mean = np.mean([alone(x, rows[..., [j]], np.empty_like(x)) for j in range(4)], axis=0)
    np.testing.assert_allclose(together, mean, rtol=0, atol=1e-12 * np.abs(mean).max())


@every_problem
def test_estimator_draws_every_point_of_every_agent_and_no_padding(name):
    """Frequencies of rows within five standard errors; the last row of the longest is reached."""
    problem = build(name)
    if problem.counts.max() > 20:
        pytest.skip("the data set has many points; the others show it")
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


@every_problem
def test_potential_and_gradient_leave_their_arguments_alone(name):
    problem = build(name)
    x = somewhere(problem)
    kept = x.copy()
    problem.potential(x)
    gradient(problem, x)
    np.testing.assert_array_equal(x, kept)
