"""Reading and writing files: UTF-8 text, YAML as plain data, tables, and results written whole.

Whatever a file holds, it is read or refused in one sentence. YAML can do more than a configuration
needs. Refused, with the line: a key that stands twice (else the last would win in silence) or is
not text, tags (``!!python/...``, ``!!set``), aliases that contain themselves or multiply to more
than ``LARGEST`` values, and nesting deeper than ``DEEPEST`` (parsers crash on it). What YAML 1.1
would take for an octal or sexagesimal number or for a date (``010``, ``1:30``, ``2021-11-20``)
stays text.
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from concord.errors import ConcordError, short

DEEPEST = 50
LARGEST = 200_000
LONGEST_KEY = 100

# Numbers with so many digits that they are none anyone means stay text too.
_INT = r"[-+]?(?:0|[1-9][0-9_]{0,300}|0b[01][01_]{0,300}|0x[0-9a-fA-F][0-9a-fA-F_]{0,300})"
_FLOAT = (
    r"[-+]?[0-9][0-9_]{0,300}\.[0-9_]{0,300}(?:[eE][-+][0-9]{1,9})?"
    r"|[-+]?\.[0-9][0-9_]{0,300}(?:[eE][-+][0-9]{1,9})?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_NUMBERS = {"int": (_INT, "-+0123456789"), "float": (_FLOAT, "-+0123456789.")}


def read_text(path: Path | str) -> str:
    """Read a text file.

    Raises
    ------
    ConcordError
        If it cannot be read, or is not UTF-8; the message names the file, and the line.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConcordError(f"{path}: line {line} is not UTF-8 text") from error
    except OSError as error:
        raise ConcordError(f"{path}: cannot be read ({error.strerror})") from error


def read_table(
    path: Path | str, columns: Sequence[str], delimiter: str = ","
) -> list[dict[str, str]]:
    """Read a table with a head (CSV) that has these columns, and perhaps others.

    Raises
    ------
    ConcordError
        If it is not one; a table is generated, so the remedy is to delete it.
    """
    remedy = "delete the file, it is made again"
    table = csv.DictReader(io.StringIO(read_text(path), newline=""), delimiter=delimiter)
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


def load_yaml(path: Path | str) -> Any:
    """Read a YAML file.

    Raises
    ------
    ConcordError
        If it cannot be read or is not plain data; the message names the file, line and column.
    """
    import yaml

    text = read_text(path)
    try:
        _refuse_tricks(text, path)
        return yaml.load(text, Loader=_loader())  # a safe loader
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
        raise ConcordError(f"{path}:{place} {problem}; correct the YAML") from error


@cache
def _loader() -> Any:
    """Return the safe loader, in C where there is one, without dates and odd numbers."""
    import yaml

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


@dataclass
class _Open:
    """A mapping or list that has not ended yet; ``keys``: of a mapping, with their lines."""

    anchor: str | None
    mapping: bool
    size: int = 1
    at_key: bool = True
    keys: dict[str, int] = field(default_factory=dict)


def _refuse_tricks(text: str, path: Path | str) -> None:
    """Raise where the text is YAML but not plain data; one pass over its events."""
    import yaml

    stack = [_Open(None, False)]
    sizes: dict[str, int] = {}  # of what has an anchor
    loader = _loader()(text)

    def refuse(problem: str) -> None:
        mark = event.start_mark
        raise ConcordError(f"{path}: line {mark.line + 1} column {mark.column + 1}: {problem}")

    def note_key(keys: dict[str, int]) -> None:
        if isinstance(event, yaml.ScalarEvent):
            tag = loader.resolve(yaml.ScalarNode, event.value, event.implicit)
            text = tag.endswith((":str", ":merge")) and event.value.isprintable()
        else:
            text = False
        if not text:
            key = getattr(event, "value", "here")
            key = key if key.isprintable() and len(key) <= LONGEST_KEY else short(key)
            refuse(f"the key {key} is not text on one line; put it in quotes")
        if len(event.value) > LONGEST_KEY:
            refuse(f"the key {short(event.value)} is longer than {LONGEST_KEY} characters")
        if event.value in keys:
            refuse(
                f"the key {short(event.value)} stands in line {keys[event.value]} too; remove one"
            )
        keys[event.value] = event.start_mark.line + 1

    try:
        while loader.check_event():
            event: Any = loader.get_event()
            if isinstance(event, yaml.CollectionEndEvent):
                closed = stack.pop()
                if closed.anchor is not None:
                    sizes[closed.anchor] = closed.size
                stack[-1].size += closed.size
            elif isinstance(event, yaml.NodeEvent):
                parent = stack[-1]
                tag = getattr(event, "tag", None)
                if tag not in (None, "!"):
                    refuse(f"the tag {short(tag)} is not allowed; write the plain value")
                if parent.mapping:
                    if parent.at_key:
                        note_key(parent.keys)
                    parent.at_key = not parent.at_key
                if isinstance(event, yaml.CollectionStartEvent):
                    if len(stack) > DEEPEST:
                        refuse(f"nested more than {DEEPEST} deep; make it flatter")
                    stack.append(_Open(event.anchor, isinstance(event, yaml.MappingStartEvent)))
                elif isinstance(event, yaml.AliasEvent):
                    if any(frame.anchor == event.anchor for frame in stack):
                        refuse(f"the alias *{event.anchor} stands for what it is part of")
                    parent.size += sizes.get(str(event.anchor), 1)  # unknown ones are YAML errors
                else:
                    parent.size += 1
                    if event.anchor is not None:
                        sizes[event.anchor] = 1
            if stack[-1].size > LARGEST:
                refuse(f"more than {LARGEST} values, those behind aliases included; use fewer")
    finally:
        loader.dispose()


def dump_yaml(mapping: Mapping[str, Any]) -> str:
    """Return a mapping as YAML text, keys in the order given."""
    import yaml

    return yaml.dump(
        json.loads(json.dumps(mapping)),
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )


def check_folder(folder: Path) -> None:
    """Check that a folder is one, or could be made: neither it nor what it is in is a file or loop.

    Raises
    ------
    ConcordError
        With what is in its place.
    """
    place = _there(folder)
    if not os.path.isdir(place):
        raise ConcordError(f"{place}: it is no folder; remove it, or name another one")


def check_writable(*paths: Path) -> None:
    """Check that this user may write to files and folders, or make those that are not there.

    Raises
    ------
    ConcordError
        With the first that may not be written to.
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


def hold(folder: Path) -> None:
    """Let no other process hold a folder until this one ends, even if it is killed.

    The folder is made if it is missing; the hold is a lock on the file ``.running`` in it. Where
    the file system knows no locks, a line says so, and nothing is held.

    Raises
    ------
    ConcordError
        If another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / ".running"
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)  # never closed but by the system
    except PermissionError:  # another user's, whose results these are too
        file = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConcordError(
            f"{folder}: another Snakemake is at work here; wait until it is done"
        ) from None
    except OSError as error:
        print(f"concord: {path}: {error.strerror}; run one Snakemake at a time", file=sys.stderr)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a temporary name beside ``path``; rename it to ``path`` if all goes well.

    The temporary name is ``.<stem>.concord-part<suffix>``: what a killed process left there is
    overwritten. Who comes while another process writes the same file (jobs outlive a Snakemake that
    is killed) waits: who comes last has the file.

    Raises
    ------
    ConcordError
        If ``path`` is there and is no regular file.
    OSError
        With the name of ``path`` if it comes without one, as that of a full disk does.
    """
    if path.exists() and not path.is_file():  # a folder, or a device such as /dev/null
        raise ConcordError(f"{path}: it is not a file that could be replaced; name another one")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.concord-part{path.suffix}")
    try:
        with _locked(temporary):
            try:
                yield temporary
                os.replace(temporary, path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Make a file and lock it, if the file system knows locks."""
    while True:
        with open(path, "a") as file:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            try:
                there = os.path.samestat(os.fstat(file.fileno()), os.stat(path))
            except FileNotFoundError:
                there = False
            if there:  # else who had the lock has renamed or removed it
                yield
                return
