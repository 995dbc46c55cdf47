"""Where a result comes from: versions, commit, code, and the modules a command depends on."""

import hashlib
import json
import os
import re
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any

import concord
from concord.errors import ConcordError, in_the_way
from concord_studies.distributions import Code, code_of, usual, version
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

    Modules of this package are named; others (plug-ins) are files, with which all counts that
    ``distributions.code_of`` returns. A ConcordError if a file is no longer as it was when this
    process started: what was imported and what would be read now need not be the same.
    """
    files = module_files(*names)
    for path in files:
        if signature(path) != _AT_START.get(path):
            raise ConcordError(
                f"{path}: it changed while this command was running; run the command again"
            )
    others = {o for name in names if isinstance(name, Path) for o in libraries(name).items()}
    return _digest_of(files, *sorted(others))


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


def watch(path: Path) -> None:
    """Record the state of a plug-in's files, before they are executed.

    A file of a study is executed again when it has changed, modules of a distribution are not.
    """
    if _AT_START.get(str(path), now := signature(path)) != now:
        for remembered in (_digest_of, _content, _bytes, module_files, _imports, _code_of):
            remembered.cache_clear()
        _READ.pop(str(path), None)
    _AT_START[str(path)] = now
    for file in _code_of(path).files:
        _PLUGGED.setdefault(str(file), str(path))
        _AT_START.setdefault(str(file), signature(str(file)))


_PLUGGED: dict[str, str] = {}  # files of plug-ins' code, and the plug-ins


@cache
def _code_of(path: Path) -> Code:
    """Return the code of a plug-in's file, with the libraries that count as part of it."""
    return code_of(path, LIBRARIES)


# What plug-ins' code has opened to read, and does not count as it: by plug-in.
_READ: dict[str, dict[str, None]] = {}
_KEPT: set[str] = set()  # folders in which a library keeps what it has compiled


def keeps(folder: Path) -> None:
    """Allow plug-ins' code to read a folder whose files a library names by their content."""
    _KEPT.add(os.path.join(os.path.abspath(folder), ""))


def unwatched(path: Path) -> list[str]:
    """Return the files that a plug-in has read unrecorded in this process."""
    return sorted(_READ.get(str(path), ()))


@cache
def listen() -> None:
    """Install the audit hook that records the files read by plug-ins' code."""
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    """Record, as an audit hook, the files that the code of plug-ins opens for reading."""
    if event != "open" or isinstance(arguments[0], int) or _writes(*arguments[1:]):
        return
    frame: FrameType | None = sys._getframe(1)
    plug_in = None
    while frame is not None and (plug_in := _PLUGGED.get(frame.f_code.co_filename)) is None:
        # What Concord reads for itself counts; io.py reads what others ask for.
        if frame.f_code.co_filename.startswith(_PLACE) and frame.f_code.co_filename != _IO:
            return
        frame = frame.f_back
    if plug_in is None:
        return
    name = os.path.abspath(os.fsdecode(arguments[0]))
    folder, file = os.path.split(name)
    if os.path.basename(folder) == "__pycache__":  # of a module, or of a compiler
        name = os.path.join(os.path.dirname(folder), file.partition(".")[0] + ".py")
    seen = _READ.setdefault(plug_in, {})
    known = name in _PLUGGED or os.path.relpath(name) in _PLUGGED
    known |= name.startswith((*_PLACE, *_KEPT))
    if not (known or name in seen or not os.path.isfile(name) or usual(Path(name))):
        seen[name] = None
        print(
            f"concord: {plug_in}: it reads {name}, whose changes nobody notices: results made "
            "with it are not made again",
            file=sys.stderr,
        )


def _writes(mode: str | None, flags: int) -> bool:
    """Return whether a mode, or flags of ``os.open``, open a file for writing."""
    return bool(set(mode or "") & set("wax+") or flags & (os.O_WRONLY | os.O_RDWR))


_PLACE = tuple(f"{SOURCE / package}{os.sep}" for package in _PACKAGES)
_IO = str(Path(__file__).with_name("io.py"))


def libraries(path: Path) -> dict[str, str]:
    """Return the distributions that count as a plug-in's code, with their versions."""
    return _code_of(path).versions


def blamed(error: BaseException) -> str | None:
    """Return the file and line of a plug-in where an error arose, None if it did in none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in _PLUGGED:
            return f"{frame.filename}, line {frame.lineno}"
    return None


_ENDINGS = {
    MemoryError: "there is not enough memory for it; lower chains or record less often",
    KeyboardInterrupt: "it was interrupted",
    SystemExit: "it ends Python; have it raise a ConcordError in the place of that",
}


def excuse(error: BaseException) -> str | None:
    """Return a sentence that replaces an error's traceback; None if the cause is unknown."""
    if isinstance(error, ConcordError):
        return str(error)
    place = blamed(error)
    for kind, text in _ENDINGS.items():
        if place and isinstance(error, kind):
            return f"{place}: {text}"
    ours = isinstance(error, Exception) and not isinstance(error, (OSError, MemoryError))
    return in_the_way(error) if ours else None


@cache
def _digest_of(files: tuple[str, ...], *others: tuple[str, str]) -> str:
    """Return a digest of the labels and contents of files, and of further pairs of texts."""
    plugged = Counter(_label(path) for path in files if not path.startswith(_PLACE))
    return digest({_label(path): _content(path) for path in files} | plugged | dict(others))


def _label(path: str) -> str:
    """Return the name of a file in a digest, independent of the file's location."""
    if path.startswith(_PLACE):
        return path.removeprefix(f"{SOURCE}{os.sep}")
    return f"{Path(path).parent.name}/{Path(path).name} {_content(path)}"


@cache
def _content(path: str) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(_bytes(path)).hexdigest()


@cache
def _bytes(path: str) -> bytes:
    """Return the bytes of a regular file."""
    with open(path, "rb", opener=regular) as file:
        return file.read()


@cache
def module_files(*names: str | Path) -> tuple[str, ...]:
    """Return the files of modules and plug-ins, and of all package modules they import.

    Snakemake does not see imports; results carry a digest of these files: changing a sampler's file
    reruns that sampler's runs, and nothing else. Modules chosen by name at run time (samplers,
    problems, figure kinds) are not found through the modules that choose them: name them.
    """
    found: set[str | Path] = set()
    files = (_code_of(name).files for name in names if isinstance(name, Path))
    pending: list[str | Path] = [*names, *chain(*files)]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += _imports(name)
    return tuple(sorted(str(file_of(name)) for name in found))


def file_of(name: str | Path) -> Path:
    """Return the source file of a module of this package; a path is returned as it is."""
    if isinstance(name, Path):
        return name
    path = SOURCE.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


# After a line's end: three times as fast as "^", which is tried at every character.
_IMPORT = re.compile(
    r"\n *(?:from +(concord[\w.]*) +import +(\([^)]*\)|.*)|import +(concord[\w.]*))"
)


@cache
def _imports(name: str | Path) -> tuple[str, ...]:
    """Return the package modules that a module imports, at the top or inside functions."""
    modules: set[str] = set()
    path = file_of(name)
    if path.suffix != ".py":
        return ()
    try:
        text = _bytes(str(path)).decode(errors="replace")
    except OSError as error:
        raise ConcordError(f"{path}: cannot be read ({error.strerror})") from error
    for package, names, module in _IMPORT.findall(f"\n{text}"):
        found = [f"{package}.{word}" for word in re.findall(r"\w+", names)]
        modules |= {name for name in [package, module, *found] if name and _is_module(name)}
    return tuple(sorted(modules))


@cache
def _is_module(name: str) -> bool:
    """Return whether a dotted name is that of a module below the source folder."""
    place = os.path.join(SOURCE, *name.split("."))
    return os.path.isfile(f"{place}.py") or os.path.isfile(os.path.join(place, "__init__.py"))
