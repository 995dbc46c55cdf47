"""Kinds of samplers, problems, topologies and so on: one file each, found by its name.

A *kind* is a sampler, a way to build a problem, a topology; a *room* is a group of kinds of one
sort, such as ``samplers``, named like the folder of their files. The kinds of a room are the
modules of its package in Concord (``ROOMS``), entry points of installed distributions (group
``concord.<room>``), and the files ``plugins/<room>/<name>.py`` of the studies in use. A study's
folder ``plugins`` is the package ``concord_plugins.<key>``, whose files may import each other
(``from ..theory import bound``). A file is executed when its kind is used.
"""

import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from concord.errors import ConcordError, nearest, short


class Room(NamedTuple):
    """A group of kinds such as the samplers.

    noun: for one kind, such as "sampler". packages: those that hold its modules. defines: the names
    that each module has to define, separated by spaces.
    """

    noun: str
    packages: tuple[str, ...]
    defines: str


ROOMS = {  # packages above the library add theirs
    "samplers": Room("sampler", ("concord.samplers",), ""),
    "problems": Room("problem", ("concord.problems.kinds",), "Params check build"),
    "topologies": Room("topology", ("concord.networks.topologies",), "Params graph"),
    "partitions": Room("partition", ("concord.sampling.partitions",), "Params split"),
    "schedules": Room("schedule", ("concord.sampling.schedules",), "Params schedule"),
    "initial": Room("initial law", ("concord.sampling.initial",), "Params draw moments"),
    "compressions": Room("compression", ("concord.networks.compressions",), "Params compress bits"),
}


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A declaration in the module of a kind.

    name: the kind's name for readers, such as "Erdős-Rényi"; "": its key.
    """

    name: str = ""


NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
SHARED = ("layer", "lines", "panels", "style")  # modules of a room that are no kinds


class Source(NamedTuple):
    """Where the code of a kind is: its module, and a plug-in's file or distribution."""

    module: str
    origin: str = ""  # of a built-in kind


studies: list[Path] = []  # folders of the studies in use
_files: dict[tuple[str, str], Source] = {}  # of their kinds, by room and name
_classes: dict[str, type] = {}  # of samplers that a caller has given, by name


def add_rooms(rooms: Mapping[str, Room]) -> None:
    """Register rooms by name; a room that exists gets further packages."""
    for name, room in rooms.items():
        packages = ROOMS[name].packages if name in ROOMS else ()
        ROOMS[name] = room._replace(packages=tuple(dict.fromkeys((*packages, *room.packages))))
    _built_in_sources.cache_clear()


@cache
def _built_in_sources(room: str) -> dict[str, Source]:
    """Return the sources of a room's built-in kinds, by name, without importing them."""
    return {
        module.name: Source(f"{package}.{module.name}")
        for package in ROOMS[room].packages
        for module in pkgutil.iter_modules(_folders(package))
        if module.name[0] != "_" and module.name not in SHARED
    }


def _folders(package: str) -> list[str]:
    """Return the folders of a package, without importing it."""
    return list(getattr(find_spec(package), "submodule_search_locations", None) or [])


@cache
def _entry_points(room: str) -> dict[str, Source]:
    """Return the sources of a room's kinds in installed distributions, by name."""
    from importlib.metadata import entry_points  # a tenth of a command's start

    sources: dict[str, Source] = {}
    for entry in entry_points(group=f"concord.{room}"):
        distribution = entry.dist
        origin = f"{distribution.name} {distribution.version}" if distribution else entry.value
        if entry.name in sources:
            both = f"{sources[entry.name].origin} and {origin}"
            raise ConcordError(f"{both} both have {room}/{entry.name}; uninstall one of them")
        sources[entry.name] = Source(entry.value, origin)
    return sources


def _find_source(room: str, name: object) -> Source | None:
    """Return the source of a kind; None if there is no such kind."""
    if not isinstance(name, str):
        return None
    source = _files.get((room, name)) or _built_in_sources(room).get(name)
    return source or _entry_points(room).get(name)


def built_in(room: str) -> tuple[str, ...]:
    """Return the names of the built-in kinds of a room, such as "samplers"."""
    return tuple(sorted(_built_in_sources(room)))


def names(room: str) -> tuple[str, ...]:
    """Return the names of a room's kinds: built in, installed, and of the studies in use."""
    of_studies = {name for where, name in _files if where == room}
    return tuple(sorted({*_built_in_sources(room), *_entry_points(room), *of_studies}))


def exists(room: str, name: object) -> bool:
    """Return whether a room, such as "samplers", has a kind of this name."""
    return _find_source(room, name) is not None or (room == "samplers" and str(name) in _classes)


def find(room: str, name: object, where: str = "") -> Any:
    """Import a kind and return its module, or a sampler's class.

    where: the place that names the kind, such as "sampler", for messages.
    """
    source = _find_source(room, name)
    if source is None and room == "samplers" and str(name) in _classes:
        return _classes[str(name)]
    if source is None:
        sentence = f"there is no {ROOMS[room].noun} {short(name)}; {nearest(name, names(room))}"
        raise ConcordError(f"{where}.kind: {sentence}" if where else sentence)
    if not source.origin:
        return _import_built_in(room, source.module)
    try:
        return kind_in_module(room, importlib.import_module(source.module))
    except (Exception, SystemExit) as error:
        from concord.failures import explain  # of plug-ins alone

        package = source.module.partition(".")[0]
        raise ConcordError(explain(error, source.origin, package)) from error


@cache  # planning asks for every run, and importing again takes ten times as long
def _import_built_in(room: str, module: str) -> Any:
    """Return the kind that a module of Concord's own defines."""
    return kind_in_module(room, importlib.import_module(module))


@cache
def kind_in_module(room: str, module: ModuleType) -> Any:
    """Return the kind that a module defines: a sampler's one class, or the module itself.

    room: the sort of kinds, such as "samplers".
    A ConcordError if the module lacks a definition that the room asks for.
    """
    if missing := [name for name in ROOMS[room].defines.split() if not hasattr(module, name)]:
        lacking = " and ".join(missing)
        raise ConcordError(f"it lacks {lacking}, which a {ROOMS[room].noun} defines; add it")
    if room != "samplers":
        return module
    classes = [c for c in vars(module).values() if getattr(c, "__module__", "") == module.__name__]
    samplers = [c for c in classes if hasattr(c, "step") and hasattr(c, "__struct_fields__")]
    if len(samplers) != 1:
        which = " and ".join(each.__name__ for each in samplers) or "no class of concord.Sampler"
        raise ConcordError(f"it defines {which}; make it one sampler a file")
    return samplers[0]


def options_of(kind: object) -> Any:
    """Return the class of a kind's options: its ``Params``, or a sampler's class itself."""
    return getattr(kind, "Params", kind)


@cache  # planning asks for every run
def declaration_of(module: object) -> Declaration:
    """Return the declaration in the module of a kind; an empty one if there is none."""
    stated = (value for value in vars(module).values() if isinstance(value, Declaration))
    return next(stated, Declaration())


def display_name(kind: object) -> str:
    """Return a kind's name for readers, such as "DE-SGLD"; "" if it declares none."""
    return str(getattr(kind, "name", "")) if isinstance(kind, type) else declaration_of(kind).name


def is_loaded(room: str, name: str) -> bool:
    """Return whether a kind is built in, or its file has been executed in this process."""
    source = _find_source(room, name)
    return source is not None and (not source.origin or source.module in sys.modules)


def location(room: str, name: str) -> Path:
    """Return the source file of a kind without executing it; a ConcordError if there is none."""
    source = _find_source(room, name)
    path = _find_file(source.module) if source else None
    if path is None:
        raise ConcordError(f"there is no file of {room}/{name}; install it again")
    return path


@cache  # planning asks for every run
def _find_file(module: str) -> Path | None:
    """Return the source file of a module without executing it; None if there is none."""
    spec = find_spec(module)
    return Path(spec.origin) if spec and spec.origin else None


def origin(room: str, name: str) -> str:
    """Return the file or distribution of a plug-in, as text for readers; "" for a built-in kind."""
    source = _find_source(room, name)
    return source.origin if source else ""


def use(*folders: Path) -> None:
    """Register the plug-ins in the folders ``plugins`` of some studies, in place of all others."""
    importlib.invalidate_caches()
    _find_file.cache_clear()
    _files.clear()
    studies[:] = folders
    for study in folders:
        inside = os.path.join(os.path.realpath(study), "")
        for path in sorted((study / "plugins").rglob("*")):
            if not os.path.realpath(path).startswith(inside):
                raise ConcordError(f"{path}: it links to what is outside of its study; copy it")
            if path.match("plugins/[!._]*/[!._]*.py"):
                add(path)


def add_class(sampler: type) -> str:
    """Return the name of a class of samplers: its kind, or its own, by which it is then found."""
    package, _, kind = sampler.__module__.rpartition(".")
    if package == "concord.samplers":
        return kind
    if _find_source("samplers", sampler.__name__) is not None:
        raise ConcordError(
            f"sampler: there is another {sampler.__name__!r} than the class of this name; rename it"
        )
    _classes[sampler.__name__] = sampler
    return sampler.__name__


def add(path: Path) -> tuple[str, str]:
    """Register a plug-in's file; return its room and its name.

    The room is the folder's name if that is one, else ``samplers``.
    """
    folder, name = path.absolute().parent, path.stem
    if folder.parent.name == "plugins" and folder.name not in ROOMS:
        raise ConcordError(f"{path}: no room is called so; {nearest(folder.name, ROOMS)}")
    room = folder.name if folder.name in ROOMS else "samplers"
    if not path.is_file():
        raise ConcordError(f"{path}: there is no such file; name another one, or remove this")
    if not NAME.fullmatch(name):
        raise ConcordError(f"{path}: a name has small letters, digits and _; rename the file")
    if exists(room, name):
        owner = origin(room, name) or "Concord"
        raise ConcordError(f"{path}: {owner} has {room}/{name} already; rename the file")
    _files[room, name] = Source(register_module(path), str(path))
    return room, name


def register_module(path: Path) -> str:
    """Register a plug-in's package, the folder ``plugins`` or its own; return its module's name."""
    folder, below = path.absolute().parent, path.stem
    if folder.name in ROOMS:
        folder, below = folder.parent, f"{folder.name}.{below}"
    key = folder.parent.name if folder.name == "plugins" else f"{folder.parent.name}_{folder.name}"
    root = sys.modules.setdefault("concord_plugins", ModuleType("concord_plugins"))
    name = f"{root.__name__}.{re.sub('[^A-Za-z0-9]', '_', key)}"
    _find_file.cache_clear()
    if getattr(sys.modules.get(name), "__path__", None) != [str(folder)]:  # or another study's
        for module in [m for m in sys.modules if f"{m}.".startswith(f"{name}.")]:
            del sys.modules[module]
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder)]
    return f"{name}.{below}"
