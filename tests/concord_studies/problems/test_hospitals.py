"""The study of hospitals: its problems, and what its metric says of their laws."""

from typing import Any

import numpy as np
import pytest

import everything
from concord.networks.construction import network
from concord.problems.from_options import from_options
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule
from concord_studies.metrics import find_family
from measurements import law_measurement

AGENTS = {"schools": 8, "clinics": 20}


def build(data: str, effects: str) -> Any:
    """Return a problem of the study."""
    make = from_options(everything.kind("problems", "hospitals"))
    return make(agents=AGENTS[data], data=data, effects=effects)


@pytest.mark.parametrize("data", AGENTS)
def test_both_have_the_same_posterior(data: str) -> None:
    """The effect of each hospital has the same law at home and where all hold all effects."""
    home, shared = build(data, "home"), build(data, "shared")
    for agent in range(home.agents):
        own, every = home.posterior.of(agent), shared.posterior
        v, w = home.effect[agent], shared.effect[agent]
        np.testing.assert_allclose(v @ own.mean, w @ every.mean)
        np.testing.assert_allclose(v @ own.cov @ v, w @ every.cov @ w)
    assert (home.alone[1] > 0).all()


def test_of_one_school_alone() -> None:
    """Its effect has prior variance 0.5 (mean and own part), and one row: precisions add up."""
    home = build("schools", "home")
    variance = 1 / (1 / 0.5 + 1 / 1.5**2)
    np.testing.assert_allclose(home.alone[1][0] ** 2, variance)
    np.testing.assert_allclose(home.alone[0][0], variance * 2.8 / 1.5**2)


@pytest.mark.parametrize(("effects", "size"), [("home", 8), ("shared", 72)])
def test_the_metric_compares_each_effect(effects: str, size: int) -> None:
    """b^2 is small at a small step; the worst of all is the network's; bytes are of a vector."""
    sampler = DESGLD(Schedule(0.02))
    m = law_measurement(sampler, network("ring", 8), build("schools", effects), 4000)
    m.trace.draw = np.array([4000])
    rows = {(row.agent, row.metric): row.value for row in find_family("effects")(m)}
    worst = max(rows[str(agent), "effect_b2"] for agent in range(8))
    assert 0 < worst == rows["network", "effect_b2"] < 0.01
    assert rows["network", "vector_bytes"] == size
    assert rows["network", "narrower"] < 1
    ratio = rows["3", "effect_sd"] / rows["3", "exact_sd"]
    assert ratio == pytest.approx(1, abs=0.05)
