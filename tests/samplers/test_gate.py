"""``concord test`` as a gate: what is wrong is seen, what is right is not accused."""

from pathlib import Path

import pytest

from concord import plugins
from concord.testing import CHECKS, Inapplicable, Prototype, calibration
from samplers import wrong

DOCUMENT = Path(__file__).parents[2] / "docs" / "plugins.md"
# What no test sees, as docs/plugins.md says.
UNSEEN = {
    "where neighbors are on average, without a law",
    "noise 2 % too small, without a law",
    "Python's hash of a text",
}


def accused(module, every=False):
    """The checks that a module fails, the first or all, in words."""
    found = []
    for check in CHECKS["samplers"]:
        if check.__name__.startswith("a_step_allocates"):
            continue  # a warning at most, which takes memory
        try:
            check(module)
        except (Inapplicable, Prototype):
            pass
        except Exception as error:  # that is how a run of all checks counts it, too
            found.append(f"{check.__name__}: {error}")
            if not every:
                break
    return found


@pytest.mark.parametrize("law", [True, False], ids=["law", "no law"])
@pytest.mark.parametrize("name", wrong.RIGHT)
def test_what_is_right_is_not_accused(name, law):
    assert accused(wrong.module(wrong.RIGHT[name], name, law), every=True) == []


@pytest.mark.parametrize("name", wrong.WRONG)
def test_what_is_wrong_is_seen(name):
    assert bool(accused(wrong.wrong(name))) == (name not in UNSEEN)


def test_a_result_does_not_depend_on_where_the_file_lies(tmp_path, monkeypatch):
    seen, least = [], calibration.least
    monkeypatch.setattr(calibration, "least", lambda ranks: seen.append(least(ranks)) or seen[-1])
    for folder in ("here", "elsewhere"):
        path = tmp_path / folder / "plugins" / "mine.py"
        path.parent.mkdir(parents=True)
        path.write_text(wrong.PLAIN, encoding="utf-8")
        calibration.wrong(plugins._execute(path), chains=20)
    half = len(seen) // 2
    assert half and seen[:half] == seen[half:]


def test_nearly_all_of_many_are_seen():
    assert len(wrong.WRONG) >= 45 and len(UNSEEN) <= 5
    text = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    for words in ("2 % too small", "hash", "at the average of its neighbors"):
        assert words in text
