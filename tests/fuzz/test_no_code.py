"""No function that executes what a file holds is called anywhere in the package or the workflow."""

from __future__ import annotations

import ast
import re

import pytest
from pieces import ROOT

FILES = sorted([*ROOT.glob("src/**/*.py"), ROOT / "Snakefile", *ROOT.glob("workflow/**/*.smk")])
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "input"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "shelve", "marshal", "joblib", "cloudpickle"}
FORBIDDEN_NAMES = {
    *("read_pickle", "to_pickle", "allow_pickle", "unsafe_load", "full_load", "UnsafeLoader"),
    *("FullLoader", "load_all", "system", "popen", "fromfile", "memmap", "open_memmap"),
}


def offences(source: str, name: str) -> list[str]:
    """Return what a source calls or imports that can execute data, with its line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        words: list[str] = []
        if isinstance(node, ast.Import):
            words = [a.name for a in node.names if a.name.split(".")[0] in FORBIDDEN_MODULES]
        elif isinstance(node, ast.ImportFrom):
            if (node.module or "").split(".")[0] in FORBIDDEN_MODULES:
                words = [node.module or ""]
            words += [a.name for a in node.names if a.name in FORBIDDEN_NAMES]
        elif isinstance(node, ast.Call):
            words = _call(node)
        elif isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_NAMES:
            words = [node.attr]
        found += [f"{name}:{node.lineno}: {word}" for word in words]
    return found


def _call(node: ast.Call) -> list[str]:
    text = ast.unparse(node.func)
    options = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    bad = []
    if text in FORBIDDEN_CALLS:
        bad.append(text)
    if re.search(r"\byaml\.load$", text) and options.get("Loader") != "_loader()":
        bad.append("yaml.load without the safe loader")
    if re.search(r"\btorch\.load$", text) and options.get("weights_only") != "True":
        bad.append("torch.load without weights_only=True")
    if options.get("allow_pickle", "False") != "False" or options.get("shell") == "True":
        bad.append(f"{text} with allow_pickle or shell")
    return bad


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_executes_data(path):
    source = path.read_text()
    if path.suffix == ".py":
        assert offences(source, path.name) == []
    else:  # Snakemake's rules are not Python
        words = [*FORBIDDEN_MODULES, *FORBIDDEN_NAMES, "eval", "exec", "__import__"]
        assert re.findall(rf"\b(?:{'|'.join(words)})\b\s*\(", source) == []


@pytest.mark.parametrize(
    "source",
    [
        *("import pickle", "from pickle import loads", "eval(text)", "exec(text)"),
        *("np.load(path, allow_pickle=True)", "pandas.read_pickle(path)", "yaml.unsafe_load(t)"),
        *("yaml.load(text, Loader=yaml.FullLoader)", "yaml.load(text)", "torch.load(path)"),
        *("subprocess.run(text, shell=True)", "os.system(text)", "import joblib"),
    ],
)
def test_the_test_itself_finds_them(source):
    assert offences(source, "x.py")


def test_the_loader_is_a_safe_one():
    import yaml

    from concord.reading import _loader

    safe = (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert issubclass(_loader(), safe)
    assert not any("python" in str(tag) for tag in _loader().yaml_constructors)
    assert not _loader().yaml_multi_constructors


def test_traces_with_python_objects_are_not_unpickled(tmp_path):
    """An HDF5 file or an array of objects can hold pickled code; reading must not run it."""
    import pickle

    import numpy as np

    from concord import chain
    from concord.errors import ConcordError

    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "pwned"), "w"))

    (tmp_path / "trace.nc").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ConcordError):
        chain.read(tmp_path / "trace.nc")
    np.save(tmp_path / "array.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    (tmp_path / "array.npy").rename(tmp_path / "trace.nc")
    with pytest.raises(ConcordError):
        chain.read(tmp_path / "trace.nc")
    assert not (tmp_path / "pwned").exists()
