"""Kinds of samplers, problems, topologies and so on: a file each, found by its name.

A kind is built in (a module of one of this package's folders, ``PACKAGES``), or a plug-in of the
same form: an entry point of an installed distribution (group ``concord.samplers``, ...), or a file
in the folder ``plugins`` of a study. Such a file says what it is by what it defines, so that it is
found without being executed; it is executed when a kind of it is used, and only if it lies in the
folder of the study at work.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import os
import pkgutil
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from concord.errors import ConcordError, blamed, nearest, short
from concord.options import build, plain

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

NOT_KINDS = ("style", "checks")  # what all figures, or samplers, share
FOLDER = "plugins"  # of a study
NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")


class Package(NamedTuple):
    """A package of kinds: the word for one kind, its module, and the names a kind defines."""

    one: str
    module: str
    defines: tuple[str, ...]


PACKAGES = {
    "samplers": Package("sampler", "concord.samplers", ("step",)),
    "problems": Package("problem", "concord.problems.kinds", ("Params", "check", "build")),
    "topologies": Package("topology", "concord.networks.topologies", ("Params", "graph")),
    "partitions": Package("partition", "concord.sampling.partitions", ("Params", "split")),
    "schedules": Package("schedule", "concord.sampling.schedules", ("Params", "schedule")),
    "initial": Package("initial law", "concord.sampling.initial", ("Params", "draw", "moments")),
    "compressions": Package(
        "compression", "concord.networks.compressions", ("Params", "compressor", "bits")
    ),
    "metrics": Package("metric", "concord_studies.metrics", ("METRICS", "rows")),
    "figures": Package("figure", "concord_studies.figures", ("Params", "reads", "draw")),
    "tables": Package("table", "concord_studies.tables", ("Params", "reads", "tabulate")),
}

_own: dict[tuple[str, str], Path] = {}  # files of the studies at work
_folders: list[Path] = []  # of these studies
_executed: dict[Path, tuple[str, ModuleType]] = {}


@cache
def built_in(package: str) -> tuple[str, ...]:
    """Return the kinds of a package that are built in: its modules but NOT_KINDS."""
    folder = Path(__file__).parent.joinpath(*PACKAGES[package].module.split(".")[1:])
    names = [m.name for m in pkgutil.iter_modules([str(folder)])]
    return tuple(sorted(n for n in names if not n.startswith("_") and n not in NOT_KINDS))


@cache
def installed(package: str) -> dict[str, list[EntryPoint]]:
    """Return the entry points of installed plug-ins by name; a name should have only one."""
    found: dict[str, list[EntryPoint]] = {}
    from importlib import metadata  # a tenth of a start: most commands do not ask

    for entry in metadata.entry_points(group=f"concord.{package}"):
        found.setdefault(entry.name, []).append(entry)
    return found


def plugin_folders() -> set[str]:
    """Return the folders in which distributions with plug-ins are installed."""
    entries = (e for package in PACKAGES for found in installed(package).values() for e in found)
    return {os.path.abspath(str(entry.dist.locate_file(""))) for entry in entries if entry.dist}


def kinds(package: str) -> tuple[str, ...]:
    """Return the kinds of a package ("samplers", ...): built in, installed, and of the study."""
    own = [kind for where, kind in _own if where == package]
    return tuple(sorted({*built_in(package), *installed(package), *own}))


def exists(package: str, kind: Any) -> bool:
    """Return whether a package has a kind; quick for built-in ones."""
    return kind in built_in(package) or kind in kinds(package)


def plugin(package: str, kind: Any, where: str) -> Any:
    """Import and return the module of a kind; a ConcordError names the nearest existing kind.

    ``concord.contracts`` has the protocol of each package's modules.
    """
    one, module, _ = PACKAGES[package]
    if not exists(package, kind):
        raise ConcordError(
            f"{where}.kind: there is no {one} {short(kind)}; {nearest(kind, kinds(package))}"
        )
    if kind in built_in(package):
        name = f"{module}.{kind}"
        try:
            return _kind_of(package, sys.modules.get(name) or importlib.import_module(name))
        except OSError as error:  # another user's file, for example
            raise ConcordError(f"{error.filename}: cannot be read ({error.strerror})") from error
    if (package, kind) in _own:
        return _kind_of(package, _execute(_own[package, kind]))
    return _kind_of(package, _load(package, kind))


def _kind_of(package: str, module: Any) -> Any:
    """Return the object that stands for a kind: its module, or a sampler's class."""
    if package != "samplers":
        return module
    own = [c for c in vars(module).values() if isinstance(c, type) and _is_sampler(c, module)]
    if len(own) != 1:
        names = " and ".join(one.__name__ for one in own) or "no class of concord.Sampler"
        raise ConcordError(f"{module.__file__}: it defines {names}; make it one sampler a file")
    return own[0]


def _is_sampler(kind: type, module: Any) -> bool:
    """Return whether a class is a sampler that the module itself defines."""
    # By its options, which a class of Sampler has: that is not imported here.
    return kind.__module__ == module.__name__ and hasattr(kind, "step") and hasattr(kind, "options")


def options_of(module: Any) -> Any:
    """Return the class of a kind's options: its ``Params``, or a sampler's ``options``."""
    return module.Params if hasattr(module, "Params") else module.options()


def display_name(module: Any) -> str:
    """Return a kind's name for readers, such as "DE-SGLD"; "" if it declares none."""
    return str(getattr(module, "name" if isinstance(module, type) else "NAME", ""))


def docstring_of(module: Any) -> str:
    """Return the docstring of a kind's module."""
    source = sys.modules[module.__module__] if isinstance(module, type) else module
    return source.__doc__ or ""


def executed(package: str, kind: str) -> bool:
    """Return whether a kind is built in, or has been executed in this process."""
    if kind in built_in(package):
        return True
    if (package, kind) in _own:
        return _own[package, kind] in _executed
    return all(entry.module in sys.modules for entry in installed(package)[kind])


def location(package: str, kind: str) -> Path:
    """Return the file of a kind."""
    if kind in built_in(package):
        place = Path(__file__).parent.joinpath(*PACKAGES[package].module.split(".")[1:], kind)
        return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    if (package, kind) in _own:
        return _own[package, kind]
    return _source(installed(package)[kind][0])


def origin(package: str, kind: str) -> str:
    """Return the origin of a plug-in for readers; "" for a built-in kind."""
    if kind in built_in(package):
        return ""
    if (package, kind) in _own:
        return str(_own[package, kind])
    return _distribution(installed(package)[kind][0])


# Files of a study.


def use(*studies: Path) -> None:
    """Make the files in the ``plugins`` folders of studies the plug-ins in use.

    A ConcordError if a file is no plug-in, or has the name of another kind.
    """
    _own.clear()
    _folders[:] = studies
    for study in studies:
        for path in files(study):
            add(path)


def own() -> dict[tuple[str, str], Path]:
    """Return the files of the studies' plug-ins in use, by package and kind."""
    return dict(_own)


def at_work() -> bool:
    """Return whether the folders of studies have been named by ``use``."""
    return bool(_folders)


def within(path: Path, key: str) -> Path:
    """Return the path of a file that a study names; it must lie in a folder named by ``use``."""
    if not path.is_file():
        raise ConcordError(f"{key}: there is no file {path}; put it into the study's folder")
    if not any(path.resolve().is_relative_to(folder.resolve()) for folder in _folders):
        raise ConcordError(f"{key}: {path} is not in the study's folder; copy it there")
    return path


def execute(path: Path) -> ModuleType:
    """Execute a Python file that a study names beside its plug-ins, and return the module."""
    return _execute(path)


def files(study: Path) -> list[Path]:
    """Return the Python files in a study's ``plugins`` folder."""
    return sorted((study / FOLDER).glob("[!._]*.py"))


def add(path: Path) -> tuple[str, str]:
    """Register a file as a plug-in, if it is one of a new name; return its package and kind."""
    if path.exists() and not path.is_file():
        raise ConcordError(f"{path}: it is a pipe, a folder or a device, and no file; remove it")
    # Path.resolve raises for a link that leads to itself, which then cannot be read.
    study = os.path.realpath(path.absolute().parents[1])
    if not Path(os.path.realpath(path)).is_relative_to(study):
        raise ConcordError(
            f"{path}: it links to a file outside of its study, which is not executed; copy it"
        )
    package, kind = package_of(path), path.stem
    one = PACKAGES[package].one
    if not NAME.fullmatch(kind):
        raise ConcordError(
            f"{path}: {short(kind)} cannot name a {one}; use small letters, digits and _"
        )
    others = [str(_own[package, kind])] if (package, kind) in _own else []
    others += [_distribution(entry) for entry in installed(package).get(kind, [])]
    if kind in built_in(package) or others:
        whose = f" of {others[0]}" if others else ", which is built in"
        raise ConcordError(f"{path}: there is a {one} {kind!r} already{whose}; rename the file")
    _own[package, kind] = path
    return package, kind


def package_of(path: Path) -> str:
    """Return the package to which a file's kind belongs, from the names it defines.

    A ConcordError if it cannot be read, or is not of exactly one.
    """
    tree = parsed(path)
    names: set[str] = set()
    samplers: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name):
                names.add(name)
            case ast.ClassDef(name=name, body=body, bases=bases):
                names.add(name)
                written = any(isinstance(n, ast.FunctionDef) and n.name == "step" for n in body)
                if written or any(isinstance(b, ast.Name) and b.id in samplers for b in bases):
                    names.add("step")
            case ast.Assign(targets=targets):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.ImportFrom(module=module, names=aliases):
                imported = {alias.asname or alias.name for alias in aliases}
                names |= imported
                if (module or "").startswith("concord.samplers."):  # whose classes have a step
                    samplers |= imported
    found = [p for p, package in PACKAGES.items() if names.issuperset(package.defines)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConcordError(f"{path}: it is {' and '.join(found)} at once; make it a file for each")
    raise ConcordError(f"{path}: {_lacking(names)}")


def _lacking(names: set[str]) -> str:
    """Return a sentence on the names that a module lacks of the kind it most resembles."""

    def share(package: Package) -> float:
        """Return the share of a package's required names that the module defines."""
        return len(names & {*package.defines} - {"Params"}) / len(package.defines)

    best = max(PACKAGES.values(), key=share)
    if not share(best):
        return "it defines no kind, such as a sampler (a class with a step); see docs/plugins.md"
    missing = [name for name in best.defines if name not in names]
    return f"it lacks {' and '.join(missing)}, which a {best.one} defines; add it"


def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    try:
        return ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise ConcordError(f"{path}: cannot be read ({error.strerror})") from error
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ConcordError(_told(error, path)) from None


def _execute(path: Path) -> ModuleType:
    """Execute a file as a module and return it, without writing bytecode beside it."""
    source = path.read_bytes()
    digest = hashlib.sha256(str(path.absolute()).encode() + source).hexdigest()[:12]
    if _executed.get(path, ("", None))[0] != digest:
        module = ModuleType(f"concord_plugins.{path.stem}_{digest}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module  # options look up their annotations there
        with _importing(path):
            exec(compile(source, str(path), "exec"), module.__dict__)
        _executed[path] = digest, module
    return _executed[path][1]


@cache
def _load(package: str, kind: str) -> Any:
    """Import the module of an installed plug-in, or raise with the distribution's name."""
    entries, one = installed(package)[kind], PACKAGES[package].one
    entry = entries[0]
    whose = f"{one} {entry.name!r} of {_distribution(entry)}"
    if len(entries) > 1:
        others = " and ".join(map(_distribution, entries))
        raise ConcordError(f"{one} {entry.name!r}: {others} both have one; uninstall one of them")
    try:
        path = _source(entry)
        with _importing(path):
            module = entry.load()
    except (Exception, SystemExit) as error:
        raise ConcordError(
            f"{whose} cannot be imported ({_told(error)}); mend or uninstall it"
        ) from error
    if missing := [name for name in PACKAGES[package].defines if name not in dir(module)]:
        raise ConcordError(f"{whose} has no {' and no '.join(missing)}; mend or uninstall it")
    return module


@contextmanager
def _importing(path: Path) -> Iterator[None]:
    """Report an import that takes long, and refuse one that fails."""

    def tell() -> None:
        """Print that an import still lasts."""
        print(f"concord: still importing {path} after {PATIENCE:g} s", file=sys.stderr, flush=True)

    timer = threading.Timer(PATIENCE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (Exception, SystemExit) as error:
        raise ConcordError(_told(error, path)) from error
    finally:
        timer.cancel()


PATIENCE = 5.0  # seconds


@cache
def _source(entry: EntryPoint) -> Path:
    """Return the file of an entry point's module, without importing it."""
    top, *rest = entry.module.split(".")
    spec = importlib.util.find_spec(top)
    for part in rest:  # find_spec would execute the packages above
        inside = spec.submodule_search_locations if spec else None
        spec = PathFinder.find_spec(f"{spec.name}.{part}", [*inside]) if spec and inside else None
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise ImportError(f"there is no module {entry.module}")
    return Path(spec.origin)


def _distribution(entry: EntryPoint) -> str:
    """Return name and version of the distribution of an entry point."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def _told(error: BaseException, path: Path | None = None) -> str:
    """Return one sentence, with its line, about an error in a plug-in's code."""
    text = " ".join(str(error).split()) or "no reason given"
    place = blamed(error, path and path.parent) or (str(path) if path else None)
    if isinstance(error, SyntaxError):
        text, place = error.msg, f"{error.filename or path}, line {error.lineno}"
    what = text if isinstance(error, ConcordError) else f"{type(error).__name__}: {text}"
    return what if place is None or what.startswith(place) else f"{place}: {what}"


class Chosen:
    """A kind of a package with its options, parsed from ``{kind: ring, ...}``."""

    package: ClassVar[str]
    __slots__ = ("kind", "module", "params")

    def __init__(self, kind: str, **options: Any) -> None:
        """Choose a kind of the class's package with options given by name."""
        self._choose(kind, options, "")

    def _choose(self, kind: Any, options: dict[str, Any], where: str) -> None:
        """Set module, kind and typed options; ``where`` is the place for messages."""
        self.module = plugin(self.package, kind, where or PACKAGES[self.package].one)
        self.kind: str = kind
        self.params = build(options_of(self.module), options, where)

    @classmethod
    def parse(cls, value: Any, where: str) -> Self:
        """Return the kind and options that a file's mapping chooses.

        A ConcordError if the kind or an option is unknown, missing or out of bounds.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict) or "kind" not in value:
            known = ", ".join(kinds(cls.package))
            raise ConcordError(
                f"{where}: the key 'kind' is missing; add one of {known}"
                if isinstance(value, dict)
                else f"{where}: {short(value)} is not a mapping with a kind: {known}"
            )
        made = cls.__new__(cls)
        made._choose(value["kind"], {k: v for k, v in value.items() if k != "kind"}, where)
        return made

    def plain(self) -> dict[str, Any]:
        """Return the mapping that ``parse`` reads, every option written out."""
        return {"kind": self.kind, **plain(self.params)}

    def __eq__(self, other: object) -> bool:
        """Return whether another choice has the same kind and the same options."""
        return isinstance(other, type(self)) and self.plain() == other.plain()

    def __hash__(self) -> int:
        """Return a hash of the kind and its options, the same for equal choices."""
        return hash((self.kind, self.params))

    def __repr__(self) -> str:
        """Return the Python call that makes the choice."""
        options = "".join(f", {key}={value!r}" for key, value in plain(self.params).items())
        return f"{type(self).__name__}({self.kind!r}{options})"
