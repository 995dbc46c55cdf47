"""What agents send, in both ways of counting, and how often they are active."""

from types import SimpleNamespace

import numpy as np
import pytest

import measurements
from concord.networks.construction import network
from concord.networks.network import Network
from concord.samplers.admm import ADMM
from concord.samplers.choco_sgld import CHOCOSGLD
from concord.samplers.d_ula import DULA
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD
from concord.samplers.gossip_ula import GossipULA
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace
from concord_studies.metrics import Measurement, activity, messages
from steps import recorded
from variants import problem

STEP = Schedule(0.001)
NAMES = ("unicasts", "broadcasts")


def measurement(trace, dim=2, sampler=None, **problem_has) -> Measurement:
    prob = SimpleNamespace(dim=dim, agents=len(trace.agent), **problem_has)
    net, sampler = network("no_edges", prob.agents), sampler or DESGLD(STEP)
    return measurements.measurement(trace, problem=prob, network=net, sampler=sampler)


def counted(unicasts, broadcasts, **more) -> Trace:
    axes = ("chain", "draw", "agent")[-np.ndim(unicasts) :]
    given = {"unicasts": unicasts, "broadcasts": broadcasts, **more}
    variables = {name: (axes, np.array(values)) for name, values in given.items()}
    return Trace(variables, np.array([0, 9]), np.arange(np.shape(unicasts)[-1]))


def table(family, m):
    return {(row.metric, row.iteration, row.agent): row for row in family.rows(m)}


def sampled(sampler, net, iterations=9) -> Trace:
    return recorded(sampler, problem(net.agents, 2), net, iterations, every=iterations)


@pytest.mark.parametrize("order", ["simultaneous", "in_place"])
@pytest.mark.parametrize(
    "sampler",
    [
        DESGLD(STEP),
        DESGHMC(STEP, friction=1.0),
        DULA(STEP, fusion=Schedule(0.1)),
        ADMM(penalty=1.0),
    ],
    ids=lambda sampler: sampler.name,
)
def test_an_agent_sends_one_vector_per_step_to_all_its_neighbors(sampler, order):
    """A star: the center has three neighbors, the others one."""
    if order == "in_place" and not sampler.takes_order:
        return
    star = Network(network("star", 4).graph, order=order)
    found = table(messages, measurement(sampled(sampler, star)))
    assert [found["unicasts", 9, str(agent)].value for agent in range(4)] == [27, 9, 9, 9]
    assert [found["broadcasts", 9, str(agent)].value for agent in range(4)] == [9] * 4
    assert found["unicasts", 9, "network"].value == 54
    assert found["broadcast_bytes", 9, "network"].value == 36 * 2 * 8
    assert not any(row.chance for row in found.values())


def test_a_trigger_is_heard_by_all_neighbors():
    star = network("star", 4)
    sampler = GossipULA(
        STEP, fusion=Schedule(0.5), communication="triggered", threshold=0.01, decay=0.1
    )
    trace = sampled(sampler, star, iterations=60)
    assert 0 < trace["broadcasts"].sum() < trace["activations"].sum()
    np.testing.assert_array_equal(trace["unicasts"], trace["broadcasts"] * star.degrees)
    found = table(activity, measurement(trace))
    triggers = trace["broadcasts"][:, -1].mean(axis=0)
    assert [found["triggers", 60, str(agent)].value for agent in range(4)] == pytest.approx(
        triggers.tolist()
    )
    assert all(row.chance for row in found.values())


def test_chains_that_differ_have_an_interval():
    sent = [[[0, 0], [5, 1]], [[0, 0], [3, 4]]]
    found = table(messages, measurement(counted(2 * np.array(sent), sent)))
    assert found["broadcasts", 9, "0"].value == 4 and found["unicasts", 9, "0"].value == 8
    row = found["broadcast_bytes", 9, "network"]
    assert row.value == 6.5 * 16  # two float64 a vector
    # Two chains, 6 and 7: standard error one half, one degree of freedom.
    assert (row.value - row.lo, row.hi - row.value) == pytest.approx((101.65, 101.65), rel=1e-3)
    assert row.chance
    exact = table(messages, measurement(counted([[0, 0], [10, 2]], sent[0])))
    row = exact["broadcast_bytes", 9, "network"]
    assert (row.value, row.lo, row.hi, row.chance) == (96.0, None, None, False)
    assert exact["unicast_bytes", 9, "network"].value == 192


def test_bytes_are_vectors_times_their_size():
    trace = counted([[0, 0], [20, 40]], [[0, 0], [10, 20]])
    found = table(messages, measurement(trace, dim=3, dtype=np.float32))
    assert found["broadcast_bytes", 9, "0"].value == 3 * 4 * 10
    assert found["unicast_bytes", 9, "1"].value == 3 * 4 * 40


def test_only_a_network_recorded_whole_has_a_sum():
    trace = counted([[0], [3]], [[0], [1]])
    m = measurement(trace)
    m.problem.agents = 4
    assert {agent for _, _, agent in table(messages, m)} == {"0"}


def test_bytes_are_those_of_what_a_sampler_says_it_sends():
    sampler = CHOCOSGLD(STEP, {"kind": "qsgd", "bits": 3})
    found = table(messages, measurement(sampled(sampler, network("ring", 5)), sampler=sampler))
    # Nine vectors to either neighbor: a number of 8 bytes, and 3 bits for each of 2 coordinates.
    assert found["unicasts", 9, "0"].value == 18
    assert found["unicast_bytes", 9, "0"].value == 18 * 9
    assert found["unicast_bytes", 9, "network"].value == 5 * 18 * 9
