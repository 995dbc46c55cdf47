"""No right sampler is accused: other seeds for the checks that chance decides."""

import pytest

from calibration import accused

pytestmark = pytest.mark.thorough  # one run of each is tests/concord_arena/testing/test_samplers.py


@pytest.mark.parametrize("kind", accused.RIGHT)
def test_no_right_sampler_is_accused(kind, effort, reliability):
    seeds = range(2, 2 + 5 * effort)
    found = [one for seed in seeds for one in accused.run(kind, seed)]
    rule = "no check accuses it"
    reliability("calibration", f"`concord test` of {kind}", len(seeds), len(found), rule)
    assert not found
