"""The study of recommendations: one case of each kind, with what its metric reads."""

from types import SimpleNamespace

import numpy as np
import pytest

import everything
from concord.networks.construction import network
from concord.sampling.initial import Law
from measurements import measurement
from variants import problem

answers = everything.kind("metrics", "answers")


@pytest.mark.parametrize("gaussian", [True, False])
def test_an_answer_is_compared_with_the_least_that_brute_force_finds(gaussian):
    given = problem(4, 1) if gaussian else SimpleNamespace(agents=4, dim=1)
    m = measurement(
        SimpleNamespace(draw=np.array([0, 1])),
        problem=given,
        network=network("ring", 4),
        sampler=None,
        initial=Law("normal"),
        iterations=1,
    )
    found = {row.metric.partition(".")[0] for row in answers.rows(m)}
    of_exact = {"score", "least"}
    of_chains = {"best", "least", "predicted", "measured", "doubted"}
    assert found == (of_exact if gaussian else of_chains) | {"share"}
