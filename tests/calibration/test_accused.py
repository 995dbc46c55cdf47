"""No right sampler is accused: other seeds for the checks that chance decides."""

from typing import Any

import pytest

import wrong
from concord_arena.testing import Inapplicable, samplers
from concord_arena.testing.variants import SEED
from variants import SAMPLERS

PLUGINS = {
    f"plug-in {name}": wrong.sampler(text, f"accused_{name}") for name, text in wrong.RIGHT.items()
}
RIGHT: dict[str, Any] = {**SAMPLERS, **PLUGINS}


def run(kind: str, seed: int) -> list[str]:
    """Return what one run accuses a right sampler of."""
    found, token = [], SEED.set(seed)
    try:
        for check in samplers.CHECKS:
            try:
                check(RIGHT[kind])
            except Inapplicable:
                pass
            except Exception as error:
                found.append(f"{kind}, seed {seed}: {check.__name__}: {error}")
    finally:
        SEED.reset(token)
    return found


@pytest.mark.parametrize("kind", RIGHT)
def test_no_right_sampler_is_accused(kind, effort, reliability):
    seeds = range(2, 2 + 5 * effort) if effort > 1 else [2]
    found = [one for seed in seeds for one in run(kind, seed)]
    rule = "no check accuses it"
    reliability("calibration", f"`concord test` of {kind}", len(seeds), len(found), rule)
    assert not found
