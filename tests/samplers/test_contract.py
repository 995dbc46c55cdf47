"""What every sampler promises (``concord.testing``), for each file in ``samplers``.

A prototype may allocate in its steps; what is built in may not.
"""

from __future__ import annotations

import pytest

from concord.testing import CHECKS, Inapplicable
from variants import SAMPLERS

LAWLESS = {"gossip_ula", "sgd"}  # no affine; calibrated in tests/calibration
# Alone, or with what arrived last for what has not: tests/test_channel.py sees what they hear.
OTHERWISE = {"admm", "c_ula", "sgd"}


@pytest.mark.parametrize("check", CHECKS["samplers"], ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_contract(kind, check):
    try:
        check(SAMPLERS[kind])
    except Inapplicable as reason:
        lawless = kind in LAWLESS and "affine" in str(reason)
        assert lawless or (kind in OTHERWISE and "keep their own" in str(reason))
