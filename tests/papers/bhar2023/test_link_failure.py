"""What failing links cost, beside the exact error of two agents worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

import everything
import measurements
from concord.errors import ConcordError
from concord.networks.construction import network
from concord.options import build
from concord.samplers.d_ula import DULA
from concord.samplers.gossip_ula import GossipULA
from concord.sampling.initial import Law
from steps import Bare, Quadratic, recorded

link_failure = everything.kind("metrics", "link_failure")
STEP, FUSION, CURVATURE = 0.02, 0.2, 1.5
PAIR = Quadratic(np.full((2, 1, 1), CURVATURE), np.zeros((2, 1)))


def measure(kind, loss, ticks=600, chains=2000, **options):
    """Return the measurement of two agents whose link fails with a probability."""
    net = network("complete", 2, loss={"kind": "bernoulli", "rate": loss, "direction": "link"})
    sampler = build(kind, {"step_size": STEP, "fusion": FUSION, **options}, "sampler")
    trace = recorded(sampler, PAIR, net, ticks, chains, every=5, probes=("consensus_error",))
    run = {"problem": PAIR, "network": net, "sampler": sampler, "initial": Law("normal")}
    return measurements.measurement(trace, **run)


# Both agents move in every tick, their difference d by (1 - h - 2 beta) d + noise, without beta
# if the link fails; h is 2 alpha times the curvature, for gossip with N alpha/p = 2 alpha, too.
@pytest.mark.parametrize("kind", [DULA, GossipULA])
@pytest.mark.parametrize("loss", [0.0, 0.3, 0.8])
def test_two_agents_by_hand(kind, loss) -> None:
    options = {"drift": "whole"} if kind is GossipULA else {}
    (row,) = link_failure.rows(measure(kind, loss, **options))
    alone = 1 - 2 * STEP * CURVATURE
    together = alone - 2 * FUSION
    cost = (1 - together**2) / (1 - (1 - loss) * together**2 - loss * alone**2)
    error = (row.hi - row.lo) / 4
    assert error < 0.02 * cost
    assert row.value == pytest.approx(cost, abs=4 * error)


def test_another_problem_is_refused() -> None:
    m = replace(measure(DULA, 0.3, ticks=10, chains=2), problem=Bare(2))
    with pytest.raises(ConcordError, match="link_failure needs a Gaussian problem"):
        list(link_failure.rows(m))
