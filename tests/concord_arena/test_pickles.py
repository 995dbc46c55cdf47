"""What the API returns, pickled and unpickled: for processes of one's own, and caches."""

import pickle

import numpy as np
import pytest

import concord
import concord_studies  # noqa: F401  which adds kinds of problems

X = np.random.default_rng(0).standard_normal((24, 2))
LABELS = np.arange(24) % 2
PROBLEMS = {
    "quadratic": lambda: concord.problems.quadratic([np.eye(2)] * 4, X[:4]),
    "linear_regression": lambda: concord.problems.linear_regression(X, X[:, 0], 4),
    "logistic_regression": lambda: concord.problems.logistic_regression(X, LABELS, 4),
    "unknown_noise": lambda: concord.problems.unknown_noise(X, X[:, 0], 4),
    "gamma_poisson": lambda: concord.problems.gamma_poisson(np.ones((24, 2)), np.ones(24), 4),
    "eight_schools": lambda: concord.problems.eight_schools(agents=8),
    "tied_mixture": lambda: concord.problems.tied_mixture(X[:, 0], 4),
    "banana": lambda: concord.problems.banana(agents=4),
    "funnel": lambda: concord.problems.funnel(agents=4),
    "gaussian": lambda: concord.problems.gaussian(agents=4),
    "own": lambda: concord.Problem(
        np.sinh, agents=4, dim=2, potential=height, hessian_product=bend, prox=shrink, reference=X
    ),
}
PAID = {"budget": {"gradients": 30}}


def height(x):
    return np.cosh(x).sum(axis=-1)


def bend(x, v):
    return np.cosh(x) * v


def shrink(v, step):
    return v / (1 + step[:, None])


def again(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_the_same_when_unpickled(name):
    problem = PROBLEMS[name]()
    if hasattr(problem, "reference"):
        draws = [
            one.reference.sample(3, np.random.default_rng(0)) for one in (problem, again(problem))
        ]
        np.testing.assert_array_equal(*draws)
    x = np.full((2, problem.agents, problem.dim), 0.3)
    slopes = [one.gradient(x) for one in (problem, again(problem))]
    np.testing.assert_array_equal(*slopes)


def test_all_that_a_caller_gives_is_there_when_unpickled():
    problem = PROBLEMS["own"]()
    x = np.full((2, 4, 2), 0.3)
    for one in (problem, again(problem)):
        np.testing.assert_array_equal(one.potential(x), height(x))
        np.testing.assert_array_equal(one.hessian_product(x, x), bend(x, x))
        shrunk, _ = one.minimize(x, np.full(4, 2.0), x)
        np.testing.assert_array_equal(shrunk, shrink(x / 2, np.full(4, 0.5)))


def test_networks_traces_laws_and_posteriors_are_the_same_when_unpickled():
    problem = PROBLEMS["quadratic"]()
    loss = {"kind": "bernoulli", "rate": 0.2, "direction": "one_way"}
    for network in (concord.network("ring", 4, loss=loss), concord.network(np.full((4, 4), 0.25))):
        same = again(network)
        assert (same.edges, same.conditions) == (network.edges, network.conditions)
        assert same.names == (0, 1, 2, 3) and (same.graph.weights is None) == (
            network.graph.weights is None
        )
    how = {"step_size": 0.01, "iterations": 10}
    trace = again(concord.sample("de_sgld", problem, "ring", chains=20, **how))
    law = again(concord.law("de_sgld", problem, "ring", **how))
    assert concord.compare({"a": trace, "b": law}, again(problem.posterior)).w2.notna().all()


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("quadratic", {"samplers": ["de_sgld", "gossip_ula"], "verify": True}),
        ("quadratic", {"samplers": ["d_mala"], "chains": 20}),
        ("linear_regression", {"samplers": ["de_sgld"], "batch_size": 2}),
        ("own", {"samplers": ["de_sgld", "d_ula"]}),
    ],
)
def test_an_answer_says_and_draws_the_same_when_unpickled(name, more):
    answer = concord.recommend(PROBLEMS[name](), "ring", **PAID, **more)
    same = again(answer)
    assert str(same) == str(answer) and again(same).table.equals(answer.table)
    traces = [concord.sample(**one.best, chains=2) for one in (answer, same)]
    np.testing.assert_array_equal(*(trace["x"] for trace in traces))
    np.testing.assert_array_equal(answer.read(traces[0]), same.read(traces[1]))
    if "chains" not in more:
        curves = [one.plot().axes[0].lines for one in (answer, same)]
        for line, other in zip(*curves, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), other.get_ydata())
