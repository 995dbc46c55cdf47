"""What counts as the code of a kind, and what does not."""

import sys
from pathlib import Path

import pytest

from concord_studies import digests

BEFORE = '''"""A kind."""
from .shared import ODD


def graph(agents):
    """Return it."""
    return ODD
'''


@pytest.fixture
def kind(tmp_path: Path) -> Path:
    """A plug-in that shares a file with others of its study."""
    (tmp_path / "shared.py").write_text("ODD = 1\n")
    path = tmp_path / "kind.py"
    path.write_text(BEFORE)
    return path


def stated(path: Path) -> dict:
    """Return what is made from a kind's code, as another process would."""
    digests.read_digest.cache_clear()
    digests._digest_code.cache_clear()
    return digests.digest_code(path)


@pytest.mark.parametrize(
    ("file", "old", "new", "counts"),
    [
        ("kind.py", "return ODD", "return ODD + 1", True),
        ("kind.py", "return ODD", "return ODD  # as it is", False),
        ("kind.py", "Return it.", "Return the graph.", False),
        ("kind.py", "\n\n\n", "\n\n", False),
        ("kind.py", '"""Return it."""', "print('it')", True),
        ("shared.py", "1", "3", True),
        ("shared.py", "1", "1  # odd", False),
    ],
)
def test_what_is_executed_counts(kind, file, old, new, counts):
    before, path = stated(kind), kind.with_name(file)
    path.write_text(path.read_text().replace(old, new, 1))
    assert (stated(kind) != before) == counts


def test_a_new_import_counts_with_what_it_imports(kind, monkeypatch):
    elsewhere = kind.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "of_nobody.py").write_text("import scipy\n\nWORD = 1\n")
    monkeypatch.syspath_prepend(elsewhere)
    digests._folder_of.cache_clear()
    before = stated(kind)
    kind.write_text(BEFORE + "\n\ndef other():\n    import of_nobody\n")
    after = stated(kind)
    assert after["code"] != before["code"] and "scipy" in after["libraries"]
    (elsewhere / "of_nobody.py").write_text("import scipy\n\nWORD = 2\n")
    assert stated(kind)["code"] != after["code"]


def test_what_type_checkers_alone_read_does_not_count(kind):
    before = stated(kind)
    kind.write_text(BEFORE + "\nif TYPE_CHECKING:\n    import scipy\n")
    assert stated(kind) == before


def test_libraries_count_by_their_versions(kind, monkeypatch):
    kind.write_text(BEFORE + "import numpy, ot, yaml\nimport json\n")
    found = stated(kind)["libraries"]
    assert set(found) == {"python", "numpy", "ot", "yaml"}
    assert found["numpy"] == sys.modules["numpy"].__version__ and "unknown" not in found.values()
    monkeypatch.setattr(digests, "version", lambda name: "another")
    assert stated(kind)["libraries"]["numpy"] == "another"


def test_a_sampler_is_not_the_code_of_another():
    files = digests.import_closure(
        "concord_studies.experiment", digests.SOURCE / "concord/samplers/admm.py"
    )
    names = {Path(file).name for file in files}
    assert {"admm.py", "loop.py", "network.py"} <= names
    assert not names & {"gossip_ula.py", "curves.py", "ledger.py", "plan.py"}


def test_what_is_remembered_of_a_file_is_not_taken_for_another(kind, monkeypatch):
    monkeypatch.setattr(digests, "_load_cache", lambda known={}: known)
    before = stated(kind)
    assert stated(kind) == before
    kind.write_text(BEFORE + "\nX = 1\n")
    assert stated(kind) != before
