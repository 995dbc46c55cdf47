"""Seals: what is not as it was written is noticed, the seal itself included."""

import json

import pytest

from concord.errors import ConcordError
from concord_studies import integrity

MADE = {"run": "a", "code": "b"}


@pytest.fixture
def sealed(tmp_path):
    """A result with a page beside it and a card below."""
    names = ("scores.csv", "page.html", "cards/one.md")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    result = tmp_path / "scores.csv"
    integrity.seal([tmp_path / name for name in names], MADE, commit="abc", seconds=1.5)
    return result


def test_an_intact_result(sealed):
    assert integrity.intact(sealed) == integrity.sealed(sealed)[0] == MADE
    integrity.check(sealed, {"run": "a"})
    found = integrity.document(sealed)
    assert (found["commit"], found["seconds"]) == ("abc", 1.5)
    assert list(found["sha256"]) == ["scores.csv", "page.html", "cards/one.md"]
    assert found == json.loads(sealed.with_suffix(".json").read_text())


@pytest.mark.parametrize("name", ["scores.csv", "page.html", "cards/one.md"])
@pytest.mark.parametrize("harm", ["edited", "deleted", "folder"])
def test_a_file_that_is_not_as_it_was(sealed, name, harm):
    file = sealed.parent / name
    if harm == "edited":
        file.write_text("other")
    else:
        file.unlink()
    if harm == "folder":
        file.mkdir()
    assert integrity.intact(sealed) == {}
    with pytest.raises(ConcordError, match=f"{name}: it is not as it was written; delete the file"):
        integrity.document(sealed)


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace("abc", "abd"),
        lambda text: text.replace("1.5", "1.4"),
        lambda text: text.replace(" ", "", 1),
        lambda text: text.replace('"run": "a"', '"run": "c"'),
        lambda text: text + "\n",
        lambda text: text.partition(',\n "seal"')[0] + "\n}\n",
        lambda text: "",
        lambda text: "[" * 100_000,
    ],
)
def test_a_seal_that_is_not_as_it_was(sealed, edit):
    path = sealed.with_suffix(".json")
    path.write_text(edit(path.read_text()))
    assert integrity.intact(sealed) == {} and integrity.sealed(sealed) == ({}, "")
    with pytest.raises(ConcordError, match=r"scores\.json: it is not as it was written; delete"):
        integrity.document(sealed)
    with pytest.raises(ConcordError, match=r"scores\.csv: it is not as it was written; delete"):
        integrity.check(sealed)
