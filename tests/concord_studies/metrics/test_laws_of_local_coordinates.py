"""Metrics of agents that hold coordinates of their own."""

import numpy as np
import pytest

import concord
from concord.networks.construction import network
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule
from concord_studies.metrics import find_family
from measurements import law_measurement


def test_stationary_laws_are_compared_with_what_each_agent_holds() -> None:
    """The trace of each covariance over the posterior's is near one at a small step."""
    H = [[[1.0, 1.0], [1.0, 2.0]]] * 4  # y_i ~ N(mu + u_i, 1), u_i ~ N(0, 1)
    b = [[y, y] for y in (0.0, 1.0, 2.0, 3.0)]
    effects = concord.problems.quadratic(H, b, local=[False, True])
    m = law_measurement(DESGLD(Schedule(0.001)), network("ring", 4), effects)
    rows = [row for row in find_family("stationary")(m) if row.metric == "stationary_trace"]
    assert [row.agent for row in rows] == ["0", "1", "2", "3", "average"]
    np.testing.assert_allclose([row.value for row in rows], 1.0, atol=0.01)
    m = law_measurement(DESGLD(Schedule(0.001)), network("ring", 4), effects)
    with pytest.raises(concord.ConcordError, match="all of whose coordinates are shared"):
        list(find_family("posterior_trace")(m))
