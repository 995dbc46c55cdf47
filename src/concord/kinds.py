"""Kinds of samplers, problems, topologies and so on: one file each, found by its name.

The kinds of a room are the modules of its package in Concord (``rooms``), entry points of installed
distributions (group ``concord.<room>``), and the files ``plugins/<room>/<name>.py`` of the studies
in use. A study's folder ``plugins`` is the package ``concord_plugins.<key>``, whose files may
import each other (``from ..theory import bound``). A file is executed when its kind is used.
"""

import importlib
import os
import pkgutil
import re
import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord.rooms import ROOMS, Room, object_of

NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
SHARED = ("style",)  # modules of a room that are no kinds
studies: list[Path] = []  # folders of the studies in use
_files: dict[tuple[str, str], tuple[str, str]] = {}  # module and file of each of their kinds


@cache
def built_in(room: str) -> tuple[str, ...]:
    """Return the names of the built-in kinds of a room, such as "samplers"."""
    return tuple(sorted(_modules(room)))


@cache
def _modules(room: str) -> dict[str, str]:
    """Return the dotted modules of a room's kinds that are built in, by name."""
    return {
        module.name: f"{package}.{module.name}"
        for package in ROOMS[room].packages
        for module in pkgutil.iter_modules(_folders(package))
        if module.name[0] != "_" and module.name not in SHARED
    }


def _folders(package: str) -> list[str]:
    """Return the folders of a package, without importing it."""
    return list(getattr(find_spec(package), "submodule_search_locations", None) or [])


def add_rooms(rooms: dict[str, Room]) -> None:
    """Register rooms (groups of plug-ins); a room that exists gets the packages of the new one."""
    for name, room in rooms.items():
        packages = ROOMS[name].packages if name in ROOMS else ()
        ROOMS[name] = room._replace(packages=tuple(dict.fromkeys((*packages, *room.packages))))
    built_in.cache_clear()
    _modules.cache_clear()


@cache
def _entry_points(room: str) -> dict[str, list[Any]]:
    """Return a room's entry points of installed distributions, by name."""
    from importlib.metadata import entry_points  # a tenth of a command's start

    entries = list(entry_points(group=f"concord.{room}"))
    return {entry.name: [e for e in entries if e.name == entry.name] for entry in entries}


def names(room: str) -> tuple[str, ...]:
    """Return the names of a room's kinds: built in, installed, and of the studies in use."""
    own = [name for where, name in _files if where == room]
    return tuple(sorted({*built_in(room), *_entry_points(room), *own}))


def exists(room: str, name: Any) -> bool:
    """Return whether a room, such as "samplers", has a plug-in of this name."""
    return name in built_in(room) or name in names(room)


def find(room: str, name: Any, where: str = "") -> Any:
    """Return the module of a kind, or a sampler's class; ``where`` is its place for messages."""
    if not exists(room, name):
        beside = [study / "plugins" / f"{name}.py" for study in studies]
        astray = [path for path in beside if NAME.fullmatch(str(name)) and path.is_file()]
        remedy = nearest(name, names(room))
        for path in astray:
            remedy = f"move {path} into the folder {room} beside it"
        what = f"there is no {ROOMS[room].one} {short(name)}; {remedy}"
        raise ConcordError(f"{where}.kind: {what}" if where else what)
    module, whose = _source(room, name)
    try:
        return object_of(room, importlib.import_module(module))
    except (Exception, SystemExit) as error:
        if not whose and not isinstance(error, OSError):
            raise
        from concord.failures import explain  # of plug-ins alone

        package = whose and module.partition(".")[0]
        raise ConcordError(explain(error, whose, package)) from error


def _source(room: str, name: str) -> tuple[str, str]:
    """Return the module of a kind, and a plug-in's file or distribution. "" if it is built in."""
    if (room, name) in _files:
        return _files[room, name]
    if name in built_in(room):
        return _modules(room)[name], ""
    entries = _entry_points(room)[name]
    whose = " and ".join(f"{e.dist.name} {e.dist.version}" for e in entries)
    if len(entries) > 1:
        raise ConcordError(f"{whose} both have {room}/{name}; uninstall one of them")
    return entries[0].value, whose


def is_loaded(room: str, name: str) -> bool:
    """Return whether a kind is built in, or its file has been executed in this process."""
    return name in built_in(room) or _source(room, name)[0] in sys.modules


def location(room: str, name: str) -> Path:
    """Return the source file of a kind; neither it nor a package around it is executed.

    A ModuleNotFoundError if there is no such module.
    """
    spec: Any = None
    for module in accumulate(_source(room, name)[0].split("."), "{}.{}".format):
        package = sys.modules.get(module)
        if package is not None:
            spec = package.__spec__ or package  # packages of studies' plug-ins have none
        elif spec is None:
            spec = find_spec(module)
        else:  # where find_spec would import what is around it
            folders = getattr(spec, "submodule_search_locations", None)
            spec = PathFinder.find_spec(module, folders or getattr(spec, "__path__", []))
        if spec is None:
            raise ModuleNotFoundError(f"No module named {module!r}")
    return Path(str(getattr(spec, "origin", None)))


def origin(room: str, name: str) -> str:
    """Return the file or distribution of a plug-in for readers. "" for a built-in kind."""
    return _source(room, name)[1]


def use(*folders: Path) -> None:
    """Use the plug-ins in the folders ``plugins`` of these studies, and of no other study."""
    importlib.invalidate_caches()
    _files.clear()
    studies[:] = folders
    for study in folders:
        inside = os.path.join(os.path.realpath(study), "")
        for path in sorted((study / "plugins").rglob("*")):
            if not os.path.realpath(path).startswith(inside):
                raise ConcordError(f"{path}: it links to what is outside of its study; copy it")
            if path.match("plugins/[!._]*/[!._]*.py"):
                add(path)


def add(path: Path) -> tuple[str, str]:
    """Register a plug-in's file; return its room, the folder's name, and its own name."""
    folder, name = path.absolute().parent, path.stem
    if folder.parent.name == "plugins" and folder.name not in ROOMS:
        raise ConcordError(f"{path}: no room is called so; {nearest(folder.name, ROOMS)}")
    room = folder.name if folder.name in ROOMS else "samplers"
    if not path.is_file():
        raise ConcordError(f"{path}: there is no such file; name another one, or remove this")
    if not NAME.fullmatch(name):
        raise ConcordError(f"{path}: a name has small letters, digits and _; rename the file")
    if exists(room, name):
        whose = _source(room, name)[1] or "Concord"
        raise ConcordError(f"{path}: {whose} has {room}/{name} already; rename the file")
    _files[room, name] = module_of(path), str(path)
    return room, name


def module_of(path: Path) -> str:
    """Return the name of a file's module, of a package whose folder is ``plugins`` or its own."""
    folder, below = path.absolute().parent, path.stem
    if folder.name in ROOMS:
        folder, below = folder.parent, f"{folder.name}.{below}"
    key = folder.parent.name if folder.name == "plugins" else f"{folder.parent.name}_{folder.name}"
    root = sys.modules.setdefault("concord_plugins", ModuleType("concord_plugins"))
    name = f"{root.__name__}.{re.sub('[^A-Za-z0-9]', '_', key)}"
    if getattr(sys.modules.get(name), "__path__", None) != [str(folder)]:  # or another study's
        for module in [m for m in sys.modules if f"{m}.".startswith(f"{name}.")]:
            del sys.modules[module]
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(folder)]
    return f"{name}.{below}"
