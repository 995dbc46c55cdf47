"""C-ULA against its equation by hand."""

import numpy as np
import pytest
from chains import EXACT, chain

from concord.errors import ConcordError
from concord.networks import topology
from concord.samplers import c_ula
from variants import CONSTANT, DECAYING, problem

ALONE = topology.build("no_edges", 1)


def test_a_step_is_the_printed_equation():
    prob = problem(1, 3, points=7)
    found = chain(c_ula, prob, ALONE, c_ula.Params(DECAYING))
    rng, x = np.random.default_rng(1), found[0]
    for k in range(5):
        alpha = 0.02 / (2 + k) ** 0.7
        gradient = x @ prob.gram[0] - prob.shift[0]
        x = x - alpha * gradient + np.sqrt(2 * alpha) * rng.standard_normal(x.shape)
        np.testing.assert_allclose(found[k + 1], x, rtol=0, atol=EXACT)


def test_a_network_is_refused():
    with pytest.raises(ConcordError, match=r"cannot run on 3 agents; set agents to 1"):
        c_ula.check(None, topology.build("ring", 3), c_ula.Params(CONSTANT))
