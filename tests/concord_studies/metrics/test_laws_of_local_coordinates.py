"""Metrics of agents that hold coordinates of their own."""

from dataclasses import replace

import numpy as np
import pytest

import concord
from concord.networks.construction import network
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule
from concord_studies.metrics import find_family
from measurements import law_measurement

H = [[[1.0, 1.0], [1.0, 2.0]]] * 4  # y_i ~ N(mu + u_i, 1), u_i ~ N(0, 1)
B = [[y, y] for y in (0.0, 1.0, 2.0, 3.0)]


def test_w2_compares_each_agent_with_what_it_holds() -> None:
    """As ``concord.w2`` of the same law and chains does; the average with that of the average."""
    effects = concord.problems.quadratic(H, B, local=[False, True])
    run = {"iterations": 40, "step_size": 0.05, "record": {"at": [20, 40]}}
    law = concord.law("de_sgld", effects, "ring", **run)
    trace = concord.sample("de_sgld", effects, "ring", chains=40, **run)
    m = law_measurement(DESGLD(Schedule(0.05)), network("ring", 4), effects, 40)
    rows = list(find_family("w2")(replace(m, trace=trace)))
    known, fitted = concord.w2(law, effects), concord.w2(trace, effects)
    for name, expected in (("w2_exact", known), ("w2", fitted)):
        found = {(r.iteration, r.agent): r.value for r in rows if r.metric == name}
        assert len(found) == 10
        for (draw, agent), value in found.items():
            whose = int(agent) if agent.isdigit() else agent
            assert value == pytest.approx(float(expected.value.sel(draw=draw, agent=whose)))
    floors = [row.value for row in rows if row.metric == "w2_floor"]
    widest = max(np.trace(effects.posterior.of(agent).cov) for agent in range(4))
    assert 0 < floors[0] < np.sqrt(widest)
    (point,) = [row.value for row in rows if row.metric == "w2_point"]
    assert point == pytest.approx(np.sqrt(widest))


def test_stationary_laws_are_compared_with_what_each_agent_holds() -> None:
    """The trace of each covariance over the posterior's is near one at a small step."""
    effects = concord.problems.quadratic(H, B, local=[False, True])
    m = law_measurement(DESGLD(Schedule(0.001)), network("ring", 4), effects)
    rows = [row for row in find_family("stationary")(m) if row.metric == "stationary_trace"]
    assert [row.agent for row in rows] == ["0", "1", "2", "3", "average"]
    np.testing.assert_allclose([row.value for row in rows], 1.0, atol=0.01)
    m = law_measurement(DESGLD(Schedule(0.001)), network("ring", 4), effects)
    with pytest.raises(concord.ConcordError, match="all of whose coordinates are shared"):
        list(find_family("posterior_trace")(m))
