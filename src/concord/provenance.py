"""Where a result comes from: versions, commit, code, and the modules a command depends on."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from concord.errors import ConcordError
from concord.io import regular

SOURCE = Path(__file__).parents[1]
PACKAGE = SOURCE / "concord"

LIBRARIES = [
    "numpy",
    "scipy",
    "networkx",
    "h5netcdf",
    "pandas",
    "matplotlib",
    "scikit-learn",
    "POT",
    "torch",
]


def describe(inputs: Iterable[Path], **more: Any) -> dict[str, Any]:
    """Return what a trace, figure or table carries about how it was made.

    Package and library versions, git commit and whether the tree had changes, SHA-256 of the
    inputs, threads, and whatever the caller adds (run parameters, seed).
    """
    from concord import __version__

    return {
        "concord": __version__,
        **commit(),
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "threads": os.environ.get("OMP_NUM_THREADS", "unset"),
        "inputs": {str(path): sha256(path) for path in inputs},
        **more,
    }


@cache
def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def commit() -> dict[str, Any]:
    """Return the git commit of the package's source, and whether the tree differs from it.

    A tree differs where a tracked file does, and where the package, configuration or workflow has a
    file that is not tracked. A repository that does not track the package's own files (Concord
    unpacked or installed inside somebody else's) says nothing about them: the commit is unknown.
    """
    try:
        _git("ls-files", "--error-unmatch", "--", str(SOURCE / "concord" / "__init__.py"))
        head, top = _git("rev-parse", "HEAD"), _git("rev-parse", "--show-toplevel")
        changes = _git("status", "--porcelain", "-z", "--untracked-files=all").split("\0")
    except (OSError, subprocess.SubprocessError):
        return {"commit": "unknown", "dirty": None}
    parts = [str(path) for path in (SOURCE, *(SOURCE.parent / name for name in _TOGETHER))]

    def matters(change: str) -> bool:
        path = os.path.join(os.path.realpath(top), change[3:])
        return not change.startswith("??") or any(path.startswith(part) for part in parts)

    return {"commit": head, "dirty": any(matters(change) for change in changes if change)}


_TOGETHER = ("config", "workflow", "Snakefile", "profiles")  # what makes results, beside the source


def _git(*arguments: str) -> str:
    # GIT_DIR and the like may name another repository.
    plain = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *arguments],
        cwd=SOURCE,
        env=plain,
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return done.stdout.strip()


def sha256(path: Path) -> str:
    """Return the SHA-256 of a regular file, in hexadecimal."""
    with open(path, "rb", opener=regular) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(mapping: Mapping[str, Any]) -> str:
    """Return a short digest of a mapping, the same for the same content."""
    text = json.dumps(mapping, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def code(*names: str | Path) -> str:
    """Return a digest of the source of modules and of all package modules that they import.

    Modules of this package are named; others (plug-ins) are files, which may be imported from a
    package of their own, whose modules count as well. A ConcordError if a source file is no longer
    as it was when this process started: what was imported and what would be read now need not be
    the same.
    """
    files = module_files(*names)
    for path in files:
        if _signature(path) != _AT_START.get(path):
            raise ConcordError(
                f"{path}: it changed while this command was running; run the command again"
            )
    return _digest_of(files)


def _signature(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


# Taken when this module is imported, before those that compute: what has the same signature later
# was the same when it was imported.
_AT_START = {str(path): _signature(str(path)) for path in Path(__file__).parent.rglob("*.py")}


def watch(path: Path) -> None:
    """Remember how a plug-in's files are now, before they are executed."""
    for file in _files_of(path):
        name = str(file)
        if _AT_START.get(name) != (signature := _signature(name)):
            _AT_START[name] = signature
            for remembered in (_digest_of, _content, module_files, _imports):
                remembered.cache_clear()


def _files_of(path: Path) -> list[Path]:
    """Return a plug-in's file, and the others of its package that it imports."""
    return [Path(file) for file in module_files(path) if not Path(file).is_relative_to(PACKAGE)]


@cache
def _digest_of(files: tuple[str, ...]) -> str:
    return digest({_label(path): _content(path) for path in files})


def _label(path: str) -> str:
    """Return what a file is called in a digest, wherever it lies."""
    if Path(path).is_relative_to(PACKAGE):
        return os.path.relpath(path, SOURCE)
    return f"{Path(path).parent.name}/{Path(path).name} {_content(path)}"


@cache
def _content(path: str) -> str:
    return sha256(Path(path))


@cache
def module_files(*names: str | Path) -> tuple[str, ...]:
    """Return the source files of modules and of all package modules that they import.

    Snakemake does not see imports; results carry a digest of these files: changing a sampler's file
    reruns that sampler's runs, and nothing else. Modules chosen by name at run time (samplers,
    problems, figure kinds) are not found through the modules that choose them: name them.
    """
    found: set[str | Path] = set()
    pending: list[str | Path] = [*names]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _imports(name)
    return tuple(sorted(str(_file(name)) for name in found))


def _file(name: str | Path) -> Path:
    if isinstance(name, Path):
        return name
    path = SOURCE.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


_IMPORT = re.compile(
    r"^ *(?:from +(concord[\w.]*) +import +(\([^)]*\)|.*)|import +(concord[\w.]*))", re.M
)


@cache
def _imports(name: str | Path) -> tuple[str | Path, ...]:
    """Return the package modules that a module imports, at the top or inside functions."""
    modules: set[str] = set()
    path = _file(name)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConcordError(f"{path}: cannot be read ({error.strerror})") from error
    for package, names, module in _IMPORT.findall(text):
        found = [f"{package}.{word}" for word in re.findall(r"\w+", names)]
        modules |= {name for name in [package, module, *found] if name and _file(name).exists()}
    own = _beside(path, text) if isinstance(name, Path) and path.suffix == ".py" else []
    return (*sorted(modules), *own)


def _beside(path: Path, text: str) -> list[Path]:
    """Return the files of a plug-in's own package that it imports, the packages' own included."""
    top = path.parent
    while (top / "__init__.py").is_file():
        top = top.parent
    if top == path.parent:
        return []
    found: set[Path] = set()
    for node in ast.walk(ast.parse(text, str(path))):
        if isinstance(node, ast.Import):
            dotted = [(top, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if node.level else top
            names = [alias.name for alias in node.names]
            dotted = [(base, ".".join(filter(None, (node.module, n)))) for n in names]
        else:
            continue
        for base, name in dotted:
            for end in range(1 + name.count(".") + 1):
                at = base.joinpath(*name.split(".")[:end])
                found |= {at.with_suffix(".py"), at / "__init__.py"}
    inside = (file for file in found if file.is_relative_to(top / path.relative_to(top).parts[0]))
    return sorted(file for file in inside if file.is_file())
