"""What samplers reduce to: to C-ULA with one agent, to DE-SGLD, to Langevin chains apart."""

import numpy as np
import pytest
from msgspec.structs import replace

from concord.minibatches import Batches
from concord.networks.compressions import Compression
from concord.networks.construction import network
from concord.samplers.c_ula import CULA
from concord.samplers.choco_sgld import CHOCOSGLD
from concord.samplers.consensus_mc import ConsensusMC
from concord.samplers.d_mala import DMALA
from concord.samplers.d_ula import DULA
from concord.samplers.de_psgld import DEPSGLD, Box
from concord.samplers.de_sgld import DESGLD
from concord.samplers.diging_sgld import DIGingSGLD
from concord.samplers.extra_sgld import EXTRASGLD
from concord.samplers.fsgld import FSGLD
from concord.samplers.local_sgld import LocalSGLD
from concord.samplers.push_sum_sgld import PushSumSGLD
from concord.samplers.qlsd import QLSD
from concord.samplers.sgd import SGD
from concord.sampling.schedules import Schedule
from steps import CONSTANT, DECAYING, Regression, Still, chain

ALONE, SERVER = network("no_edges", 1), network("server", 4)
ROUND, RING = network("directed_ring", 6, every=1), network("ring", 5)
WHOLE = Compression("top_k", share=1.0)


def close(one, other, **given):
    np.testing.assert_allclose(one, other, **{"rtol": 1e-11, "atol": 1e-12, **given})


@pytest.mark.parametrize(
    "batches", [{}, {"batch_size": 3}, {"batch_size": 2, "batch_order": "epochs"}]
)
@pytest.mark.parametrize(
    "sampler",
    [
        DESGLD(DECAYING),
        DIGingSGLD(DECAYING),
        EXTRASGLD(DECAYING),
        LocalSGLD(DECAYING),
        DULA(DECAYING, 0.3),
        PushSumSGLD(DECAYING),
        QLSD(DECAYING, WHOLE),
        CHOCOSGLD(DECAYING, WHOLE),
        FSGLD(DECAYING),
    ],
    ids=lambda sampler: sampler.name,
)
def test_one_agent_is_c_ula_draw_for_draw(sampler, batches):
    if batches and not isinstance(sampler, Batches):
        return
    problem = Regression(1, 3, points=8)

    class Normal:
        """Nothing but normal numbers, and those of mini-batches, are shared with C-ULA."""

        def __init__(self):
            self.rng, self.other = np.random.default_rng(1), np.random.default_rng(2)
            self.standard_normal, self.permuted = self.rng.standard_normal, self.rng.permuted

        def random(self, size):
            return (self.rng if np.ndim(np.empty(size)) == 3 else self.other).random(size)

    one, other = (
        chain(replace(each, **batches), problem, ALONE, rng=Normal())
        for each in (sampler, CULA(DECAYING))
    )
    close(one, other)


REDUCTIONS = {
    "CHOCO without compression": (RING, CHOCOSGLD(CONSTANT, WHOLE), DESGLD(CONSTANT)),
    "D-MALA with half the drift, alone": (
        ALONE, DMALA(Schedule(0.2), "half", "none"), CULA(Schedule(0.02))
    ),
    "push-sum where all hear as many as they send to": (
        ROUND, PushSumSGLD(CONSTANT), DESGLD(CONSTANT, weights="row_stochastic")
    ),
    "D-ULA with the weights of its graph": (
        RING, DULA(CONSTANT, 0.2, gradient_scale="one", noise_variance="one"),
        DESGLD(CONSTANT, weights=0.2),
    ),
    "a server and the complete graph": (
        SERVER, LocalSGLD(CONSTANT, period=3), network("complete", 4), LocalSGLD(CONSTANT, period=3)
    ),
    "a whole box": (
        RING, DEPSGLD(CONSTANT, Box(-1e9, 1e9), 0.01), DESGLD(CONSTANT)
    ),
    "agents of Consensus Monte Carlo": (
        SERVER, ConsensusMC(CONSTANT), network("no_edges", 4), DESGLD(CONSTANT)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_one_sampler_is_another(name):
    net, one, *rest = REDUCTIONS[name]
    other_net, other = rest if len(rest) == 2 else (net, rest[0])
    problem = Regression(net.agents, 2)
    close(chain(one, problem, net, 12), chain(other, problem, other_net, 12))


def test_sgd_is_c_ula_without_noise():
    problem = Regression(1, 2)
    close(chain(SGD(0.1), problem, ALONE), chain(CULA(0.1), problem, ALONE, rng=Still()))
