"""What counts as a plug-in's code: files, and distributions that it uses by their version.

- All files of the distribution that a plug-in's file is of, its data and modules that no import
  names included; of an editable one those of its packages and modules where the project is.
- Other distributions that these files import, or that are required: by version; an editable one,
  whose version stays while its files change, by its files.
- A file of no distribution counts alone. A module that is imported from a folder of ``sys.path``,
  and that no distribution has, is refused: nobody would notice that it changes.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from concord.errors import ConcordError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint, EntryPoints

SYSTEM = ("/dev", "/etc", "/lib", "/proc", "/sys", "/usr", "/var/cache")
OURS = {
    *("concord", "concord_studies", "concord_arena", "concord_cli"),
    *("snakemake_logger_plugin_concord", "__main__"),
}


class Code(NamedTuple):
    """Files, and other distributions with their versions."""

    files: tuple[Path, ...]
    versions: dict[str, str]


def code_of(path: Path, apart: Collection[str]) -> Code:
    """Return what counts as the code of a plug-in's file.

    ``apart`` are distributions that do not count, nor what they require: Concord's own libraries,
    whose versions every result states.

    A ConcordError if it imports what no distribution has.
    """
    files, read, known, versions = {path}, set[Path](), set[str](), dict[str, str]()
    done = skipped = {"concord-bayes", *map(_normal, apart)}
    # A file of a study may lie in somebody's project and yet be none of its distribution.
    pending = [o for o in owners(path) if not _project(o) or path in _files(o)]
    first = {_normal(_name(owner)) for owner in pending}
    while pending or (unread := sorted(files - read)):
        if pending:
            owner = pending.pop()
            name = _normal(_name(owner))
            if name not in done:
                done = done | {name}
                if name in first or _project(owner):
                    files |= set(_files(owner))
                else:
                    versions[name] = owner.version
                pending += _required(owner)
            continue
        read |= {*unread}
        for file in unread:
            for line, spec in _imported(file, known) if file.suffix == ".py" else ():
                places = _places(spec)
                found = [owner for place in places for owner in owners(place)]
                # Of what the system installs not everything has a list of its files.
                if not found and not _of_system(places[0]):
                    raise stray(f"{file}, line {line}", places[0])
                pending += found
                known.add(spec.name)
                for owner in found:
                    if _project(owner) and _normal(_name(owner)) not in skipped:
                        files |= set(_walk(spec, owner))
    return Code(tuple(sorted(files)), versions)


def stray(where: str, place: Path) -> ConcordError:
    """Return the refusal of a module that no distribution has."""
    return ConcordError(
        f"{where}: it imports {place}, which no installed distribution has, so that nobody would "
        "notice a change of it; write it into the plug-in's file, or install it (pip install -e)"
    )


def _metadata() -> ModuleType:
    """Return what reads what is installed, which takes a tenth of a start: most commands do not."""
    from importlib import metadata  # as it says

    return metadata


@cache
def version(name: str) -> str:
    """Return the version of a distribution, or that it is absent."""
    try:
        return str(_metadata().version(name))
    except ModuleNotFoundError:
        return "absent"


def entries(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of installed distributions."""
    found: Iterable[EntryPoint] = _entries().select(group=group)
    return found


@cache
def _entries() -> EntryPoints:
    """Return all entry points: for those of one group, too, all would be read."""
    found: EntryPoints = _metadata().entry_points()
    return found


def find(module: str) -> Path:
    """Return the file of a module; unlike ``importlib.util.find_spec`` execute no package above it.

    An ImportError if there is none.
    """
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    for part in rest:
        inside = spec.submodule_search_locations if spec else None
        spec = PathFinder.find_spec(f"{spec.name}.{part}", [*inside]) if spec and inside else None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise ImportError(f"there is no module {module}")
    return Path(spec.origin)


def owners(place: Path) -> list[Distribution]:
    """Return the distributions that have a file or a folder of modules."""
    real = place.resolve()
    return _recorded(place) or [o for o, project in _editable() if real.is_relative_to(project)]


def _recorded(place: Path) -> list[Distribution]:
    place = place.absolute()
    bases = {base for entry in sys.path if (base := Path(entry).absolute()) in place.parents}
    for base in sorted(bases, key=lambda base: -len(base.parts)):
        within = place.relative_to(base)
        # Of a namespace package several have a part.
        for wanted in (within.as_posix(), within.parts[0]):
            if found := _having(base, wanted):
                return found
    return []


@cache
def _having(base: Path, name: str) -> list[Distribution]:
    lines = f"\n{name},", f"\n{name}/"  # words of a regular expression would take 50 ms
    found = (owner for owner in _in(base) if any(line in _record(owner) for line in lines))
    return [owner for owner in found if _name(owner)]


@cache
def _in(base: Path) -> list[Distribution]:
    return list(_metadata().distributions(path=[str(base)]))


@cache
def _record(owner: Distribution) -> str:
    """Return what is installed, a line each: its RECORD, or its packages' and modules' names."""
    names = "".join(f"{name}/\n{name}.py,\n" for name in _tops(owner))
    return "\n" + (owner.read_text("RECORD") or names)


def _name(owner: Distribution) -> str:
    """Return what a distribution is called; nothing where it is just being installed or removed."""
    name: str | None = owner.metadata["Name"]
    return name or ""


def _tops(owner: Distribution) -> list[str]:
    """Return the names of packages and modules, as far as its metadata have them."""
    stated = (owner.read_text("top_level.txt") or _name(owner).replace("-", "_")).split()
    entries = [entry.module.partition(".")[0] for entry in owner.entry_points]
    return list(dict.fromkeys([*stated, *entries]))


@cache
def _editable() -> list[tuple[Distribution, Path]]:
    found = [(owner, _project(owner)) for owner in _metadata().distributions()]
    # One without a name is just being installed, or was half removed.
    return [(owner, project) for owner, project in found if project and _name(owner)]


@cache
def _project(owner: Distribution) -> Path | None:
    """Return the folder of an editable distribution's project."""
    try:
        stated = json.loads(owner.read_text("direct_url.json") or "{}")
        url = urlsplit(stated["url"]) if stated["dir_info"]["editable"] else None
    except (ValueError, KeyError, TypeError):
        return None
    return Path(unquote(url.path)).resolve() if url and url.scheme == "file" else None


def _files(owner: Distribution) -> Iterator[Path]:
    """Yield the files of a distribution; of one that does not list them those of its packages."""
    listed = owner.files if owner.read_text("RECORD") else None
    for file in listed or ():
        installed = ".." in file.parts or file.parts[0].endswith((".dist-info", ".data"))
        # How an editable one is found has the project's path within.
        if not installed and "editable_" not in file.name and file.suffix != ".pth":
            yield from _regular([Path(str(owner.locate_file(file)))])
    if listed is None or _project(owner):
        for name in _tops(owner):
            if spec := _spec(name):
                yield from _walk(spec, owner)


def _walk(spec: ModuleSpec, owner: Distribution) -> Iterator[Path]:
    """Yield the files of a package or module; of an editable one those in its project."""
    project = _project(owner)
    for place in _places(spec):
        if project is None or place.resolve().is_relative_to(project):
            inside = sorted(place.rglob("*")) if place.is_dir() else [place]
            hidden = [p for p in inside if any(n[0] == "." for n in p.relative_to(place).parts)]
            yield from _regular(sorted({*inside} - {*hidden}))


def _regular(paths: Iterable[Path]) -> Iterator[Path]:
    return (p for p in paths if p.suffix != ".pyc" and "__pycache__" not in p.parts and p.is_file())


def _places(spec: ModuleSpec) -> list[Path]:
    """Return the folders of a package, or the file of a module; nothing of what is built in."""
    folders = [Path(place) for place in spec.submodule_search_locations or ()]
    if folders:
        return [folder for folder in folders if folder.is_dir()]
    return [Path(spec.origin)] if spec.has_location and spec.origin else []


def _spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):  # of a module that another one has made up
        return None


def _imported(file: Path, known: Collection[str]) -> Iterator[tuple[int, ModuleSpec]]:
    """Yield packages and modules that a file imports, with the line, but those that are known.

    Python's own and Concord's are none of them. Only a file with words that may import others is
    parsed: of a large distribution a few.
    """
    try:
        source = file.read_bytes()
    except OSError as error:
        raise ConcordError(f"{file}: cannot be read ({error.strerror})") from error
    if b"import_module" not in source and not any(map(_found, _words(source).difference(known))):
        return
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):  # nothing can be imported by it
        return
    lines: dict[str, int] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                modules = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                modules = [module]
            case _:
                continue
        for module in modules:
            lines.setdefault(module.partition(".")[0], node.lineno)
    for name in sorted(lines.keys() - {*known}):
        if spec := _found(name):
            yield lines[name], spec


def _words(source: bytes) -> set[str]:
    """Return words of a file among which are all modules that its ``import`` statements name.

    They follow ``from``, ``import`` or a comma on a line with ``import``.
    """
    text = re.sub(r"\\\s+", " ", source.decode(errors="replace"))
    lines = [line for line in text.split("\n") if "import" in line]
    return {word for line in lines for word in _WORD.findall(line)}


_WORD = re.compile(r"(?:\bfrom|\bimport|,)\s*\b(\w+)")


def _found(name: str) -> ModuleSpec | None:
    """Return a module or package by its name, unless it is built in, Python's or Concord's."""
    if name in OURS or name in sys.stdlib_module_names:
        return None
    spec = _spec(name)
    return spec if spec and _places(spec) else None


def _required(owner: Distribution) -> Iterator[Distribution]:
    """Yield the installed distributions that one requires, its extras' apart."""
    for stated in owner.requires or ():
        name = re.match(r"[\w.-]+", stated)
        if name and not re.search(r";.*\bextra\b", stated):
            try:
                yield _metadata().distribution(name[0])
            except (ImportError, ValueError):  # it is not installed
                continue


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def usual(path: Path) -> bool:
    """Return whether a file is the system's, a library's own cache, or installed."""
    home = Path.home()
    hidden = path.is_relative_to(home) and path.relative_to(home).parts[0].startswith(".")
    python = path.is_relative_to(sys.prefix) or path.is_relative_to(sys.base_prefix)
    return hidden or python or _of_system(path) or bool(_recorded(path))


def _of_system(path: Path) -> bool:
    return any(map(path.is_relative_to, SYSTEM))


def forget() -> None:
    """Look again at what is installed."""
    for remembered in (_entries, _having, _in, _record, _editable, _project):
        remembered.cache_clear()
