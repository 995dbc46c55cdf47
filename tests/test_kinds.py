"""Kinds are found by their files' names: there is no second list."""

from importlib import import_module

import pytest

import concord_studies  # noqa: F401  which adds rooms
from concord import kinds
from concord.errors import ConcordError
from processes import python


def test_a_file_is_a_kind_as_soon_as_it_is_there(tmp_path, monkeypatch):
    """But for files of helpers, whose names start with an underscore."""
    for name in ("of_mine.py", "_of_mine.py", "notes.txt"):
        (tmp_path / name).touch()
    folders = [*import_module("concord.samplers").__path__, str(tmp_path)]
    monkeypatch.setattr(kinds, "_folders", lambda package: folders)
    sources = kinds._modules.__wrapped__("samplers")  # not what it remembers
    assert set(sources) == {*kinds.built_in("samplers"), "of_mine"}


def test_a_misspelled_kind_suggests_the_nearest():
    with pytest.raises(ConcordError) as caught:
        kinds.find("samplers", "de_sgldx", "x.yaml: sampler")
    sentence = "x.yaml: sampler.kind: there is no sampler 'de_sgldx'; did you mean 'de_sgld'?"
    assert str(caught.value) == sentence


@pytest.mark.parametrize("kind", ["", "_axes", "style", None, 3, ["curves"], "../samplers/c_ula"])
def test_what_is_not_a_kind_cannot_be_chosen(kind):
    with pytest.raises(ConcordError, match=r"there is no figure"):
        kinds.find("figures", kind, "x")


def test_samplers_and_problems_start_quickly():
    """None of them imports at its top what costs start-up time and is needed by few."""
    rooms = ("samplers", "problems")
    modules = [source.module for room in rooms for source in kinds._modules(room).values()]
    code = f"import importlib, sys; [importlib.import_module(m) for m in {modules}]"
    loaded = {name.partition(".")[0] for name in python(f"{code}; print(*sys.modules)").split()}
    heavy = {"matplotlib", "pandas", "sklearn", "ot", "torch", "scipy", "networkx", "h5netcdf"}
    assert "numpy" in loaded and not loaded & heavy
