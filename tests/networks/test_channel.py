"""Networks where not everything arrives: the channel by loops, its chances, its exact laws."""

import itertools
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from concord.errors import ConcordError
from concord.laws import exact, paths
from concord.laws.arrivals import Losses
from concord.networks import topology
from concord.networks.channel import connect
from concord.networks.conditions import Conditions
from concord.networks.edges import Edges
from concord.networks.moments import chances
from concord.networks.network import drawing, under
from concord.networks.weather import Weather
from concord.networks.weights import check_weights, weights_of
from concord.samplers import (
    admm,
    d_ula,
    de_sghmc,
    de_sgld,
    diging_sgld,
    extra_sgld,
    gossip_ula,
    local_sgld,
    push_sum_sgld,
)
from concord.sampling.schedules import Schedule
from samplers.chains import errors
from variants import tilted

EXACT = 1e-12
LIMIT = 5.0  # standard errors
RING = topology.build("ring", 4)
DIRECTED = topology.build("directed_ring", 6, every=2, reach=3)
WHEEL = topology.build("edge_list", 5, edges=[[0, 1], [0, 2], [0, 3], [1, 2], [3, 4]])
LOST = ("keep_own_weight", "reuse_last", "skip")  # what a receiver does by itself
POLICIES = (*LOST, "sender_keeps")
DIRECTIONS = ("one_way", "link")
STEP = Schedule(0.05, b=2.0, c=1.0, exponent=0.3)
SAMPLERS = {
    "de_sgld": (de_sgld, de_sgld.Params(step_size=STEP)),
    "de_sghmc": (de_sghmc, de_sghmc.Params(step_size=0.2, friction=1.5, initial_velocity_sd=0.5)),
    "d_ula": (d_ula, d_ula.Params(step_size=STEP, fusion=Schedule(0.3, b=1.0, exponent=0.1))),
    "admm": (admm, admm.Params(penalty=0.7)),
    "extra_sgld": (extra_sgld, extra_sgld.Params(step_size=STEP, h=0.3)),
    "diging_sgld": (diging_sgld, diging_sgld.Params(step_size=STEP)),
    "local_sgld": (local_sgld, local_sgld.Params(step_size=STEP, period=3, common_noise=0.4)),
}


def bernoulli(rate=0.3, direction="one_way"):
    return {"kind": "bernoulli", "rate": rate, "direction": direction}


def network(graph=RING, seed=1, **conditions):
    made = under(graph, Conditions(**conditions), "tests")
    return drawing(made, np.random.default_rng(seed))


class Same:
    """A generator that draws the same for all chains."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)

    def random(self, out):
        out[:] = self._rng.random((len(out), 1))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("rate", "awake"), [(0.5, 0.8), (0.5, 1.0), (0.0, 0.8)])
@pytest.mark.parametrize("graph", [RING, WHEEL], ids=lambda g: g.name)
def test_mixing_is_the_loop_over_agents_with_what_arrived(graph, rate, awake, policy):
    loss = bernoulli(rate) if rate else None
    net = network(graph, loss=loss, on_loss=policy, awake=awake)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((7, graph.agents, 2))
    channel, weather = connect(net, x), Weather(network(graph, 1, **plain(net)), 7)
    weights = graph.metropolis()
    dense = weights.dense()
    mix = channel.mixer(weights, "simultaneous")
    last = {(i, j): x[:, j].copy() for i in range(graph.agents) for j in graph.neighbors[i]}
    ways = list(zip(*(e.tolist() for e in (Edges(net).receivers, Edges(net).senders)), strict=True))
    assert ways == list(last)

    def step(state, k, rng):
        return (mix(state[0], np.ones_like(x), np.empty_like(x)),), None

    step = channel.through(step)
    for k in range(6):
        weather.draw(k)
        expected = x.copy()
        for c, i in itertools.product(range(len(x)), range(graph.agents)):
            own = [e for e in ways if e[0] == i]
            came = {e: weather.arrived[ways.index(e), c] for e in own}
            for e in own:
                if came[e] or policy != "reuse_last":
                    last[e][c] = x[c, e[1]] if came[e] else x[c, i]
            if weather.awake[i, c]:
                heard = sum(dense[e] * last[e][c] for e in own)
                if policy == "sender_keeps":
                    heard = sum(dense[e] * x[c, e[1]] for e in own if came[e])
                    lost = [e for e in ways if e[1] == i and not weather.arrived[ways.index(e), c]]
                    heard = heard + sum(dense[e] for e in lost) * x[c, i]
                expected[c, i] = dense[i, i] * x[c, i] + heard + 1
        (x,), _ = step((x,), k, None)
        assert abs(x - expected).max() < EXACT


@pytest.mark.parametrize("policy", LOST)
@pytest.mark.parametrize("besides", [{"loss": bernoulli(), "awake": 0.8}, {}], ids=["lost", "late"])
def test_mixing_is_the_loop_over_agents_with_what_was_under_way(besides, policy):
    net = network(WHEEL, on_loss=policy, delay={"kind": "fixed", "iterations": 2}, **besides)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((7, WHEEL.agents, 2))
    channel, weather = connect(net, x), Weather(network(WHEEL, 1, **plain(net)), 7)
    weights = WHEEL.metropolis()
    dense, edges = weights.dense(), Edges(net)
    mix = channel.mixer(weights, "simultaneous")
    last, past = x[:, edges.senders].copy(), []

    def step(state, k, rng):
        return (mix(state[0], np.ones_like(x), np.empty_like(x)),), None

    step = channel.through(step)
    for k in range(9):
        weather.draw(k)
        past.append(x.copy())
        expected = x.copy()
        for c, e in itertools.product(range(len(x)), range(len(edges.senders))):
            if weather.arrived[e, c]:
                last[c, e] = past[k - 2][c, edges.senders[e]]
            elif policy != "reuse_last":
                last[c, e] = x[c, edges.receivers[e]]
        for c, i in itertools.product(range(len(x)), range(WHEEL.agents)):
            if weather.awake[i, c]:
                own = edges.receivers == i
                heard = dense[i, edges.senders[own]] @ last[c, own]
                expected[c, i] = dense[i, i] * x[c, i] + heard + 1
        (x,), _ = step((x,), k, None)
        assert abs(x - expected).max() < EXACT


def test_nothing_arrives_before_it_can_and_all_does_after_a_fixed_time():
    weather = Weather(network(RING, delay={"kind": "fixed", "iterations": 3}), 2)
    arrived = []
    for k in range(6):
        weather.draw(k)
        arrived.append(bool(weather.arrived.all()))
        assert weather.arrived.all() == weather.arrived.any()
    assert arrived == [False, False, False, True, True, True]


def plain(net):
    return msgspec.structs.asdict(net.conditions)


def test_skipping_is_of_all_neighbors_or_none():
    weather = Weather(network(WHEEL, loss=bernoulli(), on_loss="skip"), 200)
    weather.draw(0)
    for agent in range(5):
        own = weather.arrived[Edges(WHEEL).receivers == agent]
        assert (own.all(axis=0) == own.any(axis=0)).all()
        share = 0.7 ** len(own)
        assert abs(own[0].mean() - share) < LIMIT * np.sqrt(share * (1 - share) / 200)


def test_links_lose_both_directions_or_each_by_itself():
    both = {}
    for direction in DIRECTIONS:
        net = network(loss=bernoulli(0.5, direction))
        weather = Weather(net, 400)
        weather.draw(0)
        both[direction] = (weather.arrived == weather.arrived[weather.edges.by_sender]).mean()
    assert both["link"] == 1 and abs(both["one_way"] - 0.5) < 0.1


def test_bursts_have_their_rate_and_length():
    loss = {"kind": "gilbert_elliott", "rate": 0.9, "to_bad": 0.1, "to_good": 0.3}
    weather = Weather(network(loss=loss | {"direction": "link"}), 2000)
    lost = []
    for k in range(12):
        weather.draw(k)
        lost.append(~weather.arrived[weather.edges.receivers < weather.edges.senders])
    lost = np.array(lost)
    assert abs(lost.mean(axis=(1, 2)) - 0.9 / 4).max() < 0.02
    again = (lost[1:] & lost[:-1]).mean() / lost.mean()
    assert abs(again - 0.9 * 0.7) < 0.02


def test_schedules_bring_up_what_they_say():
    turns = {"kind": "in_turn", "graphs": [[[0, 1], [2, 3]], [[2, 1]]]}
    weather = Weather(network(schedule=turns), 3)
    for k, up in enumerate([{(0, 1), (2, 3)}, {(1, 2)}, {(0, 1), (2, 3)}]):
        weather.draw(k)
        assert set(ways_of(weather)) == up | {(j, i) for i, j in up}
    weather = Weather(network(WHEEL, schedule={"kind": "matchings"}), 2000)
    weather.draw(0)
    received = np.array([weather.up[Edges(WHEEL).receivers == i].sum(axis=0) for i in range(5)])
    assert received.max() == 1 and (weather.up == weather.up[weather.edges.by_sender]).all()
    assert abs(weather.up[-1].mean() - 1 / 2) < 0.05  # 3-4, which has one rival, 0-3


def ways_of(weather):
    ends = weather.edges.receivers, weather.edges.senders
    return [(int(i), int(j)) for i, j, up in zip(*ends, weather.up[:, 0], strict=True) if up]


def assert_chances_are_those_of_the_masks(net):
    first, second = chances(net)(0)
    weather = Weather(net, 40_000)
    weather.draw(0)
    drawn = np.concatenate([weather.awake, weather.arrived]).astype(float)
    error = np.sqrt(second * (1 - second) / drawn.shape[1])
    assert (abs(drawn @ drawn.T / drawn.shape[1] - second) <= LIMIT * error).all()
    assert abs(second.diagonal() - first).max() < EXACT


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_chances_are_those_of_the_masks(direction, policy):
    kept, loss = {"kind": "kept", "probability": 0.8}, bernoulli(0.2, direction)
    assert_chances_are_those_of_the_masks(
        network(WHEEL, loss=loss, schedule=kept, awake=0.9, on_loss=policy)
    )


def test_chances_are_none_where_draws_depend_on_each_other():
    burst = {"kind": "gilbert_elliott", "rate": 1, "to_bad": 0.1, "to_good": 0.1}
    assert chances(network(loss=burst | {"direction": "link"})) is None
    assert chances(network(schedule={"kind": "matchings"}, on_loss="skip")) is None


def given(awake, arrived):
    """Return the moments of who is awake and what arrives where they are known."""
    drawn = np.concatenate([awake, arrived], axis=1).astype(float)
    return lambda k: (drawn[k], np.multiply.outer(drawn[k], drawn[k]))


def deviation(name, net, same, steps=4, chains=6000, dim=2, factor=1.0):
    """Return the largest difference of sampled moments from the exact ones, in standard errors."""
    module, params = SAMPLERS[name]
    prob = tilted(net.agents, dim)
    rng = np.random.default_rng(12)
    x0 = 1 + rng.standard_normal((chains, net.agents, dim))
    if same:
        net = replace(net, masks=Same(4))
    module.check(prob, net, params)
    state, step = module.init(prob, net, params, x0, rng)
    for k in range(steps):
        state, _ = step(state, k, rng)
    update, ways = module.affine(prob, net, params), Edges(net)
    chance = chances(net)
    if same:
        weather, masks = Weather(replace(net, masks=Same(4)), 1), []
        for k in range(steps):
            weather.draw(k)
            masks.append([part[:, 0].copy() for part in (weather.awake, weather.arrived)])
        chance = given(*(np.array(part) for part in zip(*masks, strict=True)))
    start = exact.initial(net.agents, dim, (1.0, factor), *update.auxiliary)
    ends, on_loss = (ways.receivers, ways.senders), net.conditions.on_loss
    losses = Losses(chance, ends, on_loss)
    law = paths.lossy([update], losses, [start], net.agents, dim).law([steps])
    draws = np.concatenate([state.x, state.x.mean(axis=1, keepdims=True)], axis=1)
    mean = np.concatenate([law.mean[0], law.average_mean])
    return errors(draws, mean, np.concatenate([law.cov[0], law.average_cov]))


def cases():
    for name, direction, policy in itertools.product(SAMPLERS, DIRECTIONS, POLICIES):
        if name != "admm" or policy == "reuse_last":
            yield name, direction, policy


@pytest.mark.parametrize("same", [True, False], ids=["given", "averaged"])
@pytest.mark.parametrize(("name", "direction", "policy"), list(cases()))
def test_chains_have_the_exact_moments(name, direction, policy, same):
    net = network(loss=bernoulli(0.4, direction), on_loss=policy, awake=0.8)
    assert deviation(name, net, same) < LIMIT


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_start_that_is_twenty_percent_off_is_noticed(name):
    net = network(loss=bernoulli(0.4), on_loss="reuse_last")
    assert deviation(name, net, True, steps=2, factor=1.2) > LIMIT


@pytest.mark.parametrize("policy", ["keep_own_weight", "reuse_last", "sender_keeps"])
def test_matchings_have_their_chances_and_the_exact_moments(policy):
    options = {"loss": bernoulli(0.2), "awake": 0.9, "on_loss": policy}
    matchings = {"schedule": {"kind": "matchings"}, **options}
    assert_chances_are_those_of_the_masks(network(WHEEL, **matchings))
    assert deviation("de_sgld", network(**matchings), False) < LIMIT


@pytest.mark.parametrize("policy", ["keep_own_weight", "skip", "sender_keeps"])
@pytest.mark.parametrize(
    "schedule",
    [
        {"kind": "kept", "probability": 0.5},
        {"kind": "pair"},
        {"kind": "one_peer"},
        {"kind": "in_turn", "graphs": [[[0, 1], [2, 3]], [[2, 1]]]},
    ],
    ids=lambda schedule: schedule["kind"],
)
def test_schedules_have_the_exact_moments(schedule, policy):
    net = network(schedule=schedule, loss=bernoulli(), on_loss=policy, awake=0.9)
    assert deviation("de_sgld", net, False) < LIMIT


def test_the_average_is_kept_where_links_lose_both_and_by_senders_that_keep():
    x = np.random.default_rng(4).standard_normal((9, 5, 2))
    for direction, policy, kept in [
        ("link", "keep_own_weight", True),
        ("one_way", "sender_keeps", True),
        ("one_way", "keep_own_weight", False),
    ]:
        net = network(WHEEL, loss=bernoulli(0.4, direction), on_loss=policy)
        channel, out = connect(net, x), np.empty_like(x)
        mix = channel.mixer(WHEEL.metropolis(), "simultaneous")

        def step(state, k, rng, mix=mix, out=out):
            return mix(x, np.zeros_like(x), out), None

        channel.through(step)(None, 0, None)
        assert (abs(out.mean(axis=1) - x.mean(axis=1)).max() < EXACT) == kept


def test_a_pair_is_an_agent_and_a_neighbor_of_it():
    weather = Weather(network(WHEEL, schedule={"kind": "pair"}), 20_000)
    weather.draw(0)
    edges, degrees = weather.edges, WHEEL.degrees
    assert (weather.up.sum(axis=0) == 2).all() and (weather.awake.sum(axis=0) == 2).all()
    shares = (1 / degrees[edges.senders] + 1 / degrees[edges.receivers]) / 5
    assert abs(weather.up.mean(axis=1) - shares).max() < 5 * 0.5 / np.sqrt(20_000)


def test_one_peer_at_a_time_averages_exactly_after_log_n_iterations():
    graph = topology.build("directed_exponential", 8)
    net = network(graph, schedule={"kind": "one_peer"})
    check_weights(net, "pairwise")
    x = np.random.default_rng(4).standard_normal((3, 8, 2))
    channel = connect(net, x)
    mix = channel.mixer(weights_of(net, "pairwise"), "simultaneous")
    step = channel.through(lambda x, k, rng: (mix(x, np.zeros_like(x), np.empty_like(x)), None))
    y = x
    for k in range(3):
        y, _ = step(y, k, None)
        assert (channel.unicasts == 1).all()
    assert abs(y - x.mean(axis=1, keepdims=True)).max() < EXACT


@pytest.mark.parametrize(
    ("graph", "conditions", "message"),
    [
        (WHEEL, {"schedule": {"kind": "one_peer"}}, "those of edge_list have 1 to 3"),
        (DIRECTED, {"schedule": {"kind": "pair"}}, "edges of directed_ring have a direction"),
        (DIRECTED, {"schedule": {"kind": "matchings"}}, "edges of directed_ring have a direction"),
        (
            DIRECTED,
            {"schedule": {"kind": "in_turn", "graphs": [[[1, 0]]]}},
            r"graphs\[0\]\[0\]: \[1, 0\] is no edge of the topology",
        ),
        (
            RING,
            {"schedule": {"kind": "in_turn", "graphs": [[[0, 1], [0, 2]]]}},
            r"^tests.schedule.graphs\[0\]\[1\]: \[0, 2\] is no edge of",
        ),
        (
            RING,
            {"on_loss": "sender_keeps", "delay": {"kind": "fixed", "iterations": 1}},
            "on_loss: sender_keeps would count what is still on its way twice",
        ),
    ],
    ids=["degrees", "pair", "matchings", "against", "no edge", "late"],
)
def test_schedules_that_do_not_suit_the_graph(graph, conditions, message):
    with pytest.raises(ConcordError, match=message):
        network(graph, **conditions)


@pytest.mark.parametrize("name", SAMPLERS)
def test_where_all_arrives_it_is_the_faultless_sampler(name):
    module, params = SAMPLERS[name]
    prob, ends = tilted(5, 2), []
    net = network(WHEEL, schedule={"kind": "kept", "probability": 1}, on_loss="reuse_last")
    for graph in (WHEEL, net):
        rng = np.random.default_rng(2)
        state, step = module.init(prob, graph, params, np.ones((3, 5, 2)), rng)
        for k in range(5):
            state, info = step(state, k, rng)
        ends.append(state)
    for faultless, faulty in zip(*ends, strict=True):
        assert abs(faultless - faulty).max(initial=0.0) < EXACT
    vectors = 2 if name == "diging_sgld" else 1
    assert (info.unicasts == vectors * WHEEL.degrees).all() and (info.broadcasts == vectors).all()
    update = module.affine(prob, WHEEL, params)
    start = exact.initial(5, 2, (0.3, 1.0), *update.auxiliary)
    plainly = paths.single(update, start, 5, 2).law([6])
    ways = Edges(WHEEL).receivers, Edges(WHEEL).senders
    for on_loss in POLICIES if name != "admm" else ("reuse_last",):
        chance = chances(net)
        law = paths.lossy([update], Losses(chance, ways, on_loss), [start], 5, 2).law([6])
        for part in ("mean", "cov", "average_mean", "average_cov"):
            assert abs(getattr(plainly, part) - getattr(law, part)).max() < EXACT * 10


@pytest.mark.parametrize("policy", POLICIES)
def test_the_vectors_of_an_agent_arrive_together_or_not_at_all(policy):
    """Two lanes, one of which holds twice what the other does, whatever happens."""
    late = None if policy == "sender_keeps" else {"kind": "fixed", "iterations": 2}
    net = network(WHEEL, loss=bernoulli(0.5), awake=0.8, on_loss=policy, delay=late)
    x = np.random.default_rng(3).standard_normal((9, 5, 2))
    channel = connect(net, x, vectors=2)
    lanes = channel, channel.lane(2 * x)
    mixes = [lane.mixer(WHEEL.metropolis(), "simultaneous") for lane in lanes]
    zero, heard = np.zeros_like(x), [np.empty_like(x) for _ in lanes]

    def step(state, k, rng):
        for lane, (mix, out) in enumerate(zip(mixes, heard, strict=True)):
            mix((1 + lane) * state[0], zero, out)
        return (heard[0].copy(),), None

    step = channel.through(step)
    for k in range(8):
        (x,), _ = step((x,), k, None)
        assert abs(heard[1] - 2 * heard[0]).max() < EXACT
    assert (channel.unicasts == 2 * channel.active * WHEEL.degrees).all()
    assert (channel.broadcasts == 2 * channel.active).all()


def test_local_steps_of_agents_that_sleep_are_not_counted():
    net, prob = network(WHEEL, awake=0.5), tilted(5, 2)
    params = SAMPLERS["local_sgld"][1]
    state, step = local_sgld.init(prob, net, params, np.ones((9, 5, 2)), np.random.default_rng(1))
    state, info = step(state, 0, np.random.default_rng(1))
    assert (info.gradients == 3 * info.active).all() and 0 < info.active.mean() < 1


def test_a_pair_of_gossips_where_each_may_miss_the_other():
    net = network(loss=bernoulli(0.5))
    prob = tilted(4, 2)
    params = gossip_ula.Params(step_size=1e-30, fusion=0.25)
    x0 = np.random.default_rng(5).standard_normal((300, 4, 2))
    state, step = gossip_ula.init(prob, net, params, x0, np.random.default_rng(1))
    state, info = step(state, 0, np.random.default_rng(1))
    moved = (abs(state.x - x0) > 1e-9).any(axis=2)
    assert (info.active.sum(axis=1) == 2).all() and not (moved & (info.active == 0)).any()
    assert set(moved.sum(axis=1)) == {0, 1, 2}
    chain, agent = np.argwhere(moved)[0]
    other = next(i for i in np.flatnonzero(info.active[chain]) if i != agent)
    expected = 0.75 * x0[chain, agent] + 0.25 * x0[chain, other]
    assert abs(state.x[chain, agent] - expected).max() < EXACT


def test_who_sleeps_neither_moves_nor_sends():
    net, prob = network(WHEEL, awake=0.5), tilted(5, 2)
    x0 = np.ones((50, 5, 2))
    state, step = de_sgld.init(prob, net, SAMPLERS["de_sgld"][1], x0, np.random.default_rng(1))
    state, info = step(state, 0, np.random.default_rng(1))
    assert ((state.x != x0).all(axis=2) == info.active).all()
    assert (info.unicasts == info.active * WHEEL.degrees).all() and 0.3 < info.active.mean() < 0.7


def test_the_weight_of_who_sleeps_is_kept_as_its_position_is():
    net, prob = network(WHEEL, awake=0.5, on_loss="sender_keeps"), tilted(5, 2)
    params, x0 = push_sum_sgld.Params(Schedule(0.01)), np.ones((50, 5, 2))
    state, step = push_sum_sgld.init(prob, net, params, x0, np.random.default_rng(1))
    state, info = step(state, 0, np.random.default_rng(1))
    assert ((state.x != x0).all(axis=2) == info.active).all()
    assert (state.y[~info.active] == 1).all() and (state.y != 1).any()


@pytest.mark.parametrize(
    ("module", "options", "conditions", "sentence"),
    [
        (de_sgld, {"update_order": "in_place"}, {}, "^update_order: in_place has no meaning on"),
        *(
            (sampler, {"weights": "next_two"}, {}, "^weights: next_two has no meaning .* metropol")
            for sampler in (de_sgld, local_sgld)
        ),
        (d_ula, {"fusion": 0.1, "neighbors": "in_turn"}, {}, "^neighbors: in_turn .* together"),
        (admm, {}, {}, "^network.on_loss: keep_own_weight gives ADMM .* use reuse_last"),
        (
            admm,
            {},
            {"on_loss": "reuse_last", "delay": {"kind": "fixed", "iterations": 1}},
            "^network.delay: ADMM adds up differences of what neighbors have at the same time",
        ),
        (
            gossip_ula,
            {"communication": "triggered", "threshold": 1.0, "decay": 1.0},
            {},
            "^communication: triggered relies on what all neighbors have heard",
        ),
    ],
)
def test_samplers_refuse_what_has_no_meaning(module, options, conditions, sentence):
    net = network(loss=bernoulli(), **conditions)
    needed = {"penalty": 1.0} if module is admm else {"step_size": 0.1}
    params = module.Params(**needed | options)
    with pytest.raises(ConcordError, match=sentence):
        module.check(None, net, params)
