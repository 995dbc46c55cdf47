"""What every plug-in promises, found by its file name: there is no second list."""

import sys
from importlib import import_module

import pytest

import concord_studies  # noqa: F401  which adds rooms
from concord import kinds
from concord.errors import ConcordError
from concord.rooms import ROOMS
from processes import python

PACKAGES = ("samplers", "problems", "metrics", "figures", "tables")
KNOWN = {
    "samplers": "de_sgld",
    "problems": "linear_regression",
    "metrics": "w2",
    "figures": "curves",
    "tables": "final_values",
}
ALL = [(package, kind) for package in PACKAGES for kind in kinds.built_in(package)]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_file_is_a_kind_as_soon_as_it_is_there(package, tmp_path, monkeypatch):
    """But for files of helpers, whose names start with an underscore."""
    for name in ("of_mine.py", "_of_mine.py", "notes.txt"):
        (tmp_path / name).touch()
    room = import_module(ROOMS[package].packages[0])
    monkeypatch.setattr(
        room.__spec__, "submodule_search_locations", [*room.__path__, str(tmp_path)]
    )
    found = tuple(sorted(kinds._modules.__wrapped__(package)))  # not the ones it remembers
    assert found == tuple(sorted([*kinds.built_in(package), "of_mine"]))
    assert KNOWN[package] in kinds.names(package)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_misspelled_kind_suggests_the_nearest(package):
    kind = next(k for p, k in ALL if p == package)
    with pytest.raises(ConcordError) as caught:
        kinds.find(package, kind + "x", "config/papers/x.yaml: here")
    assert str(caught.value) == (
        f"config/papers/x.yaml: here.kind: there is no {package.rstrip('s')} "
        f"'{kind}x'; did you mean '{kind}'?"
    )


@pytest.mark.parametrize("kind", ["", "__init__", "_common", "style", None, 3, "../samplers/c_ula"])
def test_what_is_not_a_kind_cannot_be_chosen(kind):
    with pytest.raises(ConcordError, match=r"there is no figure"):
        kinds.find("figures", kind, "x")


def test_samplers_and_problems_start_quickly():
    """None of them imports at its top what costs start-up time and is needed by few."""
    names = [kinds._modules(p)[k] for p, k in ALL if p in ("samplers", "problems")]
    code = (
        f"import importlib, sys; [importlib.import_module(n) for n in {names}]; print(*sys.modules)"
    )
    loaded = {name.partition(".")[0] for name in python(code).split()}
    heavy = {"matplotlib", "pandas", "sklearn", "ot", "torch", "scipy", "networkx", "h5netcdf"}
    assert loaded & heavy == set()
    assert "numpy" in loaded


def test_a_file_that_cannot_be_read_is_told(monkeypatch):
    def refused(name):
        raise PermissionError(13, "Permission denied", "samplers/de_sgld.py")

    monkeypatch.delitem(sys.modules, "concord.samplers.de_sgld", raising=False)
    monkeypatch.setattr("importlib.import_module", refused)
    with pytest.raises(ConcordError, match=r"^samplers/de_sgld\.py: cannot be read \(Permission"):
        kinds.find("samplers", "de_sgld", "x.yaml: sampler")
