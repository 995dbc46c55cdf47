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
from concord.samplers.admm import ADMM
from concord.samplers.c_ula import CULA
from concord.samplers.choco_sgld import CHOCOSGLD
from concord.samplers.consensus_mc import ConsensusMC
from concord.samplers.d_mala import DMALA
from concord.samplers.d_ula import DULA
from concord.samplers.de_psgld import DEPSGLD, Ball
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD
from concord.samplers.dg_lmc import DGLMC
from concord.samplers.diging_sgld import DIGingSGLD
from concord.samplers.extra_sgld import EXTRASGLD
from concord.samplers.fsgld import FSGLD
from concord.samplers.gossip_ula import GossipULA
from concord.samplers.graph_gibbs import GraphGibbs
from concord.samplers.local_sgld import LocalSGLD
from concord.samplers.push_sum_sgld import PushSumSGLD
from concord.samplers.qlsd import QLSD
from concord.samplers.sgd import SGD
from steps import DECAYING, Regression, start

LOSS = {"kind": "bernoulli", "rate": 0.3, "direction": "one_way"}
RING, SERVER, ALONE = network("ring", 4), network("server", 4), network("no_edges", 1)
LOSSY = network("ring", 4, loss=LOSS, awake=0.7, on_loss="reuse_last", noise=0.1)
QSGD, TRIGGER = (
    Compression("qsgd", bits=3),
    {"communication": "triggered", "threshold": 0.5, "decay": 1.0},
)
KEEPING = network("ring", 4, loss=LOSS, awake=0.7, on_loss="sender_keeps")
CASES = [
    (DESGLD(DECAYING), RING),
    (DESGLD(DECAYING), LOSSY),
    (DESGLD(DECAYING), Network(RING.graph, order="in_place")),
    (DESGHMC(DECAYING, 1.0, initial_velocity_sd=1.0), LOSSY),
    (DULA(DECAYING, 0.2, prior_gradient="after_mixing"), LOSSY),
    (CULA(DECAYING), ALONE),
    (SGD(DECAYING), ALONE),
    (EXTRASGLD(DECAYING), LOSSY),
    (DIGingSGLD(DECAYING), LOSSY),
    (PushSumSGLD(DECAYING), KEEPING),
    (CHOCOSGLD(DECAYING, QSGD), RING),
    (DEPSGLD(DECAYING, Ball(0.3), 0.1), LOSSY),
    (LocalSGLD(DECAYING, period=2, common_noise=0.5), LOSSY),
    (LocalSGLD(DECAYING, renewal=0.5, communication=0.5), RING),
    (ADMM(0.7), network("ring", 4, loss=LOSS, awake=0.7, on_loss="reuse_last")),
    (ADMM(0.7, noise=False), RING),
    (GraphGibbs(0.1), RING),
    (GraphGibbs(0.1, DECAYING), RING),
    (DMALA(0.2, "whole", "energy"), RING),
    (DMALA(0.2, "half", "mala"), RING),
    (GossipULA(0.01), network("ring", 4, loss=LOSS)),
    (GossipULA(0.01, **TRIGGER), RING),
    (ConsensusMC(), SERVER),
    (ConsensusMC(DECAYING, combine="gaussian"), SERVER),
    (FSGLD(DECAYING, "laplace", local_steps=2), SERVER),
    (QLSD(DECAYING, QSGD, memory_rate=0.2, participants=3), SERVER),
    (QLSD(DECAYING, QSGD, memory_start="mode"), SERVER),
    (DGLMC(DECAYING, 0.1, local_steps=2, particles=2), SERVER),
]
BATCHED = [
    (DESGLD(DECAYING), LOSSY),
    (LocalSGLD(DECAYING, period=2, renewal=0.5), RING),
    (QLSD(DECAYING, QSGD, renewal=2), SERVER),
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
    own = MiniBatches(problem, Batches(2), 5, rng) if batches else problem
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
        running.end(k, counted.settle(running.awake))
    np.testing.assert_array_equal(x0, before)


def test_every_sampler_is_looked_at():
    assert {kinds.find("samplers", kind, "tests") for kind in kinds.built_in("samplers")} == {
        type(sampler) for sampler, _ in CASES
    }
