"""Digests of code, with all files that it imports and the versions of libraries, and of data.

A file of code counts by its syntax tree (``syntax``), together with the files that it imports, at
the top or inside functions: those of this project, through the lazy names of ``concord`` too, and
all others outside of the folders of installed packages. Packages in such folders are *libraries*
and count by their versions. Which import finds which file is part of the digest, the files' places
are not. With a study's plug-in count all files of its folder ``plugins`` that are no Python. Kinds
chosen by name are not imported: name their files.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import concord
from concord import kinds
from concord.errors import ConcordError
from concord_studies.syntax import LAZY, PROBLEMS, PYTHON, read_code

SOURCE = Path(__file__).parents[1]  # as Python finds kinds: links are left as they are
INSTALLED = {"site-packages", "dist-packages"}
# Modules in which no number arises do not count: the public names and the version, sentences of
# errors, progress bars, and the digests themselves. A number that they had would not be noticed.
_SILENT = """concord/__init__.py concord/errors.py concord/failures.py concord/mistakes.py
    concord/memory.py concord/progress.py concord_studies/digests.py concord_studies/guard.py
    concord_studies/syntax.py"""
SILENT = {str(SOURCE / name) for name in _SILENT.split()}
# Of libraries count those that may compute. These check options, carry files or show progress:
# what comes through them is stated in planned files, or tested when it is written.
CARRIERS = {"h5netcdf", "msgspec", "tqdm", "yaml"}
TABLES = {"pandas", "xarray"}  # mostly carry, and seldom compute: count by their first two numbers


class File(NamedTuple):
    """A file of code: the digest of its syntax tree, the files and the libraries it imports."""

    digest: str
    files: list[str]
    libraries: list[str]


def digest_code(*roots: str | Path) -> dict[str, Any]:
    """Return {"code": digest, "libraries": versions} of modules and all that they import.

    roots: dotted names of this project's modules, or files.
    """
    return _digest_code(tuple(sorted(set(roots), key=_sort_key)))


def _sort_key(root: str | Path) -> tuple[object, ...]:
    """Return a key that sorts modules and files in the same order wherever the project lies."""
    return str(root).split("/")[-2:], str(root)


def import_closure(*roots: str | Path) -> dict[str, File]:
    """Return the files of modules, and of all that these import, by path."""
    files: dict[str, File] = {}
    pending = [_find_path(root) for root in roots]
    while pending:
        if (path := pending.pop()) not in files:
            files[path] = digest_file(path)
            pending += files[path].files
    return files


def forget_files() -> None:
    """Clear the caches of files' digests, so that files are read again."""
    for function in (_digest_code, digest_file, _find_module_files, _find_folder, _list_data_files):
        function.cache_clear()


@cache
def _digest_code(roots: tuple[str | Path, ...]) -> dict[str, Any]:
    """Compute the digests of ``digest_code``, once in a process for each tuple of roots."""
    files = import_closure(*roots)
    names = sorted({name for file in files.values() for name in file.libraries})
    return {
        "code": _digest_files(files),
        "libraries": {"python": PYTHON, **{name: find_version(name) for name in names}},
    }


def digest_files(*roots: str | Path) -> str:
    """Return the digest of modules and all that they import, without the libraries' versions."""
    return _digest_files(import_closure(*sorted(set(roots), key=_sort_key)))


def _digest_files(files: Mapping[str, File]) -> str:
    """Combine the digests of files by path, and which of them imports which, into one digest."""
    number = {path: i for i, path in enumerate(files)}
    # Without names, which would say where the project lies; what is swapped has other numbers.
    return digest([[f.digest, *(number[path] for path in f.files)] for f in files.values()])


def digest(content: Any) -> str:
    """Return a short digest of a text or of plain data."""
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _find_path(root: str | Path) -> str:
    """Return the absolute path of a file, or of this project's module of a dotted name."""
    if isinstance(root, Path):
        return os.path.abspath(root)
    path = SOURCE.joinpath(*root.split("."))
    return str(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))


@cache
def digest_file(path: str) -> File:
    """Compute a file's digest, and find the files and libraries that it imports."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConcordError(f"{path}: cannot be read ({error.strerror})") from error
    plugins = _find_plugins(path)
    if plugins and not path.endswith(".py"):
        name = Path(path).relative_to(plugins).as_posix()
        return File(digest([name, hashlib.sha256(content).hexdigest()]), [], [])
    code = read_code(content, path)
    files: dict[str, None] = dict.fromkeys(_list_data_files(plugins) if plugins else ())
    libraries, words = set[str](), set[str]()
    for dots, module, members in code.imports:
        top, _, below = module.partition(".")
        if dots:
            files |= _find_module_files(Path(path).parents[dots - 1], module, members)
        elif plugins and top == "concord_plugins":  # files of a study import each other alone
            files |= _find_module_files(plugins, below.partition(".")[2], members)
        elif top in LAZY:
            files |= _find_module_files(SOURCE, module, members)
            if module == PROBLEMS or not {*_lazy_modules(module), "*"}.isdisjoint(members):
                words |= {*code.words, *members}
        elif top not in sys.stdlib_module_names and (place := _find_folder(top)):
            if INSTALLED.isdisjoint(place.parts):
                files |= _find_module_files(place, module, members)
            elif top not in CARRIERS:
                libraries.add(top)
    files |= dict.fromkeys(_find_kind_files(sorted(words), plugins))
    others = [file for file in files if file not in SILENT and file != path]
    return File(code.digest, others, sorted(libraries))


def _find_plugins(path: str) -> Path | None:
    """Return the folder ``plugins``, of a study in use, that holds a file; None without one."""
    if "/plugins/" not in path:
        return None
    folders = (os.path.abspath(study / "plugins") for study in kinds.studies)
    return next((Path(f) for f in folders if path.startswith(f"{f}/")), None)


@cache
def _list_data_files(plugins: Path) -> list[str]:
    """List the files in a folder of plug-ins, except Python, hidden files and editors' copies."""
    return [
        str(path)
        for path in sorted(plugins.rglob("*"))
        if not path.name.endswith((".py", ".pyc", "~"))
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(plugins).parts)
    ]


@cache
def _find_module_files(place: Path, module: str, members: Sequence[str]) -> dict[str, None]:
    """Find the files that an import reads: of a module, its parent packages and its submodules.

    place: the folder that the module's dotted name begins in. members: names imported from it,
    of which some may be modules; "*" for all. Returns paths as keys, in order.
    """
    parts = module.split(".") if module else []
    lazy: Mapping[str, str] = {}
    around = [os.path.join(place, *parts[:end]) for end in range(1, len(parts))]
    if place == SOURCE:  # whose packages have nothing that is not imported by its name
        lazy, around = _lazy_modules(module), []
    below = (lazy.get(name, f"{module}.{name}") for name in (lazy if "*" in members else members))
    modules = [os.path.join(place, *filter(None, name.split("."))) for name in (module, *below)]
    paths = (f"{module}{end}" for module in modules for end in (".py", "/__init__.py"))
    packages = (f"{folder}/__init__.py" for folder in around)
    return dict.fromkeys(filter(os.path.isfile, (*packages, *paths)))


def _lazy_modules(package: str) -> Mapping[str, str]:
    """Return the modules in which the lazy names of a package of this project are defined."""
    return vars(concord)["_PUBLIC"] if package == "concord" else {}


def _find_kind_files(words: Iterable[str], plugins: Path | None) -> Iterator[str]:
    """Yield the files that define kinds of some names, built in or in a folder of plug-ins.

    words: texts in code that may be names of kinds.
    """
    for room in kinds.ROOMS:
        for word in words:
            if word in kinds.built_in(room):
                yield _find_path(kinds.location(room, word))
            elif plugins and (path := plugins / room / f"{word}.py").is_file():
                yield str(path)


@cache
def _find_folder(top: str) -> Path | None:
    """Return the folder in which a package or module lies. None if there is none."""
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    place = folders[0] if folders else spec.origin if spec and spec.has_location else None
    return Path(place).parent if place else None


@cache
def find_version(name: str) -> str:
    """Return the installed version of the library that has a package or module, or "unknown"."""
    from importlib import metadata  # a tenth of a start: of planning alone

    for distribution in _list_distributions(name):
        try:
            text = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
        return ".".join(text.split(".")[:2]) if name in TABLES else text
    return "unknown"


_ALIASES = {"ot": "POT", "sklearn": "scikit-learn", "yaml": "PyYAML"}


def _list_distributions(name: str) -> Iterator[str]:
    """Yield the names of the distributions that may provide a package or module."""
    from importlib import metadata  # as above

    yield _ALIASES.get(name, name)
    yield from metadata.packages_distributions().get(name, ())  # looks at all: a third of a second
