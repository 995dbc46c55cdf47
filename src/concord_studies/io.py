"""Reading and writing files: UTF-8 text, YAML as plain data, tables, and results written whole.

YAML is read as plain data with the numbers of YAML 1.2: ``1e-4`` is one, while octals, sexagesimals
and dates (``010``, ``1:30``, ``2021-11-20``) stay text. Refused, with the line: a key that is not
unique (else the last would win in silence) or no text, tags (``!!python/...``, ``!!set``), values
nested too deeply, and aliases that stand for too much, or for themselves.
"""

import csv
import io
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from yaml import MarkedYAMLError

from concord.errors import ConcordError, short
from concord.options import build

DEEPEST = 100  # levels of nested values, of which studies have about ten
MOST_REPEATED = 100_000  # values for which a file's aliases may stand

_EXPONENT = r"[eE][-+]?[0-9]{1,9}"
_NUMBERS = {
    "int": (r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)", "-+0123456789"),
    "float": (
        rf"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:{_EXPONENT})?|[-+]?[0-9][0-9_]*{_EXPONENT}"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
}


def read_text(path: Path | str) -> str:
    """Read a text file.

    A ConcordError if it cannot be read, or is not UTF-8; the message names the file, and the line.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConcordError(f"{path}: line {line} is not UTF-8 text") from error
    except OSError as error:
        raise ConcordError(f"{path}: cannot be read ({error.strerror})") from error


def read_table(path: Path | str, columns: Sequence[str]) -> list[dict[str, str]]:
    """Return the rows of a CSV table by column; a ConcordError if it lacks one of ``columns``."""
    table = csv.DictReader(io.StringIO(read_text(path), newline=""))
    absent = [column for column in columns if column not in (table.fieldnames or ())]
    if absent:
        remedy = "delete the file to have it made again"
        raise ConcordError(f"{path}: the column {absent[0]!r} is missing; {remedy}")
    return list(table)


def signature(path: Path | str) -> tuple[int, ...] | None:
    """Return a file's identity, which changes with the file. None if it cannot be read."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Safe):  # type: ignore[misc]
    """The safe loader, in C where there is one, for plain data alone."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Return a mapping whose keys are different texts."""
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not (key.tag.endswith((":str", ":merge")) and key.value.isprintable()):
                name = key.value if isinstance(key.value, str) else "here"
                raise _refusal(
                    key, f"the key {short(name)} is not text on one line; put it in quotes"
                )
            if key.value in lines:
                line = lines[key.value]
                raise _refusal(key, f"the key {short(key.value)} is in line {line} too; remove one")
            lines[key.value] = key.start_mark.line + 1
        return super().construct_mapping(node, deep)


def _refusal(place: Any, problem: str) -> Exception:
    """Return YAML's error with a problem at the line and column of a node."""
    return MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def _refuse_tag(loader: Any, node: Any) -> None:
    """Refuse a YAML tag, at its line and column."""
    raise _refusal(node, f"the tag {short(node.tag)} is not allowed; write the plain value")


_PLAIN = {
    f"tag:yaml.org,2002:{name}" for name in ("bool", "float", "int", "map", "null", "seq", "str")
}
_Loader.yaml_constructors = {
    **{tag: make for tag, make in _Safe.yaml_constructors.items() if tag in _PLAIN},
    None: _refuse_tag,
}
_RESOLVED = {f"tag:yaml.org,2002:{name}" for name in ("bool", "null", "merge")}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag in _RESOLVED]
    for first, rules in _Safe.yaml_implicit_resolvers.items()
}
for _name, (_pattern, _starts) in _NUMBERS.items():
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(rf"(?:{_pattern})\Z"), list(_starts)
    )


def _refuse_unbounded_yaml(text: str) -> None:
    """Raise YAML's error where values are nested too deeply, or aliases stand for too many.

    It looks at the parser's events, before the C composer, which crashes on deep nesting.
    """
    nested: list[tuple[str | None, int]] = []  # anchors, and the values that were before them
    sizes: dict[str | None, int] = {}
    count = repeated = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            name = short(event.anchor)
            if any(anchor == event.anchor for anchor, _ in nested):
                raise _refusal(event, f"the alias {name} is inside its own value; write it out")
            repeated += sizes.get(event.anchor, 0)
            count += sizes.get(event.anchor, 0)
            if repeated > MOST_REPEATED:
                problem = f"with the alias {name} aliases stand for more than {MOST_REPEATED:,}"
                raise _refusal(event, f"{problem} values; use fewer aliases of aliases")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = nested.pop()
            sizes[anchor] = count - before
        elif isinstance(event, yaml.NodeEvent):
            if isinstance(event, yaml.ScalarEvent):
                sizes[event.anchor] = 1
            else:
                nested.append((event.anchor, count))
            if len(nested) > DEEPEST:
                raise _refusal(event, f"values are nested more than {DEEPEST} deep; nest fewer")
            count += 1


def load_yaml(path: Path | str) -> Any:
    """Read a YAML file.

    A ConcordError if it cannot be read or is not plain data; the message names the file, line and
    column.
    """
    text = read_text(path)
    try:
        _refuse_unbounded_yaml(text)
        return yaml.load(text, Loader=_Loader)  # noqa: S506  # it is a safe one
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f" line {mark.line + 1} column {mark.column + 1}:"
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        remedy = "" if "; " in problem else "; correct the YAML"
        raise ConcordError(f"{path}:{place} {problem}{remedy}") from error


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """The writer of YAML that has a list on one line."""


_Dumper.add_representer(
    list, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, True)
)


def dump_yaml(mapping: Mapping[str, Any]) -> str:
    """Return a mapping as YAML text, keys in the order given, a list on one line."""
    return yaml.dump(
        json.loads(json.dumps(mapping)),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )


ABANDONED = 3600  # seconds after which a file that is still being written is what a kill has left


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield the name of a file to write, which is renamed to ``path`` if no error is raised.

    Readers of ``path`` never see a part of it. Of several processes that write it, the last wins.

    A ConcordError if ``path`` is there and is no regular file, such as a folder or /dev/null; an
    OSError with the name of ``path`` if it comes without one, as that of a full disk does.
    """
    if path.exists() and not path.is_file():
        raise ConcordError(f"{path}: it is no regular file; remove it, or name another one")
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".*.concord-part{path.suffix}"):
        with suppress(OSError):  # somebody else may have removed it
            if left.stat().st_mtime < time.time() - ABANDONED:
                left.unlink()
    part = path.with_name(f".{path.stem}.{os.urandom(8).hex()}.concord-part{path.suffix}")
    try:
        yield part
        os.replace(part, path)
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text file at once: readers see the old file or all of the new, never a part."""
    with whole_file(path) as part:
        part.write_text(text, encoding="utf-8")


def build_file(kind: Any, value: Any, path: Any) -> Any:
    """Return content of a file as an object of type ``kind``; errors name ``path`` and the key."""
    try:
        return build(kind, value, f"{path}")
    except ConcordError as error:
        raise ConcordError(str(error).replace(f"{path}.", f"{path}: ", 1)) from None
