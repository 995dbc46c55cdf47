"""Metrics of tzikas2024, of whole runs."""

import pytest

from concord.errors import ConcordError
from whole_runs import measure


def test_theorem3_of_a_run():
    found = measure(["theorem3"], agents=5, topology={"kind": "ring"})
    assert found["theorem3.tau_G", "network"] == pytest.approx(1.7013, abs=1e-4)
    ratio = found["theorem3.M_f", "network"] / found["theorem3.m_f", "network"]
    assert found["theorem3.tau_f", "network"] == pytest.approx(ratio)


def test_draws_are_listed_chain_by_chain():
    found = measure(
        ["draws"], problem={"dim": 1}, agents=3, record={"at": [3]}, topology={"kind": "ring"}
    )
    assert found["posterior_sd", "network"] > 0
    assert found["law_sd", "2"] > 0
    with pytest.raises(ConcordError, match="one dimension"):
        measure(["draws"], agents=3)
