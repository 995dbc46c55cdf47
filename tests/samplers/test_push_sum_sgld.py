"""Push-sum on directed networks: its sums, its reductions, its law."""

from dataclasses import replace

import numpy as np
import pytest
from chains import errors

import concord
from concord.errors import ConcordError
from concord.laws import exact, paths
from concord.laws.gaussian import bias2
from concord.networks import topology
from concord.networks.conditions import Conditions
from concord.networks.network import drawing, under
from concord.samplers import de_sghmc, de_sgld, local_sgld, push_sum_sgld
from concord.sampling.schedules import Schedule
from variants import tilted

UNEQUAL = topology.build("directed_ring", 6, every=2, reach=3)
EQUAL = topology.build("directed_ring", 6, every=1, reach=2)
LIMIT = 5.0  # standard errors
STEP = Schedule(0.02)


def run(prob, net, params, steps, chains, module=push_sum_sgld):
    rng = np.random.default_rng(12)
    x0 = 1 + rng.standard_normal((chains, net.agents, prob.dim))
    state, step = module.init(prob, net, params, x0, rng)
    for k in range(steps):
        state, info = step(state, k, rng)
    return state, info


def law(prob, net, params, iterations, module=push_sum_sgld):
    update = module.affine(prob, net, params)
    start = exact.initial(net.agents, prob.dim, (1.0, 1.0), *update.auxiliary)
    return paths.single(update, start, net.agents, prob.dim).law([iterations])


@pytest.mark.parametrize("read", ["moved", "averaged"])
def test_chains_have_the_exact_moments(read):
    prob, params, chains = tilted(6, 2), push_sum_sgld.Params(step_size=0.05, read=read), 8000
    state, _ = run(prob, UNEQUAL, params, 5, chains)
    found = law(prob, UNEQUAL, params, 5)
    assert errors(state.x, found.mean[0], found.cov[0]) < LIMIT


def test_where_all_hear_as_many_as_they_send_to_it_is_de_sgld():
    prob = tilted(6, 2)
    mine, _ = run(prob, EQUAL, push_sum_sgld.Params(step_size=STEP), 20, 3)
    params = de_sgld.Params(step_size=STEP, weights="row_stochastic")
    de_sgld.check(prob, EQUAL, params)
    other, _ = run(prob, EQUAL, params, 20, 3, de_sgld)
    assert abs(mine.x - other.x).max() < 1e-12
    assert abs(mine.y - 1).max() < 1e-14


def test_that_moves_first_it_is_a_local_step():
    prob = tilted(6, 2)
    mine, _ = run(prob, EQUAL, push_sum_sgld.Params(step_size=STEP, read="averaged"), 20, 3)
    params = local_sgld.Params(step_size=STEP, weights="row_stochastic")
    other, _ = run(prob, EQUAL, params, 20, 3, local_sgld)
    assert abs(mine.x - other.x).max() < 1e-12


def test_what_is_read_after_averaging_has_less_bias():
    off = []
    for read in ("moved", "averaged"):
        update = push_sum_sgld.affine(
            tilted(6, 2), UNEQUAL, push_sum_sgld.Params(step_size=0.02, read=read)
        )
        seen = exact.marginals(*exact.stationary(update.at(500)), 6, 2)
        off.append(bias2(*seen[:2], tilted(6, 2).posterior).max())
    assert off[1] < 0.7 * off[0]


def test_with_equal_hessians_the_average_is_that_of_the_complete_graph():
    prob = tilted(6, 2, equal=True)
    directed = law(prob, EQUAL, push_sum_sgld.Params(step_size=STEP), 300)
    complete = topology.build("complete", 6)
    undirected = law(prob, complete, de_sgld.Params(step_size=STEP), 300, de_sgld)
    assert abs(directed.average_mean - undirected.average_mean).max() < 1e-12
    assert abs(directed.average_cov - undirected.average_cov).max() < 1e-12


def test_agents_of_unequal_influence_sample_the_posterior_as_the_step_shrinks():
    prob, found = tilted(6, 2), []
    for eta in (4e-3, 2e-3, 1e-3):
        update = push_sum_sgld.affine(prob, UNEQUAL, push_sum_sgld.Params(step_size=eta))
        mean, cov = exact.stationary(update.at(500))
        means, covs, _, _ = exact.marginals(mean, cov, 6, 2)
        target = prob.posterior
        found.append(max(abs(means - target.mean).max(), abs(covs - target.cov).max()))
    # the error is of first order in the step: halved with it
    assert abs(np.array(found[:-1]) / found[1:] - 2).max() < 0.1


def test_averaging_what_is_heard_weighs_agents_unequally():
    """What push-sum is for: the same network, without the division."""
    prob = tilted(6, 2)
    weights = de_sgld.weights_of(UNEQUAL, "row_stochastic")
    own = replace(UNEQUAL, weights=weights)
    plain = de_sgld.Params(step_size=1e-4)
    mean, _ = exact.stationary(de_sgld.affine(prob, own, plain).at(0))
    pushed = push_sum_sgld.affine(prob, UNEQUAL, push_sum_sgld.Params(step_size=1e-4))
    right, _ = exact.stationary(pushed.at(500))
    target = np.tile(prob.posterior.mean, 6)
    assert abs(right - target).max() < 0.05 * abs(mean - target).max()


def test_the_sums_are_conserved_whatever_gets_lost():
    conditions = Conditions(
        loss={"kind": "bernoulli", "rate": 0.4, "direction": "one_way"},
        awake=0.7,
        on_loss="sender_keeps",
    )
    net = under(UNEQUAL, conditions, "tests")
    net = drawing(net, np.random.default_rng(3))
    prob = tilted(6, 2)
    push_sum_sgld.check(prob, net, push_sum_sgld.Params(step_size=1e-30))
    rng = np.random.default_rng(12)
    x0 = 1 + rng.standard_normal((50, 6, 2))
    state, step = push_sum_sgld.init(
        prob, net, push_sum_sgld.Params(step_size=1e-30), x0.copy(), rng
    )
    for k in range(60):
        state, info = step(state, k, rng)
    assert abs(state.y.sum(axis=1) - 6).max() < 1e-12
    assert abs((state.x * state.y[..., None]).sum(axis=1) - x0.sum(axis=1)).max() < 1e-12
    # and all agents get to the average of the start
    assert abs(state.x - x0.mean(axis=1, keepdims=True)).max() < 1e-2
    assert info.active.shape == (50, 6)


def test_a_number_more_is_sent():
    _, info = run(tilted(6, 2), UNEQUAL, push_sum_sgld.Params(step_size=STEP), 1, 2)
    assert (info.unicasts == np.array([2, 1, 2, 1, 2, 1]) * 1.5).all()
    assert (info.broadcasts == 1.5).all()


@pytest.mark.parametrize(
    ("module", "params", "message"),
    [
        (de_sgld, de_sgld.Params(step_size=STEP), "metropolis needs neighbors that hear each"),
        (
            de_sghmc,
            de_sghmc.Params(step_size=STEP, friction=1.0, weights="row_stochastic"),
            "row_stochastic are not doubly stochastic on directed_ring of 6",
        ),
        (
            de_sgld,
            de_sgld.Params(step_size=STEP, weights="column_stochastic"),
            "column_stochastic are not doubly stochastic",
        ),
        (
            de_sgld,
            de_sgld.Params(step_size=STEP, weights="pairwise"),
            "pairwise is for networks on which an agent hears at most one neighbor",
        ),
    ],
)
def test_samplers_that_average_refuse_what_keeps_no_average(module, params, message):
    with pytest.raises(ConcordError, match=message):
        module.check(tilted(6, 2), UNEQUAL, params)


@pytest.mark.parametrize("name", ["d_ula", "gossip_ula", "admm"])
def test_samplers_that_need_answers_refuse_directions(name):
    options = {
        "d_ula": {"step_size": 0.01, "fusion": 0.1},
        "gossip_ula": {"step_size": 0.01, "fusion": 0.1},
        "admm": {"penalty": 1.0},
    }[name]
    with pytest.raises(ConcordError, match="directed_ring' is directed, and the sampler needs"):
        concord.sample(name, tilted(6, 2), UNEQUAL, chains=2, iterations=2, seed=1, **options)


def test_push_sum_refuses_what_loses_weights():
    loss = {"kind": "bernoulli", "rate": 0.4, "direction": "one_way"}
    for conditions, message in [
        ({"loss": loss}, "keep_own_weight leaves weights that are not column stochastic"),
        (
            {"compression": {"kind": "top_k", "share": 0.5}, "on_loss": "sender_keeps"},
            "push-sum divides by the weights it sends",
        ),
    ]:
        net = under(UNEQUAL, concord.network("ring", 6, **conditions).conditions, "tests")
        with pytest.raises(ConcordError, match=message):
            push_sum_sgld.check(tilted(6, 2), net, push_sum_sgld.Params(step_size=STEP))
