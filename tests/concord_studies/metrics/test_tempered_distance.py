"""Metrics of samplers within sets: distances of all chains, draws outside, powers, averages."""

import numpy as np
import pytest

import everything
from concord import streams
from concord.samplers.de_psgld import DEPSGLD, Ball
from concord.sampling.partition import Partition
from concord.sampling.schedules import Schedule
from concord_studies.metrics import tempered_distance
from measurements import Positions, last_rows

ball = everything.kind("problems", "ball")
EQUAL = Partition.parse({"kind": "equal"}, "partition")


def stream(what):
    return streams.generator(3, what)


@pytest.mark.parametrize(("scale", "power"), [("mean", 2 / 40), ("none", 10 / 40)])
def test_means_of_batches_have_a_power_of_the_posterior(scale, power):
    """Its distance is that of a problem whose noise makes that power, measured by draws."""
    options = {"points": 40}
    problem, wide = (
        ball.build(
            ball.Params(radius=5.0, model="linear_regression", options={**options, **more}),
            *(2, EQUAL, stream, None),
        )
        for more in ({}, {"noise_sd": power**-0.5})
    )
    # another noise draws other points: hold those of the first
    for name in ("gram", "shift"):
        setattr(wide, name, power * getattr(problem, name))
    ball_of_5 = Ball(radius=5.0)
    sampler = DEPSGLD(Schedule(0.1), ball_of_5, 0.01, batch_size=5, batch_scale=scale)
    trace = Positions(np.zeros((1, 1, 2, 2)))
    rows = last_rows(tempered_distance, trace, problem=problem, sampler=sampler)
    assert rows["law_power", "network"].value == pytest.approx(power)
    levels = (np.arange(4000) + 0.5) / 4000
    apart = np.abs(wide.reference.quantiles(levels) - problem.reference.quantiles(levels))
    assert rows["law_tempered_w1", "network"].value == pytest.approx(apart.mean(), rel=0.01)
