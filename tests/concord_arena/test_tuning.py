"""The largest stable value of an option, on networks where something happens."""

import warnings

import numpy as np
import pytest

import concord
from concord import recommend
from concord.arguments import ChosenSampler
from concord.laws.law import laws_of_versions
from concord.stability import diverges, largest_stable_step
from concord_arena import tuning
from concord_arena.tuning import find_limit, leave_out_conditions
from concord_studies.runs.keys import Arena

ONE_WAY = {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}
CONDITIONS = {
    "losses": {"loss": {"kind": "bernoulli", "rate": 0.2, "direction": "link"}},
    "memory": {"loss": ONE_WAY, "on_loss": "reuse_last"},
    "noise": {"loss": ONE_WAY, "on_loss": "sender_keeps", "noise": 0.1},
    "sleep": {"awake": 0.5},
    "turns": {"schedule": {"kind": "matchings"}},
    "lies": {"byzantine": {"kind": "sign", "agents": [1]}},
}
SAMPLERS = {"de_sgld": {}, "diging_sgld": {}, "de_sghmc": {"friction": 1.0}}


@pytest.mark.parametrize("conditions", CONDITIONS)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_laws_settle_just_below_it_and_diverge_just_above(kind, conditions):
    problem = concord.problems.gaussian(agents=5, dim=2, condition=30.0, heterogeneity=1.0)
    network = concord.network("ring", 5, **CONDITIONS[conditions])
    options = SAMPLERS[kind]
    sampler = ChosenSampler.parse({"kind": kind, "step_size": 0.01, **options}, "it").params
    limit = find_limit(sampler, "step_size", problem, network)
    # Both are bisections, to 1e-3 and to 1e-4 of the step.
    assert largest_stable_step(sampler, problem, network) == pytest.approx(limit, rel=1.2e-3)
    growth = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", concord.DivergenceWarning)
        for share in (0.99, 1.01):
            given = {"iterations": 2000, "record": {"at": [1000, 2000]}, **options}
            law = concord.law(kind, problem, network, step_size=share * limit, **given)
            early, late = np.abs(law.cov).max(axis=(1, 2, 3))
            growth.append(late / early)
    below, above = growth
    assert below < 2.5  # sums that losses move by chance grow as a random walk, at any step
    assert above > 100
    if conditions != "lies":  # where less arrives agents hold each other back less
        assert limit > 1.05 * find_limit(
            sampler, "step_size", problem, leave_out_conditions(network)
        )


def test_the_answer_states_the_largest_stable_step_with_losses():
    problem = concord.problems.gaussian(agents=5, dim=2, condition=30.0, heterogeneity=1.0)
    network = concord.network("ring", 5, **CONDITIONS["losses"])
    answer = recommend(problem, network, budget={"gradients": 20}, samplers=["de_sgld"])
    sampler = ChosenSampler.parse({"kind": "de_sgld", "step_size": 0.01}, "it").params
    assert answer.table["stable"][0] == find_limit(sampler, "step_size", problem, network)


def test_where_who_moves_is_drawn_means_settle_below_it():
    problem = concord.problems.gaussian(agents=4, dim=1, condition=3.0, heterogeneity=1.0)
    network = concord.network("ring", 4)
    given = {"kind": "gossip_ula", "drift": "whole"}
    limit = largest_stable_step(
        ChosenSampler.parse({**given, "step_size": 0.01}, "it").params, problem, network
    )
    growth = []
    for share in (0.9, 1.1):
        sampler = ChosenSampler.parse({**given, "step_size": share * limit}, "it").params
        assert diverges(sampler, problem, network) == (share > 1)
        path = laws_of_versions([sampler], [problem], network, (5.0, 0.0))
        early, late = np.abs(path.marginals_at([100, 200]).mean[:, 0] - problem.posterior.mean)
        growth.append(late.max() / early.max())
    assert growth[0] < 1.1 and growth[1] > 10  # where they settle agents keep a bias


@pytest.mark.parametrize("second", [{}, {"friction": (1.0, 3.0, 10.0)}])
def test_of_a_network_nine_settings_are_tried_by_factors_of_two(second):
    problem, network = concord.problems.dense_network(4, points=40), concord.network("ring", 4)
    options = {"kind": "de_sghmc", "step_size": 0.08, "friction": 1.0}
    sampler = ChosenSampler.parse(options, "it").params
    arena = Arena(budget={"gradients": 9.0}, tune="step_size", second=second)
    groups, _ = tuning.group_settings(sampler, arena, problem, network, "it")
    tried = [[setting.values["step_size"] for setting in group] for group in groups]
    octaves = [0, -1, -2] if second else [3, 2, 1, 0, -1, -2, -3, -4, -5]
    assert np.allclose(tried, 0.08 * 2.0 ** np.array(octaves))
    best = groups[0][-1]
    more = tuning.extend(arena, best, False, "it", tuning.count_settings(problem))
    steps = [setting.values["step_size"] for setting in more]
    assert np.allclose(steps, best.values["step_size"] / np.array([2, 4, 8]))
