"""What every sampler promises (``concord.testing``), for each file in ``samplers``.

A prototype may allocate in its steps; what is built in may not.
"""

from __future__ import annotations

import pytest

from concord.testing import CHECKS, Inapplicable
from variants import SAMPLERS

# Without affine; their own tests, or tests/calibration, have their laws.
LAWLESS = {"gossip_ula", "sgd", "consensus_mc", "fsgld", "qlsd", "choco_sgld", "de_psgld"}
# Alone, or with what arrived last for what has not: tests/test_channel.py sees what they hear.
OTHERWISE = {
    "d_mala",
    "admm",
    "c_ula",
    "sgd",
    "dg_lmc",
    "consensus_mc",
    "graph_gibbs",
    "fsgld",
    "qlsd",
    "choco_sgld",
}


@pytest.mark.parametrize("check", CHECKS["samplers"], ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_contract(kind, check):
    try:
        check(SAMPLERS[kind])
    except Inapplicable as reason:
        if "reads its x" in str(reason):
            return
        lawless = kind in LAWLESS and "affine" in str(reason)
        assert lawless or (kind in OTHERWISE and "keep their own" in str(reason))
