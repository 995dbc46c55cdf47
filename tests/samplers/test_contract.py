"""What every sampler promises (``concord.testing``), for each file in ``samplers``.

A prototype may allocate in its steps; what is built in may not.
"""

from __future__ import annotations

import pytest

from concord.testing import CHECKS, Inapplicable
from variants import SAMPLERS

LAWLESS = {"gossip_ula", "sgd"}  # no affine; calibrated in tests/calibration


@pytest.mark.parametrize("check", CHECKS["samplers"], ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_contract(kind, check):
    try:
        check(SAMPLERS[kind])
    except Inapplicable as reason:
        assert kind in LAWLESS and "affine" in str(reason)
