"""Digests: of the code that kinds use, with the libraries it imports, and of what is stated.

The digest of a file of code is that of its syntax tree without docstrings, so that comments and
layout do not count. With a file count the files that it imports, at the top or inside functions: of
this project, and whatever else is no library. Libraries count by their version; they are what lies
in a folder of installed packages. Kinds chosen by name are not imported: name their files.
"""

import ast
import atexit
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from concord.errors import ConcordError
from concord_studies.io import signature, write_whole

SOURCE = Path(__file__).resolve().parents[1]
INSTALLED = {"site-packages", "dist-packages"}
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
CACHE = Path(".snakemake", "concord_code.json")  # what parsing all files takes a second for


class File(NamedTuple):
    """A file of code: the digest of its syntax tree, the files and the libraries it imports."""

    digest: str
    files: list[str]
    libraries: list[str]


def digest_code(*roots: str | Path) -> dict[str, Any]:
    """Return {"code": digest, "libraries": versions} of modules and all that they import.

    roots: dotted names of this project's modules, or files.
    """
    return _digest_code(frozenset(roots))


def import_closure(*roots: str | Path) -> dict[str, File]:
    """Return the files of modules and of all that they import, by path."""
    files: dict[str, File] = {}
    pending = [_path_of(root) for root in roots]
    while pending:
        if (path := pending.pop()) not in files:
            files[path] = read_digest(path)
            pending += files[path].files
    return files


@cache
def _digest_code(roots: frozenset[str | Path]) -> dict[str, Any]:
    """Return what ``digest_code`` does, once in a process for each set of roots."""
    files = import_closure(*roots)
    names = sorted({name for file in files.values() for name in file.libraries})
    return {
        "code": digest_files(files),
        "libraries": {"python": PYTHON, **{name: version(name) for name in names}},
    }


def forget_files() -> None:
    """Look at all files of code again, which may have changed since this process read them."""
    read_digest.cache_clear()
    _digest_code.cache_clear()


def digest_files(files: Mapping[str, File]) -> str:
    """Return the digest of files of code, those of ``import_closure``."""
    return digest(sorted(file.digest for file in files.values()))


def digest(content: Any) -> str:
    """Return a short digest of a text, or of plain data, the same for the same content."""
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _path_of(root: str | Path) -> str:
    """Return the file of a module, given by its dotted name, as text; a path stays as it is."""
    if isinstance(root, Path):
        return str(root)
    path = SOURCE.joinpath(*root.split("."))
    return str(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))


@cache
def read_digest(path: str) -> File:
    """Return a file's digest and imports, from the cache if the file has not changed since."""
    entries, now = _load_cache(), list(signature(path) or ())
    if path not in entries or entries[path][0] != now:
        entries[path] = now, _parse_file(path)
        if CACHE.parent.is_dir():
            _save_cache_at_exit()
    return File(*entries[path][1])


@cache
def _load_cache() -> dict[str, Any]:
    """Return signature, digest and imports of files by path, as saved by an earlier process."""
    try:
        entries: dict[str, Any] = json.loads(CACHE.read_text())
    except (OSError, ValueError):
        return {}
    return entries


@cache
def _save_cache_at_exit() -> None:
    """Have Python write the cache of digests and imports when it ends; once in a process."""
    atexit.register(lambda: write_whole(CACHE, json.dumps(_load_cache())))


def _parse_file(path: str) -> File:
    """Return a Python file's digest, without docstrings, and the files and libraries it imports."""
    try:
        tree = ast.parse(Path(path).read_bytes(), path)
    except OSError as error:
        raise ConcordError(f"{path}: cannot be read ({error.strerror})") from error
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ConcordError(f"{path}: it is not Python ({error}); correct it") from None
    _strip_docstrings(tree)
    files: set[str] = set()
    libraries: set[str] = set()
    for name, members in _imports(tree, path):
        top = name.partition(".")[0]
        if top.startswith(("/", ".")):  # relative, and so a path
            files |= set(_find_files(Path(name), members))
        elif (SOURCE / top).is_dir() and top.startswith("concord"):
            files |= set(_find_files(SOURCE.joinpath(*name.split(".")), members))
        elif top not in sys.stdlib_module_names and (place := _folder_of(top)):
            if INSTALLED.isdisjoint(place.parts):
                files |= set(_find_files(place.joinpath(*name.split(".")), members))
            else:
                libraries.add(top)
    return File(digest(ast.dump(tree)), sorted(files - {path}), sorted(libraries))


def _strip_docstrings(tree: ast.Module) -> None:
    """Remove docstrings from a syntax tree, and blocks that type checkers alone read."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_unread(one)] or [ast.Pass()]  # type: ignore[attr-defined]


def _is_unread(node: ast.stmt) -> bool:
    """Return whether a statement is a docstring, or a block for type checkers."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return False


def _imports(tree: ast.Module, path: str) -> Iterator[tuple[str, list[str]]]:
    """Yield what a file imports: a module, or the path of a relative one, and names from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            members = [alias.name for alias in node.names]
            if not node.level:
                yield node.module or "", members
            else:
                above = Path(path).absolute().parents[node.level - 1]
                yield str(above.joinpath(*(node.module or "").split("."))), members


def _find_files(module: Path, members: Iterable[str]) -> Iterator[str]:
    """Yield the files of a module, and of its members that are modules."""
    for place in (module, *(module / member for member in members)):
        for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
            if path.is_file():
                yield str(path)


@cache
def _folder_of(top: str) -> Path | None:
    """Return the folder in which a package or module lies. None if there is none."""
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    folders = list(spec.submodule_search_locations or ()) if spec else []
    place = folders[0] if folders else spec.origin if spec and spec.has_location else None
    return Path(place).parent if place else None


@cache
def version(name: str) -> str:
    """Return the version of the library from which a package or module is imported."""
    from importlib import metadata  # a tenth of a start: of planning alone

    for distribution in (_ALIASES.get(name, name), *_distributions().get(name, ())):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"


_ALIASES = {"ot": "POT", "sklearn": "scikit-learn", "yaml": "PyYAML"}


@cache
def _distributions() -> Mapping[str, list[str]]:
    """Return the names of installed distributions by the package that they provide."""
    from importlib import metadata  # as above

    return metadata.packages_distributions()
