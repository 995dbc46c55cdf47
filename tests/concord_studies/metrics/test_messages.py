"""Vectors and bytes that agents send, in both ways of counting."""

from types import SimpleNamespace

import numpy as np
import pytest

import measurements
from concord.networks.construction import network
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace
from concord_studies.metrics import Measurement, messages


def measurement(trace, dim=2, **problem_has) -> Measurement:
    prob = SimpleNamespace(dim=dim, agents=len(trace.agent), **problem_has)
    own = {"network": network("no_edges", prob.agents), "sampler": DESGLD(Schedule(0.001))}
    return measurements.measurement(trace, problem=prob, **own)


def counted(unicasts, broadcasts, vector_bytes=16.0) -> Trace:
    axes = ("chain", "draw", "agent")[-np.ndim(unicasts) :]
    sent = vector_bytes * np.array(unicasts)
    given = {"unicasts": unicasts, "broadcasts": broadcasts, "unicast_bytes": sent}
    variables = {name: (axes, np.array(values)) for name, values in given.items()}
    return Trace(variables, np.array([0, 9]), np.arange(np.shape(unicasts)[-1]))


def table(family, m):
    return {(row.metric, row.iteration, row.agent): row for row in family.rows(m)}


def test_chains_that_differ_have_an_interval():
    sent = [[[0, 0], [5, 1]], [[0, 0], [3, 4]]]
    found = table(messages, measurement(counted(2 * np.array(sent), sent)))
    assert found["broadcasts", 9, "0"].value == 4 and found["unicasts", 9, "0"].value == 8
    row = found["broadcast_bytes", 9, "network"]
    assert row.value == 6.5 * 16  # bytes of a vector
    # Two chains, 6 and 7: standard error one half, one degree of freedom.
    assert (row.value - row.lo, row.hi - row.value) == pytest.approx((101.65, 101.65), rel=1e-3)
    assert row.chance
    exact = table(messages, measurement(counted([[0, 0], [10, 2]], sent[0])))
    row = exact["broadcast_bytes", 9, "network"]
    assert (row.value, row.lo, row.hi, row.chance) == (96.0, None, None, False)
    assert exact["unicast_bytes", 9, "network"].value == 192


def test_bytes_are_vectors_times_their_size():
    trace = counted([[0, 0], [20, 40]], [[0, 0], [10, 20]], vector_bytes=12.0)
    found = table(messages, measurement(trace))
    assert found["broadcast_bytes", 9, "0"].value == 3 * 4 * 10
    assert found["unicast_bytes", 9, "1"].value == 3 * 4 * 40
