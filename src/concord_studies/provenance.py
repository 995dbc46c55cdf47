"""Where a result comes from: versions, commit, code, and the modules a command depends on."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import concord
from concord.errors import ConcordError
from concord_studies.io import regular, signature

SOURCE = Path(__file__).parents[1]
_PACKAGES = "concord", "concord_studies", "concord_arena", "concord_cli"

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
    """Return the provenance of a trace, figure or table: versions, commit and inputs' SHA-256.

    Package and library versions, git commit and whether the tree had changes, SHA-256 of the
    inputs, threads, and whatever the caller adds (run parameters, seed).
    """
    return {
        "concord": concord.__version__,
        **commit(),
        "python": sys.version.split()[0],
        "libraries": {name: version(name) for name in LIBRARIES},
        "threads": os.environ.get("OMP_NUM_THREADS", "unset"),
        "inputs": {str(path): sha256(path) for path in inputs},
        **more,
    }


@cache
def commit() -> Mapping[str, Any]:
    """Return the git commit of the package's source, and whether the tree differs from it.

    As it is when this process asks first: git takes longer than a small run.

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
        """Return whether a line of ``git status`` is about the package's own files."""
        path = os.path.join(os.path.realpath(top), change[3:])
        return not change.startswith("??") or any(path.startswith(part) for part in parts)

    return {"commit": head, "dirty": any(matters(change) for change in changes if change)}


_TOGETHER = ("config", "workflow", "Snakefile", "profiles")  # what makes results, beside the source


def _git(*arguments: str) -> str:
    """Return the output of a git command, run in the folder of the source."""
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

    Modules of this package are named, or are files as plug-ins are, with those beside them that
    they import. A ConcordError if a file of the package is no longer as it was when this process
    started: what was imported and what would be read now need not be the same.
    """
    files = module_files(*names)
    for path in files:
        if path.startswith(_PLACE) and signature(path) != _AT_START.get(path):
            raise ConcordError(
                f"{path}: it changed while this command was running; run the command again"
            )
    return _digest_of(
        files, tuple(signature(path) for path in files if not path.startswith(_PLACE))
    )


def _modules_in(folder: Path | str) -> Iterator[str]:
    """Yield the Python source files in a folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif (
                entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__"
            ):  # which has most files
                yield from _modules_in(entry.path)


# Taken when this module is imported, before those that compute: what has the same signature later
# was the same when it was imported.
_AT_START = {path: signature(path) for p in _PACKAGES for path in _modules_in(SOURCE / p)}


_PLACE = tuple(f"{SOURCE / package}{os.sep}" for package in _PACKAGES)


@cache
def version(name: str) -> str:
    """Return the version of a distribution, or that it is absent."""
    from importlib import metadata  # a tenth of a command's start

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


@cache
def _digest_of(files: tuple[str, ...], plugged: tuple[Any, ...]) -> str:
    """Return a digest of the labels and contents of files; ``plugged`` says of which versions."""
    others = Counter(_label(path) for path in files if not path.startswith(_PLACE))
    return digest({_label(path): _content(path) for path in files} | others)


def _label(path: str) -> str:
    """Return the name of a file in a digest, independent of the file's location."""
    if path.startswith(_PLACE):
        return path.removeprefix(f"{SOURCE}{os.sep}")
    return f"{Path(path).parent.name}/{Path(path).name} {_content(path)}"


def _content(path: str) -> str:
    """Return the SHA-256 of a file, in hexadecimal; that of a package's file is remembered."""
    return _sha256_of(path) if path.startswith(_PLACE) else sha256(Path(path))


@cache
def _sha256_of(path: str) -> str:
    """Return the SHA-256 of a file of the package, read once."""
    return sha256(Path(path))


def module_files(*names: str | Path) -> tuple[str, ...]:
    """Return the files of modules and plug-ins, and of all package modules they import.

    Snakemake does not see imports; results carry a digest of these files: changing a sampler's file
    reruns that sampler's runs, and nothing else. Modules chosen by name at run time (samplers,
    problems, figure kinds) are not found through the modules that choose them: name them.
    """
    files = tuple(str(file_of(name)) for name in names)
    return _closure(files, tuple(signature(path) for path in files if not path.startswith(_PLACE)))


@cache
def _closure(files: tuple[str, ...], plugged: tuple[Any, ...]) -> tuple[str, ...]:
    """Return files and all those they import; ``plugged`` says of which versions."""
    found: set[str] = set()
    pending = [*files]
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            pending += _imports(path) if path.startswith(_PLACE) else _imported(path)
    return tuple(sorted(found))


def file_of(name: str | Path) -> Path:
    """Return the source file of a module of this package; a path is returned as it is."""
    if isinstance(name, Path):
        return name
    path = SOURCE.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


# After a line's end: three times as fast as "^", which is tried at every character.
_IMPORT = re.compile(
    r"\n *(?:from +(\.+[\w.]*|concord[\w.]*) +import +(\([^)]*\)|.*)|import +(concord[\w.]*))"
)


@cache
def _imports(path: str) -> tuple[str, ...]:
    """Return the files of the modules that a file of the package imports, read once."""
    return _imported(path)


def _imported(path: str) -> tuple[str, ...]:
    """Return the files of the package's modules, and of those beside it, that a file imports."""
    if not path.endswith(".py"):
        return ()
    try:
        with open(path, "rb", opener=regular) as file:
            text = file.read().decode(errors="replace")
    except OSError as error:
        raise ConcordError(f"{path}: cannot be read ({error.strerror})") from error
    found: set[str | None] = set()
    for package, words, module in _IMPORT.findall(f"\n{text}"):
        name = package or module
        dots = len(name) - len(name.lstrip("."))
        base = str(Path(path).parents[dots - 1]) if dots else str(SOURCE)
        found.add(_file_in(base, name[dots:]))
        found |= {_file_in(base, f"{name[dots:]}.{word}") for word in re.findall(r"\w+", words)}
    return tuple(sorted(file for file in found if file))


@cache
def _file_in(base: str, name: str) -> str | None:
    """Return the file of a dotted module below a folder; None if there is none."""
    place = os.path.join(base, *filter(None, name.split(".")))
    files = (f"{place}.py", os.path.join(place, "__init__.py"))
    return next((file for file in files if os.path.isfile(file)), None)
