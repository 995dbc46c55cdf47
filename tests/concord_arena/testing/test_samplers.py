"""``concord test`` of samplers: mistakes are seen, and what is right is not accused."""

import re
from collections import Counter
from pathlib import Path

import pytest

import wrong_samplers as wrong
from concord import kinds
from concord.errors import ConcordError
from concord_arena.testing import CHECKS, Broken, Inapplicable

SAMPLERS = {kind: kinds.find("samplers", kind, "tests") for kind in kinds.built_in("samplers")}
# Alone, or with a server, which sends what nobody hears otherwise.
ALONE = {"c_ula", "sgd", "dg_lmc", "consensus_mc", "fsgld", "qlsd"}
# No law is read off their steps, or one for each of their random choices.
LAWLESS = {"consensus_mc", "qlsd", "choco_sgld", "de_psgld", "fsgld", "gossip_ula"}
BIASED = {kind for kind, sampler in SAMPLERS.items() if sampler.biased}
SILENT = {
    "a_step_is_local": ALONE,
    "chains_have_their_law": LAWLESS,
    "tends_to_the_posterior": BIASED,
}


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
    assert wrong.accusations(wrong.sampler(wrong.RIGHT[name], f"right_{name}")) == []


@pytest.mark.parametrize("name", wrong.WRONG)
def test_a_mistake_is_seen_by_its_check(name):
    check = wrong.WRONG[name][0]
    (this,) = (each for each in CHECKS["samplers"] if each.__name__ == check)
    # Broken where the sampler runs; other errors where it cannot.
    with pytest.raises((Broken, ConcordError)):
        this(wrong.wrong(name))


def test_the_page_has_the_table_of_checks():
    page = (Path(__file__).parents[3] / "docs" / "plugins.md").read_text()
    shown = re.findall(r"^\| ([\w ]+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.M)
    mistakes = Counter(check for check, *_ in wrong.WRONG.values())
    wanted = []
    for check in CHECKS["samplers"]:
        name = check.__name__
        silent = len(SILENT.get(name, ()))
        counts = len(SAMPLERS) - silent, silent, mistakes[name]
        wanted.append((name.replace("_", " "), *map(str, counts)))
    assert shown == wanted
    assert f"the {len(SAMPLERS)} built-in samplers and on {len(wrong.WRONG)} samplers" in page


def test_what_fails_everywhere_is_seen_everywhere():
    sampler = wrong.sampler(
        wrong.PLAIN.replace("return Positions(new)", "return network.nothing"), "error"
    )
    assert len(wrong.accusations(sampler)) == len(CHECKS["samplers"]) - 3  # those of its class
