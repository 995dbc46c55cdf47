"""Reading and writing files: UTF-8 text, YAML as plain data, tables, and results written whole.

Whatever a file holds, it is read or refused in one sentence. YAML is read as plain data with the
numbers of YAML 1.2: ``1e-4`` is one, while octals, sexagesimals and dates (``010``, ``1:30``,
``2021-11-20``) stay text. Refused, with the line: a key that is not unique (else the last would win
in silence) or not text, tags (``!!python/...``, ``!!set``), aliases that contain themselves or
multiply to more than ``LARGEST`` values, and nesting deeper than ``DEEPEST`` (parsers crash on it).
"""

import csv
import errno
import fcntl
import io
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from yaml import MarkedYAMLError

from concord.errors import ConcordError, short
from concord.options import build

DEEPEST = 50
LARGEST = 200_000
LONGEST_KEY = 100

# Numbers with so many digits that they are none anyone means stay text too.
_INT = r"[-+]?(?:0|[1-9][0-9_]{0,300}|0b[01][01_]{0,300}|0x[0-9a-fA-F][0-9a-fA-F_]{0,300})"
_EXPONENT = r"[eE][-+]?[0-9]{1,9}"
_FLOAT = (
    rf"[-+]?(?:[0-9][0-9_]{{0,300}}\.[0-9_]{{0,300}}|\.[0-9][0-9_]{{0,300}})(?:{_EXPONENT})?"
    rf"|[-+]?[0-9][0-9_]{{0,300}}{_EXPONENT}"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_NUMBERS = {"int": (_INT, "-+0123456789"), "float": (_FLOAT, "-+0123456789.")}


def regular(path: Path | str, flags: int = os.O_RDONLY) -> int:
    """Open a file and return its descriptor; for ``open(path, opener=regular)``.

    An OSError if it is no regular file: what reads a pipe or a device might never end.
    """
    file = os.open(path, flags | os.O_NONBLOCK, 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return file


def read_text(path: Path | str) -> str:
    """Read a text file.

    A ConcordError if it cannot be read, or is not UTF-8; the message names the file, and the line.
    """
    try:
        with open(path, encoding="utf-8", opener=regular) as file:
            return file.read()
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConcordError(f"{path}: line {line} is not UTF-8 text") from error
    except OSError as error:
        raise ConcordError(f"{path}: cannot be read ({error.strerror})") from error


def read_table(path: Path | str, columns: Sequence[str]) -> list[dict[str, str]]:
    """Read a table with a head (CSV) that has these columns, and perhaps others.

    A ConcordError if it is not one; a table is generated, so the remedy is to delete it.
    """
    remedy = "delete the file to have it made again"
    table = csv.DictReader(io.StringIO(read_text(path), newline=""))
    try:
        rows = list(table)
    except csv.Error as error:
        raise ConcordError(f"{path}: line {table.line_num}: {error}; {remedy}") from error
    absent = [column for column in columns if column not in (table.fieldnames or ())]
    if absent:
        raise ConcordError(f"{path}: the column {absent[0]!r} is missing; {remedy}")
    for number, row in enumerate(rows, 1):
        if None in row or None in row.values():
            raise ConcordError(f"{path}: row {number} has not as many cells as the head; {remedy}")
    return rows


def signature(path: Path | str) -> tuple[int, ...] | None:
    """Return what changes where a file does; None of one that cannot be looked at."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def load_yaml(path: Path | str) -> Any:
    """Read a YAML file.

    A ConcordError if it cannot be read or is not plain data; the message names the file, line and
    column.
    """
    text = read_text(path)
    try:
        _check_events(yaml.parse(text, Loader=_loader()))
        loader = _loader()(text)
        try:
            node = loader.get_single_node()
            _size(node, {})
            return None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        raise ConcordError(
            f"{path}: line {line} holds a character that YAML does not allow "
            f"(U+{error.character:04X}); remove it"
        ) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f" line {mark.line + 1} column {mark.column + 1}:"
        problem = getattr(error, "problem", None) or "not valid YAML"
        remedy = "" if "; " in problem else "; correct the YAML"
        raise ConcordError(f"{path}:{place} {problem}{remedy}") from error


@cache
def _loader() -> Any:
    """Return the safe loader, in C where there is one, without dates and odd numbers."""
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    kept = {f"tag:yaml.org,2002:{name}" for name in ("bool", "null", "merge")}
    resolvers = {
        first: [(tag, rule) for tag, rule in rules if tag in kept]
        for first, rules in base.yaml_implicit_resolvers.items()
    }
    for name, (pattern, starts) in _NUMBERS.items():
        for first in starts:
            rule = (f"tag:yaml.org,2002:{name}", re.compile(rf"(?:{pattern})\Z"))
            resolvers[first] = [*resolvers.get(first, []), rule]
    return type("Loader", (base,), {"yaml_implicit_resolvers": resolvers})


def _check_events(events: Iterable[Any]) -> None:
    """Refuse what the tree of nodes hides, or cannot be built from."""
    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _refusal(event, f"nested more than {DEEPEST} deep; make it flatter")
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            raise _refusal(event, f"the tag {short(tag)} is not allowed; write the plain value")


def _size(node: Any, sizes: dict[Any, int]) -> int:
    """Return the number of values in a node, those behind aliases included, and check its keys."""
    if sizes.get(node) == 0:
        raise _refusal(node, "has an alias of itself within; write the values")
    if node in sizes or not isinstance(node, yaml.CollectionNode):
        return sizes.get(node, 1)
    sizes[node], size = 0, 1
    parts = node.value
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, _ in parts:
            _check_key(key, lines)
            lines[key.value] = key.start_mark.line + 1
        parts = [value for _, value in parts]
    for part in parts:
        size += _size(part, sizes)
        if size > LARGEST:
            problem = f"more than {LARGEST} values, those behind aliases included; use fewer"
            raise _refusal(part, problem)
    sizes[node] = size
    return size


def _check_key(key: Any, lines: Mapping[str, int]) -> None:
    name = key.value if isinstance(key.value, str) else "here"
    if not (key.tag.endswith((":str", ":merge")) and name.isprintable()):
        name = name if name.isprintable() and len(name) <= LONGEST_KEY else short(name)
        raise _refusal(key, f"the key {name} is not text on one line; put it in quotes")
    if len(name) > LONGEST_KEY:
        problem = f"the key {short(name)} is longer than {LONGEST_KEY} characters; shorten it"
        raise _refusal(key, problem)
    if name in lines:
        raise _refusal(key, f"the key {short(name)} is in line {lines[name]} too; remove one")


def _refusal(place: Any, problem: str) -> Exception:
    return MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def dump_yaml(mapping: Mapping[str, Any]) -> str:
    """Return a mapping as YAML text, keys in the order given."""
    return yaml.dump(
        json.loads(json.dumps(mapping)),
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )


def check_folder(folder: Path) -> None:
    """Check that a folder is one, or could be made: neither it nor what it is in is a file or loop.

    A ConcordError with what is in its place.
    """
    place = _there(folder)
    if not os.path.isdir(place):
        raise ConcordError(f"{place}: it is no folder; remove it, or name another one")


def check_writable(*paths: Path) -> None:
    """Check that this user may write to files and folders, or make those that are not there.

    A ConcordError with the first that may not be written to.
    """
    for place in map(_there, paths):
        if not os.access(place, os.W_OK):
            raise ConcordError(
                f"{place}: it cannot be written to; allow it, or work in a copy of the project"
            )


def _there(path: Path) -> Path:
    """Return a path, or the nearest of its parents that is there."""
    path = path.absolute()
    return next(place for place in (path, *path.parents) if os.path.lexists(place))


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give the name of a ``temporary`` file; rename it to ``path`` if all goes well.

    Of several who write the same file at once, who comes last has it.

    A ConcordError if ``path`` is there and is no regular file, or a link, wherever that leads; an
    OSError with the name of ``path`` if it comes without one, as that of a full disk does.
    """
    if path.is_symlink():
        raise ConcordError(f"{path}: it is a link, which is not written through; remove it")
    if path.exists() and not path.is_file():  # a folder, a pipe, or a device such as /dev/null
        raise ConcordError(f"{path}: it is no regular file; remove it, or name another one")
    check_folder(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with temporary(path) as part:
            yield part
            os.replace(part, path)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def write_whole(path: Path, text: str) -> None:
    """Write a text file, as ``whole`` does."""
    with whole(path) as part:
        part.write_text(text, encoding="utf-8")


@contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """Make a file of an unpredictable name beside ``path``, and remove it in the end.

    Its name is ``.<stem>.<random>.concord-part<suffix>``, and it is locked. Those of ``path`` that
    no process holds any more, since theirs was killed, are removed first, if the file system knows
    locks.
    """
    name = rf"\.{re.escape(path.stem)}\.[0-9a-f]{{16}}\.concord-part{re.escape(path.suffix)}"
    for left in os.listdir(path.parent):
        if re.fullmatch(name, left):
            _remove_unless_held(path.with_name(left))
    there = False
    while not there:  # who came between making and locking it has taken it for left behind
        part = path.with_name(f".{path.stem}.{os.urandom(8).hex()}.concord-part{path.suffix}")
        file = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        try:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            there = part.exists()
            if there:
                yield part
        finally:
            part.unlink(missing_ok=True)
            os.close(file)


def _remove_unless_held(part: Path) -> None:
    with suppress(OSError):  # it is held, another user's, a link, or gone
        file = regular(part, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()
        finally:
            os.close(file)


def build_file(kind: Any, value: Any, path: Any) -> Any:
    """Return the object that a file's content stands for; messages begin with the file."""
    try:
        return build(kind, value, f"{path}")
    except ConcordError as error:
        raise ConcordError(str(error).replace(f"{path}.", f"{path}: ", 1)) from None
