"""``concord test`` of samplers: mistakes are seen, and what is right is not accused."""

from typing import Any

import pytest

import wrong_samplers as wrong
from concord.errors import ConcordError
from concord_arena.testing import CHECKS, Broken, Inapplicable
from variants import SAMPLERS


def does_not_apply(check: str, sampler: Any) -> bool:
    """Whether a check says nothing of a sampler, by what its class declares.

    Of laws nothing is declared: that those that were read stay so, tests/golden says.
    """
    return {
        "a_step_is_local": sampler.needs.network in ("alone", "server"),
        "tends_to_the_posterior": bool(sampler.biased),
        "local_coordinates_stay_at_home": bool(sampler.biased or sampler.needs.local),
    }.get(check, False)


@pytest.mark.parametrize("check", CHECKS["samplers"], ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_what_is_built_in_keeps_its_contract(kind, check):
    silent = does_not_apply(check.__name__, SAMPLERS[kind])
    try:
        check(SAMPLERS[kind])
    except Inapplicable as reason:
        if check.__name__ == "chains_have_their_law":
            pytest.skip(str(reason))
        assert silent
    else:
        assert not silent


@pytest.mark.parametrize("name", wrong.RIGHT)
def test_what_is_right_is_not_accused(name):
    assert wrong.accusations(wrong.sampler(wrong.RIGHT[name], f"right_{name}")) == []


@pytest.mark.parametrize("name", wrong.WRONG)
def test_a_mistake_is_seen_by_its_check(name):
    check = wrong.WRONG[name][0]
    (this,) = (each for each in CHECKS["samplers"] if each.__name__ == check)
    # Broken where the sampler runs; other errors where it cannot.
    with pytest.raises((Broken, ConcordError)):
        this(wrong.wrong(name))


def test_what_fails_everywhere_is_seen_everywhere():
    sampler = wrong.sampler(
        wrong.PLAIN.replace("return Positions(new)", "return network.nothing"), "error"
    )
    assert len(wrong.accusations(sampler)) == len(CHECKS["samplers"]) - 3  # those of its class
