"""What samplers reduce to: one agent to C-ULA, an order of updates to none; and parts of networks.

Where only one sampler reduces to another, its own test says so.
"""

import numpy as np
import pytest
from chains import EXACT, chain

from concord.errors import ConcordError
from concord.networks import topology
from concord.samplers import (
    admm,
    c_ula,
    d_ula,
    de_sgld,
    diging_sgld,
    extra_sgld,
    graph_gibbs,
    local_sgld,
)
from concord.sampling.schedules import Schedule
from variants import CONSTANT, DECAYING, problem

FUSION = {"fusion": Schedule(0.3)}


@pytest.mark.parametrize("batch_size", [None, 3])
@pytest.mark.parametrize(
    ("module", "options"),
    [(de_sgld, {}), (diging_sgld, {}), (extra_sgld, {}), (local_sgld, {}), (d_ula, FUSION)],
)
def test_one_agent_is_c_ula_draw_for_draw(module, options, batch_size):
    graph, prob = topology.build("ring", 1), problem(1, 3, points=8)
    steps = {"step_size": DECAYING, "batch_size": batch_size}
    one = chain(module, prob, graph, module.Params(**steps, **options))
    other = chain(c_ula, prob, graph, c_ula.Params(**steps))
    np.testing.assert_allclose(one, other, rtol=0, atol=EXACT)


@pytest.mark.parametrize(
    ("module", "options"),
    [
        (de_sgld, {"step_size": CONSTANT}),
        (diging_sgld, {"step_size": CONSTANT}),
        (extra_sgld, {"step_size": CONSTANT}),
        (local_sgld, {"step_size": CONSTANT}),
        (graph_gibbs, {"tolerance": 0.1}),
        (admm, {"penalty": 0.7}),
    ],
)
def test_a_network_in_parts_is_refused_unless_it_is_meant(module, options):
    params = module.Params(**options)
    parts = topology.build("edge_list", 4, edges=[[0, 1], [2, 3]])
    with pytest.raises(ConcordError, match=r"is not connected, so its agents cannot .*no_edges"):
        module.check(None, parts, params)
    module.check(None, topology.build("no_edges", 4), params)
    module.check(None, topology.build("ring", 4), params)
