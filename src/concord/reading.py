"""Reading files that people or programs wrote: UTF-8 text, YAML as plain data, tables.

Whatever a file holds, it is read or refused in one sentence. YAML can do more than a configuration
needs. Refused, with the line: a key that stands twice (else the last would win in silence) or is
not text, tags (``!!python/...``, ``!!set``), aliases that contain themselves or multiply to more
than ``LARGEST`` values, and nesting deeper than ``DEEPEST`` (parsers crash on it). What YAML 1.1
would take for an octal or sexagesimal number or for a date (``010``, ``1:30``, ``2021-11-20``)
stays text.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
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
