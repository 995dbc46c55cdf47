"""The simulated clock: with barrier by loops and closed forms, without by versions of vectors."""

import itertools
import math

import numpy as np
import pytest

from concord.errors import ConcordError
from concord.loop import run
from concord.networks.construction import network
from concord.networks.topology import build_graph
from concord.problem import CountedProblem
from concord.samplers.admm import ADMM
from concord.samplers.d_ula import DULA
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD
from concord.samplers.gossip_ula import GossipULA
from concord.samplers.local_sgld import LocalSGLD
from steps import Regression, logistic, start

SAMPLERS = [DESGLD(0.02), DULA(0.02, 0.2), DESGHMC(0.05, 1.0)]
every_sampler = pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: s.name)


class Timed:
    """What a sampler has done, and when, after each step, (1 + steps, chains, agents)."""

    def __init__(
        self, kind, agents, sampler=SAMPLERS[0], steps=12, chains=3, problem=None, **happens
    ):
        problem = problem or Regression(agents, 2)
        x0, net = start(problem, chains), network(kind, agents, **happens)
        net = net.start(x0, *(np.random.default_rng(seed) for seed in (4, 5)))
        counted, found = CountedProblem(problem, chains), []

        def note(k, state):
            parts = (
                state.x,
                net.clock.seconds.T,
                net.clock.waited.T,
                net.meter.activations,
                net.meter.unicasts,
            )
            shape = chains, agents
            found.append(
                [
                    parts[0],
                    *(np.broadcast_to(0 if part is None else part, shape) for part in parts[1:]),
                ]
            )

        run(sampler, counted, net, x0, steps, np.random.default_rng(1), [note])
        found = [np.array(part) for part in zip(*found, strict=True)]
        self.x, self.seconds, self.waited, self.activations, self.unicasts = found
        self.gradients = counted.total


def exponentials(agents, chains, steps):
    """Return the numbers of the clock's stream, (steps, agents, chains), after the first."""
    return np.random.default_rng(5).standard_exponential((steps + 1, agents, chains))[1:]


COMPUTE = {"seconds": 0.5, "spread": 0.4, "slowest": 3.0}


def test_agents_wait_for_their_neighbors_as_in_a_loop():
    """A star, whose center waits for all; 16 bytes in 0.25 s, and 0.1 s on the way."""
    agents, chains, steps = 5, 3, 8
    link = {"latency": 0.1, "bandwidth": 64.0}
    found = Timed("star", agents, steps=steps, compute=COMPUTE, link=link)
    drawn, graph = exponentials(agents, chains, steps), build_graph("star", agents)
    time, waited = np.zeros((chains, agents)), np.zeros((chains, agents))
    for k, c in itertools.product(range(steps), range(chains)):
        before = time[c].copy()
        for i in range(agents):
            begin = max([before[i], *(before[j] + 0.35 for j in graph.neighbors[i])])
            takes = (0.3 + 0.2 * drawn[k, i, c]) * (3.0 if i == 0 else 1.0)
            waited[c, i] += begin - before[i]
            time[c, i] = begin + takes
        np.testing.assert_allclose(found.seconds[k + 1, c], time[c], rtol=1e-12)
        np.testing.assert_allclose(found.waited[k + 1, c], waited[c], rtol=1e-12)


def test_times_are_shifted_exponential():
    """Mean seconds, and standard deviation spread times that, of agents that are not slow."""
    found = Timed("no_edges", 4, steps=300, chains=50, compute=COMPUTE)
    takes = np.diff(found.seconds, axis=0).reshape(-1, 4) / [3, 1, 1, 1]
    assert (takes >= 0.3).all()
    error = 0.2 / np.sqrt(len(takes))
    assert (np.abs(takes.mean(axis=0) - 0.5) < 5 * error).all()
    assert (np.abs(takes.std(axis=0) - 0.2) < 5 * math.sqrt(2) * error).all()  # kurtosis 9


def test_nobody_waits_for_who_sleeps_or_over_links_that_are_down():
    compute, turns = {"seconds": 1.0}, [[[0, 1]], [[0, 1]], [[1, 2]]]
    schedule = {"kind": "in_turn", "graphs": turns}
    found = Timed("path", 3, compute=compute | {"slowest": 5.0}, schedule=schedule)
    expected = [[5, 1, 1], [10, 6, 2], [15, 7, 7], [20, 16, 8], [25, 21, 9]]
    np.testing.assert_array_equal(found.seconds[1:6, 0], expected)
    found = Timed("ring", 4, compute=compute, awake=0.5, steps=30)
    still = np.diff(found.activations, axis=0) == 0
    assert still.any() and (np.diff(found.seconds, axis=0)[still] == 0).all()
    assert (found.seconds >= found.activations).all()


def test_pairs_that_gossip_wait_for_each_other():
    compute, link = {"seconds": 1.0, "slowest": 3.0}, {"latency": 0.5}
    found = Timed("ring", 5, GossipULA(0.01), 25, 4, compute=compute, link=link)
    active = np.diff(found.activations, axis=0)
    for c in range(4):
        time = np.zeros(5)
        for k in range(25):
            pair = np.flatnonzero(active[k, c])
            begin = np.maximum(time[pair], time[pair[::-1]] + 0.5)
            time[pair] = begin + np.where(pair == 0, 3.0, 1.0)
            np.testing.assert_allclose(found.seconds[k + 1, c], time)


def test_a_step_takes_as_long_as_its_gradients():
    """Three local steps; minima as many as their solver's; without a barrier the first has one."""
    compute = {"seconds": 1.0}
    local = LocalSGLD(0.01, period=3)
    assert (
        Timed("ring", 4, local, 5, compute=compute).seconds == 3 * np.arange(6)[:, None, None]
    ).all()
    found = Timed("ring", 4, ADMM(0.7), 2, problem=logistic(4), compute=compute)
    assert (found.seconds[-1] == 100).all() and (found.gradients == 100).all()
    free = Timed("ring", 4, local, 8, compute=compute, barrier=False, on_loss="reuse_last")
    assert free.seconds[:, 0, 0].tolist() == [0, 1, 1, 1, 4, 4, 4, 7, 7]


LOSSY = {
    "loss": {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"},
    "on_loss": "reuse_last",
}


@pytest.mark.parametrize("happens", [LOSSY, LOSSY | {"compression": {"kind": "qsgd", "bits": 4}}])
@every_sampler
def test_agents_that_are_alike_need_no_barrier(sampler, happens):
    """Where all take the same time, all have arrived when they begin: the same to the byte."""
    alike = {"compute": {"seconds": 0.3}, **happens}
    waiting, free = (Timed("ring", 5, sampler, barrier=each, **alike) for each in (True, False))
    np.testing.assert_array_equal(waiting.x, free.x)
    np.testing.assert_array_equal(waiting.unicasts, free.unicasts)
    np.testing.assert_allclose(waiting.seconds, free.seconds)
    assert (free.activations == np.arange(13)[:, None, None]).all()


class Adding:
    """A sampler that averages and adds one."""

    def init(self, x0, problem, net, rng):
        return DESGLD(0.1).init(x0, problem, net, rng)

    def step(self, state, k, problem, net, rng):
        problem.pay(1)
        return state._replace(x=net.mix("metropolis", state.x, np.ones_like(state.x)))


@pytest.mark.parametrize(
    ("link", "seconds"),
    [({}, 0.0), ({"latency": 0.2}, 0.2), ({"latency": 0.75}, 0.75), ({"bandwidth": 32.0}, 0.5)],
    ids=str,
)
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_without_a_barrier_agents_take_the_last_vector_that_had_arrived(link, seconds, rate):
    """Versions, event by event: step m of i has the last of j that was there when i began it."""
    agents, chains, ticks = 5, 3, 40
    compute = {"seconds": 0.5, "spread": 0.5, "slowest": 4.0}
    edges = {"kind": "edge_list", "edges": [[0, 1], [0, 2], [0, 3], [1, 2], [3, 4]]}
    loss = {"kind": "bernoulli", "rate": rate, "direction": "one_way"}
    found = Timed(
        edges, agents, Adding(), ticks, chains, compute=compute, link=link,
        loss=loss, on_loss="reuse_last", barrier=False,
    )  # fmt: skip
    graph = network(edges, agents).graph
    drawn = np.random.default_rng(5).standard_exponential((ticks + 1, agents, chains))
    ways = [(i, j) for i in range(agents) for j in graph.neighbors[i]]
    kept = np.random.default_rng(4).random((ticks, len(ways), chains)) < 1 - rate
    dense, late = graph.metropolis, math.ceil(seconds / 0.25 - 1e-9)
    for c in range(chains):
        versions = [[x] for x in found.x[0, c]]  # by agent: where each step has led
        sent = [[0] for _ in range(agents)]  # the tick in which it was sent
        began, last = [0] * agents, [0.0] * agents
        ends = [(drawn[0, i, c] + 1) * (4 if i == 0 else 1) for i in range(agents)]  # in ticks
        for k in range(ticks):
            done, moved = [i for i in range(agents) if ends[i] <= k + 1], {}
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
                ends[i] += (drawn[k + 1, i, c] + 1) * (4 if i == 0 else 1)
            np.testing.assert_allclose(found.x[k + 1, c], [v[-1] for v in versions], atol=1e-12)
            np.testing.assert_allclose(found.seconds[k + 1, c], 0.25 * np.array(last), atol=1e-12)


def test_a_link_too_slow_to_keep_all_under_way_is_refused():
    late = {"compute": {"seconds": 1e-3}, "link": {"latency": 5.0}}
    with pytest.raises(ConcordError, match="is on its way for 5000 ticks of the clock"):
        Timed("ring", 4, barrier=False, on_loss="reuse_last", **late)
