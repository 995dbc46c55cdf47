"""Provenance: what a result was made from, and which modules a command depends on."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import concord
from concord_studies import provenance

SOURCE = Path(concord.__file__).parents[1]


def modules(*names):
    return {str(Path(f).relative_to(SOURCE)) for f in provenance.module_files(*names)}


def test_description_holds_versions_inputs_and_what_is_added(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    path = tmp_path / "run.yaml"
    path.write_text("seed: 1\n")
    found = provenance.describe([path], run={"seed": 1})
    assert found["concord"] == concord.__version__ and found["run"] == {"seed": 1}
    assert found["inputs"] == {str(path): hashlib.sha256(b"seed: 1\n").hexdigest()}
    assert found["threads"] == "1"
    assert set(provenance.LIBRARIES) == set(found["libraries"])
    assert found["libraries"]["numpy"][0].isdigit()
    assert {"commit", "dirty", "python"} <= set(found)
    json.dumps(found)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_commit_tells_a_clean_tree_from_a_changed_one(tmp_path, monkeypatch):
    def git(*arguments):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )

    monkeypatch.setattr(provenance, "SOURCE", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(provenance, "commit", provenance.commit.__wrapped__)  # each time anew
    unknown = {"commit": "unknown", "dirty": None}
    assert provenance.commit() == unknown
    git("init", "-q")
    package = tmp_path / "concord"
    package.mkdir()
    (package / "__init__.py").write_text("1")
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-q", "-m", "somebody else's repository, in which Concord was unpacked")
    assert provenance.commit() == unknown
    git("add", "concord")
    git("commit", "-q", "-m", "two")
    clean = provenance.commit()
    assert len(clean["commit"]) == 40 and clean["dirty"] is False
    other = tmp_path.parent / f"{tmp_path.name}-other"
    git("clone", "-q", str(tmp_path), str(other))
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert provenance.commit() == clean
    monkeypatch.delenv("GIT_DIR")
    (tmp_path / "file").write_text("2")
    assert provenance.commit() == {**clean, "dirty": True}
    git("checkout", "-q", "file")
    (package / "samplers").mkdir()
    (package / "samplers" / "mine.py").write_text("a sampler that no commit has")
    assert provenance.commit() == {**clean, "dirty": True}


def test_digest_depends_on_content_not_on_order():
    one = {"a": 1, "b": [1, 2.5], "c": {"d": None}}
    assert provenance.digest(one) == provenance.digest(dict(reversed(one.items())))
    assert provenance.digest(one) != provenance.digest({**one, "a": 2})
    assert provenance.digest(one) != provenance.digest({**one, "b": [2.5, 1]})


def test_modules_are_followed_through_their_imports():
    found = modules("concord.samplers.de_sghmc")
    assert {"concord/samplers/de_sghmc.py", "concord/samplers/checks.py"} <= found
    assert {
        "concord/networks/weights.py",
        "concord/networks/network.py",
        "concord/networks/graph.py",
    } <= found
    assert {
        "concord/minibatches.py",
        "concord/sampler.py",
        "concord/sampling/schedules/__init__.py",
    } <= found
    assert (
        not {
            "concord/samplers/de_sgld.py",
            "concord/problems/kinds/linear_regression.py",
            "concord_studies/configuration/study.py",
        }
        & found
    )
    assert "concord_studies/figures/style.py" in modules("concord_studies.figures.curves")


@pytest.mark.parametrize(
    "name",
    ["concord.chains", "concord.record", "concord.samplers.de_sgld", "concord_studies.metrics"],
)
def test_sampling_does_not_depend_on_how_things_are_drawn(name):
    assert not [
        file
        for file in modules(name)
        if file.startswith(("concord_studies/figures/", "concord_studies/tables/"))
    ]


def test_imports_inside_functions_count(tmp_path, monkeypatch):
    package = tmp_path / "concord"
    package.mkdir()
    for name, text in {
        "__init__": "",
        "a": "def f():\n    from concord import b\n",
        "b": "import concord.c\n",
        "c": "import os\nfrom numpy import array\n",
        "d": "",
    }.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.setattr(provenance, "SOURCE", tmp_path)
    provenance._imports.cache_clear()
    provenance._closure.cache_clear()
    try:
        found = {Path(file).name for file in provenance.module_files("concord.a")}
    finally:
        provenance._imports.cache_clear()
        provenance._closure.cache_clear()
    assert found == {"__init__.py", "a.py", "b.py", "c.py"}
