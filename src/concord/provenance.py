"""Where a result comes from: versions, commit, inputs, and the modules a command depends on."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1]

LIBRARIES = (
    "numpy",
    "scipy",
    "networkx",
    "h5netcdf",
    "pandas",
    "matplotlib",
    "scikit-learn",
    "POT",
    "torch",
)


def describe(inputs: Iterable[Path], **more: Any) -> dict[str, Any]:
    """Return what a trace, figure or table carries to say how it was made.

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


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def commit() -> dict[str, Any]:
    """Return the git commit of the package's source and whether tracked files differ from it."""
    try:
        head = _git("rev-parse", "HEAD")
        status = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return {"commit": "unknown", "dirty": None}
    return {"commit": head, "dirty": bool(status)}


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=SOURCE, capture_output=True, text=True, timeout=10, check=True
    )
    return done.stdout.strip()


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(mapping: Mapping[str, Any]) -> str:
    """Return a short digest of a mapping, the same for the same content."""
    text = json.dumps(mapping, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def module_files(*names: str) -> list[str]:
    """Return the source files of the named modules and of all package modules they import.

    Snakemake does not see imports, so rules list these files as inputs: changing a sampler's file
    reruns that sampler's runs, and nothing else. Modules chosen by name at run time (samplers,
    problems, figure kinds) are not found through the modules that choose them: name them.
    """
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _imports(name)
    return sorted(str(_file(name)) for name in found)


def _file(name: str) -> Path:
    path = SOURCE.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _imports(name: str) -> tuple[str, ...]:
    """Return the package modules that a module imports, at the top or inside functions."""
    modules = set()
    for node in ast.walk(ast.parse(_file(name).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            candidates = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            candidates = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        modules |= {c for c in candidates if c.split(".")[0] == "concord" and _file(c).exists()}
    return tuple(sorted(modules))
