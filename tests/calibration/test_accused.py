"""No right sampler is accused: other seeds for the tests that chance decides."""

import pytest

from calibration import accused
from concord.testing import gate

QUICK = ["c_ula", "dg_lmc", "fsgld", "push_sum_sgld", "qlsd", *accused.PLUGINS]


@pytest.mark.parametrize("kind", accused.RIGHT)
def test_no_right_sampler_is_accused(kind, effort, reliability):
    if kind not in QUICK and effort == 1:
        pytest.skip("make reliability tries it")
    seeds = range(2, 2 + 5 * effort)
    tried = [accused.run(kind, seed) for seed in seeds] if effort > 1 else [accused.run(kind, 2)]
    found = [one for accusations, _ in tried for one in accusations]
    rule = f"nothing is said against it (p above {gate.LEVEL:.0e})"
    reliability("calibration", f"`concord test` of {kind}", len(tried), len(found), rule)
    assert not found
