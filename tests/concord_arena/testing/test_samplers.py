"""``concord test`` of samplers: mistakes are seen, and what is right is not accused."""

import numpy as np
import pytest

import wrong
from concord import kinds
from concord_arena.testing import CHECKS, Inapplicable, Prototype
from concord_arena.testing.noise import LEVEL, least_p

SAMPLERS = {kind: kinds.find("samplers", kind, "tests") for kind in kinds.built_in("samplers")}
# Alone, or with a server, which sends what nobody hears otherwise.
ALONE = {"c_ula", "sgd", "dg_lmc", "consensus_mc", "fsgld", "qlsd"}
# No law is read off their steps.
LAWLESS = {"consensus_mc", "qlsd", "choco_sgld", "de_psgld"}
BIASED = {kind for kind, sampler in SAMPLERS.items() if sampler.biased}
SILENT = {
    "a_step_is_local": ALONE,
    "chains_have_their_law": LAWLESS,
    "tends_to_the_posterior": BIASED,
}


def accused(sampler):
    """Return the checks that a sampler fails, in words."""
    found = []
    for check in CHECKS["samplers"]:
        try:
            check(sampler)
        except (Inapplicable, Prototype):
            pass
        except Exception as error:  # that is how a run of all checks counts it, too
            found.append(f"{check.__name__}: {error}")
    return found


@pytest.mark.parametrize("check", CHECKS["samplers"], ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", SAMPLERS)
def test_what_is_built_in_keeps_its_contract(kind, check):
    silent = kind in SILENT.get(check.__name__, ())
    try:
        check(SAMPLERS[kind])
    except Inapplicable:
        assert silent
    else:
        assert not silent


@pytest.mark.parametrize("name", wrong.RIGHT)
def test_what_is_right_is_not_accused(name):
    assert accused(wrong.sampler(wrong.RIGHT[name], f"right_{name}")) == []


@pytest.mark.parametrize("name", wrong.WRONG)
def test_what_is_wrong_is_seen(name):
    assert accused(wrong.wrong(name))


def test_p_values_of_noise_are_large_where_it_is_independent():
    """Also of noise with heavy tails, and of noise that is rarely there."""
    rng = np.random.default_rng(1)
    shape = 2, 100, 50, 6
    least = []
    for _ in range(60):
        normal = rng.standard_normal(shape)
        for noise in (normal, rng.standard_t(9, shape), normal * (rng.random(shape) < 0.2)):
            least.append(least_p(noise)[0])
    assert min(least) > 1e-4 and np.mean(np.array(least) < 0.05) < 0.1
    assert least_p(np.zeros(shape)) == (1.0, "there is no noise")
    assert least_p(np.repeat(normal[:, :, :1], 50, axis=2))[0] < LEVEL
