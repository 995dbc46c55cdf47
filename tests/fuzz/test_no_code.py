"""No function that executes what a file holds is called anywhere in the package or the workflow."""

import ast
import gzip
import io
import pickle
import re
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import pytest
from harness import sealed
from pieces import ROOT
from test_data_files import READERS

from concord.errors import ConcordError
from concord.sampling.trace_files import load

FILES = sorted(
    path
    for pattern in ("src/**/*.py", "config/*/*/plugins/**/*.py", "Snakefile", "workflow/**/*.smk")
    for path in ROOT.glob(pattern)
)
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
        assert not offences(source, path.name)
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

    from concord_studies.io import _loader

    safe = (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert issubclass(_loader(), safe)
    assert not any("python" in str(tag) for tag in _loader().yaml_constructors)
    assert not _loader().yaml_multi_constructors


class Bomb:
    """What makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.file), "w")


@pytest.fixture
def pwned(tmp_path: Path) -> Path:
    """The file that a bomb makes; it makes it where it is unpickled."""
    file = tmp_path / "pwned"
    pickle.loads(pickle.dumps(Bomb(file))).close()
    file.unlink()
    return file


def array(bomb: Bomb) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([bomb], dtype=object), allow_pickle=True)
    return stream.getvalue()


def netcdf(bomb: Bomb) -> bytes:
    """Return a trace of nothing, with pickled bytes wherever a file can hold bytes."""
    image, content = io.BytesIO(), np.void(pickle.dumps(bomb))
    with h5netcdf.File(image, "w") as file:
        group = file.create_group("sample_stats")
        for name in ("draw", "agent"):
            group.dimensions[name] = 1
            group.create_variable(name, (name,), data=np.arange(1))
        file.attrs["run"] = content
    with h5py.File(image, "a") as file:
        file["sample_stats/draw"].attrs["values"] = content
    return image.getvalue()


BOMBS = {
    "pickle": pickle.dumps,
    "array of objects": array,
    "netCDF": netcdf,
    "gzip": lambda bomb: gzip.compress(pickle.dumps(bomb)),
    "gzip of an array": lambda bomb: gzip.compress(array(bomb)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_traces_are_not_unpickled(name, pwned):
    """Their checksum is right, so that they are read."""
    path = pwned.with_name("trace.nc")
    sealed(BOMBS[name](Bomb(pwned)), path)
    if name == "netCDF":
        assert "run" in load(path).attributes
    else:
        with pytest.raises(ConcordError, match=r"trace\.nc"):
            load(path)
    assert not pwned.exists()


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("reader", READERS)
def test_data_files_are_not_unpickled(reader, name, pwned):
    """By the readers themselves, which come after the check of a file's SHA-256."""
    read, _ = READERS[reader]
    path = pwned.with_name("data")
    path.write_bytes(BOMBS[name](Bomb(pwned)))
    with pytest.raises(ConcordError, match="data: "):
        read(path)
    assert not pwned.exists()
