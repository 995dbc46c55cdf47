"""The simulated clock: with barrier by loops and closed forms, without by versions of vectors."""

import itertools
import math

import numpy as np
import pytest

import concord
from concord import metrics
from concord.metrics import Measurement, gradients, seconds
from concord.networks import topology
from concord.networks.channel import connect
from concord.networks.conditions import Conditions
from concord.networks.network import drawing, under
from concord.sampling import streams

SAMPLERS = {
    "de_sgld": {"step_size": 0.02},
    "d_ula": {"step_size": 0.02, "fusion": 0.2},
    "de_sghmc": {"step_size": 0.05, "friction": 1.0},
}


def problem(agents, dim=2):
    rng = np.random.default_rng(0)
    H = [(i + 1) / agents * np.eye(dim) for i in range(agents)]
    return concord.problems.quadratic(H=H, b=rng.standard_normal((agents, dim)))


def sampled(graph, agents, sampler="de_sgld", iterations=12, chains=3, record=None, **happens):
    options = SAMPLERS.get(sampler, {})
    network = concord.network(graph, agents, **happens) if isinstance(graph, str) else graph
    return concord.sample(
        sampler,
        problem(agents),
        network,
        iterations=iterations,
        chains=chains,
        record=record,
        progress=False,
        **options,
    )


def exponentials(agents, chains, iterations):
    """Return the numbers of the clock's stream, (iterations, agents, chains), after the first."""
    rng = streams.generator(1, "clock", "", "")
    return rng.standard_exponential((iterations + 1, agents, chains))[1:]


COMPUTE = {"seconds": 0.5, "spread": 0.4, "slowest": 3.0, "slow_agents": [2]}


def test_agents_wait_for_their_neighbors_as_in_a_loop():
    """A star, whose center waits for all; 16 bytes in 0.25 s, and 0.1 s on the way."""
    agents, chains, iterations = 5, 3, 8
    link = {"latency": 0.1, "bandwidth": 64.0}
    trace = sampled("star", agents, iterations=iterations, compute=COMPUTE, link=link)
    drawn = exponentials(agents, chains, iterations)
    graph = topology.build("star", agents)
    time, waited = np.zeros((chains, agents)), np.zeros((chains, agents))
    for k, c in itertools.product(range(iterations), range(chains)):
        before = time[c].copy()
        for i in range(agents):
            begin = max([before[i], *(before[j] + 0.35 for j in graph.neighbors[i])])
            takes = (0.3 + 0.2 * drawn[k, i, c]) * (3.0 if i == 2 else 1.0)
            waited[c, i] += begin - before[i]
            time[c, i] = begin + takes
        np.testing.assert_allclose(trace["seconds"][c, k + 1], time[c], rtol=1e-12)
        np.testing.assert_allclose(trace["waited"][c, k + 1], waited[c], rtol=1e-12)


def test_who_is_alone_waits_for_nobody():
    trace = sampled("no_edges", 3, compute={"seconds": 0.25, "slowest": 4.0})
    steps = np.arange(13)[:, None]
    np.testing.assert_array_equal(trace["seconds"][0], steps * [1.0, 0.25, 0.25])
    assert not trace["waited"].any()


def test_the_pace_is_that_of_the_slowest_within_reach():
    """What agent 0 does in k - d iterations reaches distance d in the d that follow."""
    trace = sampled("path", 5, compute={"seconds": 0.25, "slowest": 8.0}, iterations=12)
    for k, d in itertools.product(range(13), range(5)):
        expected = 2.0 * (k - d) + 0.25 * d if k > d else 0.25 * k
        assert trace["seconds"][0, k, d] == pytest.approx(expected, rel=1e-12)


def test_what_is_compressed_is_sent_sooner():
    half = {"kind": "rand_k", "share": 0.5}  # a number and a seed: 12 bytes
    trace = sampled("ring", 4, link={"bandwidth": 16.0}, compression=half, iterations=3)
    np.testing.assert_allclose(trace["seconds"][0, :, 0], np.arange(4) * 12 / 16)


def test_nobody_waits_for_who_sleeps_or_over_links_that_are_down():
    compute, turns = {"seconds": 1.0}, [[[0, 1]], [[0, 1]], [[1, 2]]]
    trace = sampled(
        "path", 3, compute=compute | {"slowest": 5.0}, schedule={"kind": "in_turn", "graphs": turns}
    )
    expected = [[5, 1, 1], [10, 6, 2], [15, 7, 7], [20, 16, 8], [25, 21, 9]]
    np.testing.assert_array_equal(trace["seconds"][0, 1:6], expected)
    trace = sampled("ring", 4, compute=compute, awake=0.5, iterations=30)
    assert (
        np.diff(trace["seconds"], axis=1)[np.diff(trace["activations"], axis=1) == 0] == 0
    ).all()
    assert (trace["seconds"] >= trace["activations"]).all()


def test_pairs_that_gossip_wait_for_each_other():
    compute = {"seconds": 1.0, "slowest": 3.0}
    trace = concord.sample(
        "gossip_ula",
        problem(5),
        concord.network("ring", 5, compute=compute, link={"latency": 0.5}),
        iterations=25,
        chains=4,
        step_size=0.01,
    )
    active = np.diff(trace["activations"], axis=1)
    for c in range(4):
        time = np.zeros(5)
        for k in range(25):
            pair = np.flatnonzero(active[c, k])
            begin = np.maximum(time[pair], time[pair[::-1]] + 0.5)
            time[pair] = begin + np.where(pair == 0, 3.0, 1.0)
            np.testing.assert_allclose(trace["seconds"][c, k + 1], time)


def test_a_clock_changes_no_number():
    for sampler in SAMPLERS:
        plain, timed = (
            sampled("ring", 5, sampler, **happens)["x"] for happens in ({}, {"compute": COMPUTE})
        )
        np.testing.assert_array_equal(plain, timed)


def test_samplers_meet_the_same_times():
    found = [sampled("ring", 5, sampler, compute=COMPUTE)["seconds"] for sampler in SAMPLERS]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


LOSSY = {
    "loss": {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"},
    "on_loss": "reuse_last",
}


@pytest.mark.parametrize("happens", [LOSSY, LOSSY | {"compression": {"kind": "qsgd", "bits": 4}}])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_agents_that_are_alike_need_no_barrier(sampler, happens):
    """Where all take the same time, all have arrived when they begin: the same to the byte."""
    alike = {"compute": {"seconds": 0.3}, **happens}
    waiting, free = (
        sampled("ring", 5, sampler, barrier=barrier, **alike) for barrier in (True, False)
    )
    np.testing.assert_array_equal(waiting["x"], free["x"])
    np.testing.assert_array_equal(
        np.broadcast_to(waiting["unicasts"], free["unicasts"].shape), free["unicasts"]
    )
    np.testing.assert_allclose(waiting["seconds"], free["seconds"])
    assert (free["activations"] == np.arange(13)[:, None]).all()


@pytest.mark.parametrize("latency", [0.0, 0.2, 0.75])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_without_a_barrier_agents_take_the_last_vector_that_had_arrived(latency, rate):
    """Versions, event by event: step m of i has the last of j that was there when i began it."""
    agents, chains, ticks = 5, 3, 40
    compute = {"seconds": 0.5, "spread": 0.5, "slowest": 4.0, "slow_agents": [1]}
    graph = topology.build("edge_list", 5, edges=[[0, 1], [0, 2], [0, 3], [1, 2], [3, 4]])
    loss = {"kind": "bernoulli", "rate": rate, "direction": "one_way"}
    happens = {"on_loss": "reuse_last", "compute": compute, "link": {"latency": latency}}
    net = under(graph, Conditions(**happens, loss=loss, barrier=False), "tests")
    masks, times = np.random.default_rng(4), np.random.default_rng(5)
    net = drawing(net, masks, times)
    x = np.random.default_rng(6).standard_normal((chains, agents, 2))
    start = x.copy()
    channel = connect(net, x)
    weights = graph.metropolis()
    mix = channel.mixer(weights, "simultaneous")
    info = channel.unicasts, channel.broadcasts, channel.active

    def step(state, k, rng):
        out = mix(state[0], np.ones_like(x), np.empty_like(x))
        return (out,), concord.contracts.Info(*info)

    step, found = channel.through(step), []
    state = (x,)
    for k in range(ticks):
        state, told = step(state, k, None)
        found.append((state[0].copy(), told.clock.seconds.copy()))

    drawn = np.random.default_rng(5).standard_exponential((ticks + 1, agents, chains))
    ways = [(i, j) for i in range(agents) for j in graph.neighbors[i]]
    kept = np.random.default_rng(4).random((ticks, len(ways), chains)) < 1 - rate
    dense, late = weights.dense(), math.ceil(latency / 0.25 - 1e-9)
    for c in range(chains):
        versions = [[start[c, i]] for i in range(agents)]  # by agent: where each step has led
        sent = [[0] for _ in range(agents)]  # the tick in which it was sent
        began = [0] * agents
        ends = [drawn[0, i, c] + 1 for i in range(agents)]  # in ticks of 0.25 s
        ends[1] *= 4
        last = [0.0] * agents
        for k in range(ticks):
            done = [i for i in range(agents) if ends[i] <= k + 1]
            moved = {}
            for i in done:
                total = dense[i, i] * versions[i][-1] + 1
                for j in graph.neighbors[i]:
                    come = [
                        v
                        for v, tick in enumerate(sent[j])
                        if tick + late <= began[i] and kept[tick, ways.index((i, j)), c]
                    ]
                    total = total + dense[i, j] * versions[j][max(come, default=0)]
                moved[i] = total
            for i in done:
                versions[i].append(moved[i])
                sent[i].append(k + 1)
                began[i], last[i] = k + 1, ends[i]
                ends[i] += (drawn[k + 1, i, c] + 1) * (4 if i == 1 else 1)
            positions, shown = found[k]
            np.testing.assert_allclose(positions[c], [v[-1] for v in versions], atol=1e-12)
            np.testing.assert_allclose(shown[c], 0.25 * np.array(last), atol=1e-12)


@pytest.mark.parametrize("counted", [np.array([2, 1]), np.array([[2, 1]] * 3)], ids=["all", "each"])
def test_a_step_takes_as_long_as_its_gradients(counted):
    """Without a barrier the first is taken to have one."""
    x = np.zeros((3, 2, 1))
    for barrier, expected in ((True, [2, 4, 6, 8]), (False, [1, 1, 3, 3])):
        happens = {"compute": {"seconds": 1.0}, "barrier": barrier, "on_loss": "reuse_last"}
        network = concord.network("path", 2, **happens)
        network = drawing(network, np.random.default_rng(1), np.random.default_rng(1))
        channel = connect(network, x)

        def step(state, k, rng, channel=channel):
            counts = channel.unicasts, channel.broadcasts, channel.active
            return state, concord.contracts.Info(*counts, counted)

        step, found = channel.through(step), []
        for k in range(4):
            _, info = step((x,), k, None)
            found.append(info.clock.seconds[:, 0].copy())
        np.testing.assert_array_equal(found, np.repeat(expected, 3).reshape(4, 3))


def test_what_is_left_out_waits_until_it_is_sent():
    """Of vectors that stay, what a slow agent has sent adds up to as many times the vector."""
    few = {"compression": {"kind": "top_k", "share": 0.1}, "error_feedback": True}
    compute = {"seconds": 1.0, "slowest": 3.0}
    network = concord.network(
        "path", 2, compute=compute, barrier=False, on_loss="reuse_last", **few
    )
    network = drawing(network, np.random.default_rng(1), np.random.default_rng(1))
    x = np.random.default_rng(2).standard_normal((1, 2, 10))
    channel = connect(network, x)
    mix, heard = channel.mixer(network.metropolis(), "simultaneous"), []

    def step(state, k, rng):
        heard.append(2 * mix(x, 0 * x, np.empty_like(x))[0, 1] - x[0, 1])
        return state, concord.contracts.Info(channel.unicasts, channel.broadcasts, channel.active)

    step = channel.through(step)
    for k in range(900):
        step((x,), k, None)
    came = heard[::3]  # agent 0 sends every third tick, and agent 1 begins in each
    assert abs(np.mean(came, axis=0) - x[0, 0]).max() < 0.1


def test_without_a_barrier_the_fast_do_not_wait():
    compute = {"seconds": 0.1, "slowest": 10.0}
    free = sampled("ring", 6, iterations=100, compute=compute, barrier=False, on_loss="reuse_last")
    assert (free["activations"][:, -1] == [10, 100, 100, 100, 100, 100]).all()
    np.testing.assert_allclose(free["seconds"][:, -1], 10.0)
    assert (free["unicasts"][:, -1] == 2 * np.array([10, 100, 100, 100, 100, 100])).all()
    np.testing.assert_array_equal(free["gradients"], free["activations"])
    assert not free["waited"].any()


def measured(family, trace, agents=6):
    m = Measurement(trace, problem(agents), None, None, None, None, int(trace.draw[-1]), None)
    return {(row.metric, row.iteration, row.agent): row for row in family.rows(m)}


def test_metrics_of_the_clock():
    trace = sampled("ring", 6, iterations=40, compute={"seconds": 0.1, "slowest": 10.0})
    rows = measured(seconds, trace)
    assert rows["seconds", 40, "network"].value == rows["seconds", 40, "0"].value == 40
    assert rows["waiting", 40, "0"].value == 0
    near = rows["waiting", 40, "1"].value
    assert near == pytest.approx((39 + 0.1 - 4) / 39.1)  # an iteration behind, working for 4 s
    assert rows["seconds", 40, "network"].lo is not None and rows["seconds", 40, "1"].chance
    ring = topology.build("ring", 6)
    bare = Measurement(sampled("ring", 6), problem(6), ring, *[None] * 3, 1, None)
    for family in ("seconds", "timeline"):
        with pytest.raises(concord.ConcordError, match=f"{family} needs a network with compute"):
            metrics.measure([family], bare)


def test_what_is_compared_has_its_prices():
    timed = sampled("ring", 6, compute={"seconds": 0.5}, iterations=10)
    table = concord.compare({"timed": timed, "not": sampled("ring", 6, iterations=10)})
    assert table.gradients.tolist() == [10, 10] and table.seconds["timed"] == 5
    assert np.isnan(table.seconds["not"])


def test_gradients_of_agents_and_network():
    rows = measured(gradients, sampled("ring", 6))
    assert rows["gradients", 12, "3"].value == 12 and rows["gradients", 12, "network"].value == 72
    assert not rows["gradients", 12, "3"].chance
    trace = concord.sample(
        "gossip_ula", problem(6), "ring", step_size=0.01, iterations=9, chains=5, progress=False
    )
    rows = measured(gradients, trace)
    assert rows["gradients", 9, "network"].value == 18  # two agents a tick


def test_a_minimum_is_charged_what_its_solver_does():
    """In two dimensions: one at the start, and for each step of Newton's four and one more.

    Those left over when almost all are done begin anew.
    """
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((40, 2)), rng.integers(0, 2, 40)
    logistic = concord.problems.logistic_regression(X, y, agents=4, prior_scale=4.0)
    options = {"penalty": 1.0, "iterations": 5, "chains": 6, "progress": False}
    iterated = concord.sample("admm", logistic, "ring", **options)["gradients"]
    assert iterated.shape == (6, 6, 4)  # chains differ
    steps = np.diff(iterated, axis=1)
    assert np.isin((steps - 1) % 5, (0, 1)).all() and (steps >= 6).all()
    closed = concord.sample("admm", problem(4), "ring", **options)["gradients"]
    np.testing.assert_array_equal(closed, np.arange(6)[:, None] * np.ones(4))


def test_admm_has_no_stale_form():
    free = {"barrier": False, "compute": {"seconds": 1.0}, "on_loss": "reuse_last"}
    network = concord.network("ring", 5, **free)
    with pytest.raises(concord.ConcordError, match=r"^network.barrier: ADMM adds up differences"):
        concord.sample("admm", problem(5), network, iterations=2, penalty=1.0)


def test_a_network_with_a_clock_alone_loses_nothing():
    network = concord.network("ring", 5, compute={"seconds": 1.0})
    assert network.conditions.eventful and network.conditions.perfect


def test_what_push_sum_sends_besides_takes_its_time():
    """Its weight is one number more."""
    network = concord.network("ring", 4, link={"bandwidth": 8.0})
    options = {"step_size": 0.02, "iterations": 2, "chains": 2, "progress": False}
    trace = concord.sample("push_sum_sgld", problem(4), network, **options)
    np.testing.assert_allclose(trace["seconds"][0, :, 0], [0, 3, 6])
    for happens in ({"noise": 0.1}, {"privacy": {"clip": 1.0, "sigma": 1.0}}):
        kept = concord.network("ring", 4, on_loss="sender_keeps", **happens)
        with pytest.raises(concord.ConcordError, match="weights it sends, which have to arrive"):
            concord.sample("push_sum_sgld", problem(4), kept, **options)


def test_two_vectors_take_twice_the_time_of_one():
    """16 bytes at 8 a second, once or twice; what is compressed to a coordinate, less."""
    options = {"step_size": 0.02, "iterations": 2, "chains": 2, "progress": False}
    one = {"kind": "top_k", "share": 0.5}
    for sampler, own, each in [
        ("de_sgld", {}, 2.0),
        ("diging_sgld", {}, 4.0),
        ("choco_sgld", {"compression": one}, 9 / 8),  # a coordinate and its place
    ]:
        network = concord.network("ring", 4, link={"bandwidth": 8.0})
        trace = concord.sample(sampler, problem(4), network, **options, **own)
        np.testing.assert_allclose(trace["seconds"][0, :, 0], [0, each, 2 * each])


@pytest.mark.parametrize(("sampler", "ticks"), [("de_sgld", 2), ("diging_sgld", 4)])
def test_without_a_barrier_two_vectors_are_twice_as_many_ticks_on_their_way(sampler, ticks):
    network = concord.network(
        "ring", 4, compute={"seconds": 1.0}, link={"bandwidth": 8.0}, barrier=False,
        on_loss="reuse_last",
    )  # fmt: skip
    network = drawing(network, *(np.random.default_rng(seed) for seed in (1, 2)))
    vectors = {"de_sgld": 1, "diging_sgld": 2}[sampler]
    assert connect(network, np.zeros((3, 4, 2)), vectors).clock.ticks == ticks


def test_what_is_under_way_for_ever_is_refused():
    slow = {"compute": {"seconds": 1e-3}, "link": {"latency": 10.0}, "on_loss": "reuse_last"}
    with pytest.raises(concord.ConcordError, match=r"on its way for 10000 ticks .* at most 1000"):
        sampled("ring", 5, barrier=False, **slow)
    assert sampled("ring", 5, **slow)["seconds"][0, 1, 0] == pytest.approx(10.001)
