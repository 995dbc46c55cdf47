"""Scores estimated from chains, against those of the law."""

from types import SimpleNamespace

import numpy as np
import pytest

import concord
from concord import predictions
from concord.arguments import ChosenSampler
from concord.errors import ConcordError
from concord.laws.law import laws_of_versions
from concord.samplers.admm import ADMM
from concord.samplers.de_sgld import DESGLD
from concord.sampling.initial import Law
from concord_arena import chains, scores
from concord_arena.chains import Chains
from variants import problem

RUN = {"paper": "p", "experiment": "e", "name": "r", "seed": 3, "initial": Law("normal")}


def chains_of(sampler, prob, chains, name="a"):
    run = SimpleNamespace(**RUN | {"chains": chains})
    return Chains([sampler], [(name, prob)], concord.network("ring", prob.agents), run, None, {})


def both(step, iterations, chains=2000):
    sampler, prob, network = DESGLD(step), problem(5, 1), concord.network("ring", 5)
    drawn = chains_of(sampler, prob, chains)
    path = laws_of_versions([sampler], [prob], network, Law("normal").moments(1))
    return drawn.bias(iterations), scores.bias(path.marginals_at(iterations), prob.posterior)


def test_estimates_are_those_of_the_law():
    drawn, exactly = both(0.02, [1, 20, 200])
    for level in scores.LEVELS:
        b2, wanted = drawn[level][:, 0], exactly[level][:, 0]
        # (mean + e)^2 with e of the size of 1 / sqrt(C), where the spread is the posterior's or so.
        spread = 5 * np.sqrt(np.maximum(wanted, 1 / 2000) / 2000) * 3
        assert (np.abs(b2 - np.maximum(wanted, 1 / 2000)) < spread).all(), level


def test_the_floor_is_what_exact_draws_show_at_the_worst_agent():
    """Of eight agents in two dimensions four times what one function of one agent shows."""
    prob, count, rng = problem(8, 2), 50, np.random.default_rng(5)
    wanted, variance = prob.posterior.monomials()
    worst = []
    for _ in range(300):
        x = prob.posterior.sample(count * 8, rng).reshape(count, 8, 2)
        f = np.concatenate([x, x**2], axis=-1)
        square = (f.mean(axis=0) - wanted) ** 2 - f.var(axis=0, ddof=1) / count
        worst.append((square / variance).max())
    error = np.std(worst) / np.sqrt(chains.FLOORS)
    floors = chains._draw_floors(count, prob, np.random.default_rng(6))
    assert abs(floors["worst"] - np.mean(worst)) < 4 * error
    assert 2.5 / count < floors["worst"] < 10 / count and floors["average"] < 2 / count


def test_a_law_that_is_right_is_never_told_as_better_than_the_floor():
    """Chains that start at the posterior and hardly move; twenty data sets of one."""
    prob = concord.problems.quadratic(np.tile(np.eye(2) / 8, (8, 1, 1)), np.zeros((8, 2)))
    for name in "abcdefghijklmnopqrst":
        b2, more = chains_of(DESGLD(1e-9), prob, 50, name).measure([1, 2], ())
        floor = dict(more)["floor.b2"]
        for level in scores.LEVELS:
            assert (b2[level] >= floor[level]).all(), level
        assert floor["worst"][0] > 2.5 / 50


def test_random_streams_have_the_names_of_a_samplers_own_options():
    own = "DESGLD(step_size=Schedule(0.02, 1.0, 0.0, 1.0), weights='metropolis')"
    assert chains._label_options(DESGLD(0.02, batch_size=2, update_order="in_place")) == own
    assert chains._label_options(ADMM(5.0)) == "ADMM(penalty=5.0, noise=True)"


def test_what_diverges_is_not_sampled_to_its_end():
    """A score is infinite as soon as one chain diverges, of those of the first block."""
    steps = []

    class Noted(DESGLD):
        def step(self, state, k, problem, network, rng):
            steps.append(k)
            return super().step(state, k, problem, network, rng)

    drawn = chains_of(Noted(1.0), problem(5, 1), 100)
    found = drawn.bias([5, 2000])
    assert all(np.isposinf(found[level]).all() for level in scores.LEVELS)
    assert found["worst"].shape == (2, 1) and len(steps) < 100
    drawn.measure([5, 2000], ())
    assert len(steps) > 4000  # whose other metrics are told to the end


def told(problem_, sampler="de_sgld", chains=300, steps=60, families=(), **options):
    chosen = ChosenSampler.parse({"kind": sampler, "step_size": 0.02, **options}, "").params
    b2, more = chains_of(chosen, problem_, chains).measure([1, steps], families)
    return b2, dict(more)


def test_the_ergodic_score_is_that_of_the_running_sum():
    prob = problem(5, 1)
    b2, more = told(prob, chains=3000)
    network = concord.network("ring", 5)
    path = laws_of_versions([DESGLD(0.02)], [prob], network, Law("normal").moments(1))
    exactly = scores.ergodic_b2(path.time_average(60), prob.posterior)
    for level in scores.LEVELS:
        # A mean of 3000 squares of normal numbers: five standard errors, and the larger of agents.
        drawn = more["ergodic_b2"][level][0]
        assert abs(drawn / exactly[level][0] - 1) < 5 * np.sqrt(2 / 3000) + 0.05, level
    assert b2["worst"].shape == (2, 1)


def test_draws_are_compared_with_exact_ones():
    prob = problem(5, 2)
    exact = prob.posterior
    rng = np.random.default_rng(2)
    draws = exact.sample(3 * 1000, rng).reshape(1000, 3, 2)
    draws[:, 0] += 2 * np.sqrt(np.diag(exact.cov))  # an agent that is two deviations off
    found = dict(scores.compare_draws(draws, scores.draw_references(len(draws), prob, rng)))
    assert abs(found["w1"]["worst"] - 2) < 0.15  # the error of a mean of 1000 is 0.03
    assert abs(found["sliced_w2"]["worst"] - np.sqrt(8)) < 0.6  # of 50 directions
    for name in ("w1", "sliced_w2"):
        assert 0.3 < found[name]["average"] / found[name]["floor"] < 3
    assert found["coverage_90"]["worst"] < 0.5 < 0.85 < found["coverage_90"]["average"] < 0.95
    draws[5, 1, 0] = np.nan
    lost = dict(scores.compare_draws(draws, scores.draw_references(len(draws), prob, rng)))
    assert np.isposinf(lost["w1"]["worst"]) and np.isposinf(lost["sliced_w2"]["worst"])
    assert np.isnan(lost["coverage_50"]["worst"])


def test_what_diverged_is_never_told_as_good():
    b2, more = told(problem(5, 1), chains=20, steps=2000, families=("diagnostics",),
                       step_size=1.0)  # fmt: skip
    assert np.isposinf(b2["worst"][-1]).all()
    for metric in ("ergodic_b2", "w1", "sliced_w2"):
        for level in ("worst", "average"):
            assert np.isposinf(more[metric][level]).all(), metric
    for metric in ("coverage_50", "coverage_90", "ess_bulk", "r_hat"):
        assert np.isnan(more[metric]["worst"]).all(), metric


def test_modes_are_shared_out_by_the_worst_agent():
    points = np.random.default_rng(1).normal(0.5, 1.5, 40)
    prob = concord.problems.tied_mixture(points, agents=4)
    _, more = told(prob, chains=20, steps=40, families=("posterior_modes",))
    share, right = more["modes_share"]["worst"][0], more["modes_share_exact"]["network"][0]
    assert 0 <= share <= 1 and 0 < right < 1


def test_a_network_is_scored_by_the_mixture_of_late_draws():
    prob = concord.problems.dense_network(4, points=80, hidden=(4,))
    drawn = chains_of(DESGLD(1e-3, batch_size=4), prob, 3)
    nll, further = drawn.measure([1, 9, 20], ())
    trace = drawn._sample("a", prob, DESGLD(1e-3, batch_size=4), [11, 13, 16, 18, 20])
    X, y = prob.test
    p = np.mean([prob.predict(x, X) for x in trace["x"].swapaxes(0, 1)], axis=0)
    each = predictions.score(p, y)
    assert nll["worst"][-1, 0] == pytest.approx(each["nll"].mean(axis=0).max(), rel=1e-6)
    assert nll["each"][-1, 0] == pytest.approx(each["nll"].mean(), rel=1e-6)
    more = dict(further)
    assert more["ece"]["worst"][0] == pytest.approx(each["ece"].mean(axis=0).max(), rel=1e-6)
    assert more["accuracy"]["worst"][0] == each["accuracy"].mean(axis=0).min()
    pooled = predictions.score(p.mean(axis=1), y)["nll"].mean()
    assert nll["pooled"][-1, 0] == pytest.approx(pooled, rel=1e-6)
    averages = trace["x_average"][:, :, None].swapaxes(0, 1)
    of_average = np.mean([prob.predict(x, X) for x in averages], axis=0)
    average = predictions.score(of_average, y)["nll"].mean()
    assert nll["average"][-1, 0] == pytest.approx(average, rel=1e-6)


def test_settings_are_never_chosen_by_rows_for_testing():
    """Labels for testing are all turned: the score that chooses is the same, that judges is not."""
    prob = concord.problems.dense_network(4, points=80, hidden=(4,))
    drawn = chains_of(DESGLD(1e-3, batch_size=4), prob, 2)
    chosen, judged = drawn.bias([6]), drawn.measure([6], ())[0]
    prob.test = prob.test[0], (prob.test[1] + 5) % 10
    assert drawn.bias([6])["worst"] == chosen["worst"]
    assert drawn.measure([6], ())[0]["worst"] != judged["worst"]
    prob.validation = prob.validation[0][:50], prob.validation[1][:50]
    assert drawn.bias([6])["worst"] != chosen["worst"]
    prob.validation = None
    with pytest.raises(ConcordError, match=r"no rows for validation; .* give it both"):
        drawn.bias([6])


def test_a_network_whose_chain_diverges_has_an_infinite_score():
    prob = concord.problems.dense_network(4, points=80, hidden=(4,))
    drawn = chains_of(DESGLD(1e30), prob, 2)
    assert np.isposinf(drawn.bias([6])["worst"]).all()
    assert np.isposinf(drawn.measure([6], ())[0]["worst"]).all()
