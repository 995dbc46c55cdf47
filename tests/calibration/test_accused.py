"""No right sampler is accused: other seeds for the checks that chance decides."""

from typing import Any

import pytest

import wrong_samplers as wrong
from variants import SAMPLERS

# One run of each is in tests/concord_arena/testing/test_samplers.py.
pytestmark = pytest.mark.thorough

PLUGINS = {
    f"plug-in {name}": wrong.sampler(text, f"accused_{name}") for name, text in wrong.RIGHT.items()
}
RIGHT: dict[str, Any] = {**SAMPLERS, **PLUGINS}


@pytest.mark.parametrize("kind", RIGHT)
def test_no_right_sampler_is_accused(kind, effort, reliability):
    seeds = range(2, 2 + 5 * effort)
    found = [(seed, one) for seed in seeds for one in wrong.accusations(RIGHT[kind], seed)]
    rule = "no check accuses it"
    reliability("calibration", f"`concord test` of {kind}", len(seeds), len(found), rule)
    assert not found
