"""Auxiliaries that start from the positions: chains against the exact law."""

from __future__ import annotations

import numpy as np
import pytest
from chains import errors

import concord
import tracking
from concord.laws import exact, paths
from concord.networks import topology
from concord.sampling.loop import simulate
from concord.sampling.recorder import Record, Recorder
from concord.sampling.schedules import Schedule

AGENTS, DIM, CHAINS, STEPS = 4, 2, 4000, 12
POSITIONS = 0.5, 2.0


def problem():
    rng = np.random.default_rng(2)
    features = rng.standard_normal((AGENTS, 8, DIM))
    shift = 3 * rng.standard_normal((AGENTS, DIM))
    return concord.problems.quadratic(features.swapaxes(1, 2) @ features, shift)


def deviation(sampled: str, stated: str) -> float:
    """Return the largest difference of a mean or covariance from the law, in standard errors."""
    target, graph = problem(), topology.build("ring", AGENTS)
    params = tracking.Params(Schedule(0.01), sampled)
    rng = np.random.default_rng(7)
    x0 = POSITIONS[0] + POSITIONS[1] * rng.standard_normal((CHAINS, AGENTS, DIM))
    state, step = tracking.init(target, graph, params, x0, rng)
    recorder = Recorder(Record(at=(1, 2, STEPS)), target, x0.shape, STEPS)
    draws = simulate(state, step, STEPS, recorder, rng)["x"]

    update = tracking.affine(target, graph, tracking.Params(Schedule(0.01), stated))
    start = exact.initial(AGENTS, DIM, POSITIONS, *update.auxiliary)
    law = paths.single(update, start, AGENTS, DIM).law([1, 2, STEPS])
    return errors(draws, law.mean, law.cov)


@pytest.mark.parametrize("start", ["gradient", "zero"])
def test_chains_have_the_law_of_their_start(start):
    assert deviation(start, start) < 5


def test_a_law_with_another_start_is_seen():
    assert deviation("gradient", "zero") > 20
