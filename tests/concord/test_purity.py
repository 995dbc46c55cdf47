"""Steps are pure: they change nothing that they are given, and depend on nothing besides."""

import copy

import numpy as np
import pytest

from concord import kinds
from concord.batch_gradients import MiniBatches
from concord.minibatches import Batches
from concord.networks.compressions import Compression
from concord.networks.construction import network
from concord.networks.network import Network
from concord.problem import CountedProblem
from concord.sampler import WithReadOut
from steps import DECAYING, Regression, start

LOSS = {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}
RING, SERVER, ALONE = network("ring", 4), network("server", 4), network("no_edges", 1)
LOSSY = network("ring", 4, loss=LOSS, awake=0.7, on_loss="reuse_last", noise=0.1)
QSGD, TRIGGER = (
    Compression("qsgd", bits=3),
    {"communication": "triggered", "threshold": 0.5, "decay": 1.0},
)
KEEPING = network("ring", 4, loss=LOSS, awake=0.7, on_loss="sender_keeps")


def sampler(kind, *values, **options):
    """Return a sampler of a kind with its options by position and name."""
    return kinds.find("samplers", kind, "tests")(*values, **options)


CASES = [
    (sampler("de_sgld", DECAYING), RING),
    (sampler("de_sgld", DECAYING), LOSSY),
    (sampler("de_sgld", DECAYING), Network(RING.graph, order="in_place")),
    (sampler("de_sghmc", DECAYING, 1.0, initial_velocity_sd=1.0), LOSSY),
    (sampler("d_ula", DECAYING, 0.2, prior_gradient="after_mixing"), LOSSY),
    (sampler("c_ula", DECAYING), ALONE),
    (sampler("sgd", DECAYING), ALONE),
    (sampler("extra_sgld", DECAYING), LOSSY),
    (sampler("diging_sgld", DECAYING), LOSSY),
    (sampler("push_sum_sgld", DECAYING), KEEPING),
    (sampler("choco_sgld", DECAYING, QSGD), RING),
    (sampler("de_psgld", DECAYING, {"kind": "ball", "radius": 0.3}, 0.1), LOSSY),
    (sampler("local_sgld", DECAYING, period=2, common_noise=0.5), LOSSY),
    (sampler("local_sgld", DECAYING, renewal=0.5, communication=0.5), RING),
    (sampler("admm", 0.7), network("ring", 4, loss=LOSS, awake=0.7, on_loss="reuse_last")),
    (sampler("admm", 0.7, noise=False), RING),
    (sampler("graph_gibbs", 0.1), RING),
    (sampler("graph_gibbs", 0.1, DECAYING), RING),
    (sampler("d_mala", 0.2, "whole", "energy"), RING),
    (sampler("d_mala", 0.2, "half", "mala"), RING),
    (sampler("gossip_ula", 0.01), network("ring", 4, loss=LOSS)),
    (sampler("gossip_ula", 0.01, **TRIGGER), RING),
    (sampler("consensus_mc"), SERVER),
    (sampler("consensus_mc", DECAYING, combine="gaussian"), SERVER),
    (sampler("fsgld", DECAYING, "laplace", local_steps=2), SERVER),
    (sampler("qlsd", DECAYING, QSGD, memory_rate=0.2, participants=3), SERVER),
    (sampler("qlsd", DECAYING, QSGD, memory_start="mode"), SERVER),
    (sampler("dg_lmc", DECAYING, 0.1, local_steps=2, particles=2), SERVER),
]
BATCHED = [
    (sampler("de_sgld", DECAYING), LOSSY),
    (sampler("local_sgld", DECAYING, period=2, renewal=0.5), RING),
    (sampler("qlsd", DECAYING, QSGD, renewal=2), SERVER),
]


def freeze(state):
    """Make a state's arrays read-only, and return copies of them."""
    for part in state:
        part.flags.writeable = False
    return [part.copy() for part in state]


@pytest.mark.parametrize(
    ("sampler", "net", "batches"),
    [(*case, False) for case in CASES] + [(*case, True) for case in BATCHED],
    ids=lambda each: getattr(each, "name", None),
)
def test_a_step_returns_new_arrays_and_the_same_again(sampler, net, batches):
    """Twice from each state: state, network and generator are all that a step depends on."""
    rng, problem = np.random.default_rng(2), Regression(net.agents, 2)
    x0 = start(problem, 5)
    x0.flags.writeable = False
    before = x0.copy()
    own = MiniBatches(problem, Batches(batch_size=2), 5, rng) if batches else problem
    counted = CountedProblem(own, 5)
    sampler.check(own, net)
    running = net.start(x0, np.random.default_rng(3))
    state = sampler.init(x0, counted, running, rng)
    for k in range(5):
        kept = freeze(state)
        running.begin(k)
        ends = []
        # Of the same network, problem and generator twice, copied as they are.
        for given in (copy.deepcopy((counted, running, rng)), (counted, running, rng)):
            ends.append(sampler.step(state, k, *given))
        assert type(ends[0]) is type(ends[1]) is type(state)
        for one, other in zip(*ends, strict=True):
            np.testing.assert_array_equal(one, other)
        for part, copied in zip(state, kept, strict=True):
            np.testing.assert_array_equal(part, copied)
        assert not np.array_equal(ends[1].x, state.x) or net is LOSSY or sampler.name == "DG-LMC"
        state = ends[1]
        if isinstance(sampler, WithReadOut):
            kept = freeze(state)
            read = sampler.read_out(state)
            assert read.shape == x0.shape
            for part, copied in zip(state, kept, strict=True):
                np.testing.assert_array_equal(part, copied)
        running.end(k, counted.close_count(running.awake))
    np.testing.assert_array_equal(x0, before)
