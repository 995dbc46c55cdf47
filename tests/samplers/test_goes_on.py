"""Chains go on from a state, an iteration and a generator alone."""

import numpy as np
import pytest

from concord.testing.variants import combinations
from variants import SAMPLERS

# These draw random numbers of many steps at once.
AHEAD = {"gossip_ula"}
ORDERED = {"epochs", "whole_batches"}  # of points, which are shuffled for many steps at once


@pytest.mark.parametrize("kind", [kind for kind in SAMPLERS if kind not in AHEAD])
def test_a_chain_goes_on_from_state_iteration_and_generator(kind):
    module = SAMPLERS[kind]
    for case in combinations(module, dims=(2,)):
        _, graph, prob, params = case
        if case.batched and getattr(params, "batch_order", "") in ORDERED:
            continue
        x0 = np.random.default_rng(1).standard_normal((4, prob.agents, 2))
        ends = []
        for again in (False, True):
            rng = np.random.default_rng(2)
            state, step = module.init(prob, graph, params, x0.copy(), rng)
            for k in range(6):
                if again and k == 3:
                    kept = type(state)(*(part.copy() for part in state))
                    _, step = module.init(prob, graph, params, x0 + 1, np.random.default_rng(3))
                    state = kept
                state, _ = step(state, k, rng)
            ends.append(state)
        for one, other in zip(*ends, strict=True):
            assert np.array_equal(one, other, equal_nan=True), (graph.name, params)
