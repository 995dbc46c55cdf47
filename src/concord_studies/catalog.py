"""The kinds: what each is, and which options it takes, from docstrings and types."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from concord import kinds
from concord.errors import ConcordError, nearest, short
from concord.hints import meaning_of
from concord.kinds import ROOMS, display_name, options_of
from concord.mistakes import describe_type
from concord.options import plain
from concord_studies.contracts import declaration_of_problem

if TYPE_CHECKING:
    from concord_studies.metrics import MetricFamily

FIELDS = ("source", "price", "needs")  # paragraphs of a docstring that begin with these words


def summarize_kinds(rooms: Sequence[str] = ()) -> Iterator[dict[str, str]]:
    """Yield room, kind, first sentence and origin of every kind; a plug-in's file is not executed.

    A ConcordError if there is no such room.
    """
    for room in rooms or ROOMS:
        if room not in ROOMS:
            raise ConcordError(f"there is no room {short(room)}; {nearest(room, ROOMS)}")
        for kind in kinds.names(room):
            about, origin = first_sentence(_docstring(room, kind)), kinds.origin(room, kind)
            yield {"room": room, "kind": kind, "is": about, "from": origin}


def docstring_of(kind: Any) -> str:
    """Return the docstring of a kind's module, or of a sampler's class in a notebook."""
    module = sys.modules[kind.__module__] if isinstance(kind, type) else kind
    return module.__doc__ or kind.__doc__ or ""


def _docstring(room: str, kind: str) -> str:
    """Return the docstring of a kind's file, which is not executed, or why it cannot be read."""
    try:
        return ast.get_docstring(ast.parse(kinds.location(room, kind).read_bytes())) or ""
    except Exception as error:  # an entry point whose package is missing or broken
        return f"cannot be read: {' '.join(str(error).split())}"


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring, on one line."""
    return " ".join(text.strip().partition("\n\n")[0].split())


def find_kinds(word: str) -> list[tuple[str, str]]:
    """Return room and kind of a word such as ``de_sgld`` or ``samplers/de_sgld``.

    A ConcordError with the nearest kind, if there is none.
    """
    prefix, slash, kind = word.rpartition("/")
    rooms = [room for room in ROOMS if not slash or room == prefix]
    matches = [(room, kind) for room in rooms if kind in kinds.names(room)]
    if not matches:
        names = {k for room in rooms or ROOMS for k in kinds.names(room)}
        raise ConcordError(f"there is no kind {short(word)}; {nearest(kind, names)}")
    return matches


def describe_kind(room: str, kind: str, execute: bool = True) -> dict[str, Any]:
    """Return a description of a kind: its text, options, origin and further facts.

    Without ``execute`` a plug-in that nothing has used yet is not executed: its options are then
    unknown, and its docstring says why if it cannot be read.

    That is: room, kind, ``name`` (for readers, if it says one), ``from`` (nothing if built in),
    ``text`` (its docstring), ``is`` (the first sentence), equation, source, price and needs where
    the docstring states them, options (name, type, ``default`` unless it must be given, meaning),
    and the metrics of a family, with what readers see of them (``labels``).
    """
    loaded = execute or kinds.is_loaded(room, kind)
    module: Any = kinds.find(room, kind, room) if loaded else None
    text = inspect.cleandoc(docstring_of(module)) if module else _docstring(room, kind)
    about: dict[str, Any] = {
        **{"room": room, "kind": kind, "from": kinds.origin(room, kind)},
        **{"is": first_sentence(text), "text": text, "equation": _equation(text)},
        "name": display_name(module) or None if module else None,
        **{field: _paragraph(text, field) for field in FIELDS},
    }
    if module is None:
        return about
    lacking = declaration_of_problem(module).unavailable() if room == "problems" else None
    if lacking:
        about["needs"] = f"{about['needs'] or ''} {lacking}".strip()
    if room == "metrics":
        about["metrics"] = list(module.rows.metrics)
        about["labels"] = list(_labels(module.rows))
    else:
        about["options"] = [
            _describe_option(field) for field in msgspec.structs.fields(options_of(module))
        ]
    return about


def _labels(family: MetricFamily) -> Iterator[dict[str, str]]:
    """Yield name, description and heading of each metric that a family labels."""
    for metric, label in family.labels.items():
        texts = zip(("is", "column", "axis", "unit"), label, strict=True)
        yield {"metric": metric, **{key: text for key, text in texts if text}}


def _equation(text: str) -> str | None:
    """Return the formulas of a docstring in LaTeX, separated by blank lines. None if none."""
    blocks = re.findall(r"^\.\. math::(.*(?:\n(?:[ \t].*|(?=\n)))*)", text, re.M)
    return "\n\n".join(inspect.cleandoc(block).strip() for block in blocks) or None


def _paragraph(text: str, field: str) -> str | None:
    """Return the paragraph or sentence of a text that begins with a field and a colon."""
    match = re.search(rf"^{field}s?: +(.+(?:\n(?!\w+: )\S.*)*)", text, re.M | re.I)
    return " ".join(match[1].split()) if match else None


def _describe_option(field: Any) -> dict[str, Any]:
    """Return the description of one field of a class of options."""
    option = {
        "name": field.encode_name,
        "type": describe_type(field.type),
        "means": meaning_of(field.type),
    }
    if not field.required:
        factory = field.default_factory
        default = field.default if factory is msgspec.NODEFAULT else factory()
        option["default"] = plain(default)
    return option


def as_text(about: dict[str, Any]) -> str:
    """Return the description of a kind, as ``describe_kind`` gives it, as plain text."""
    origin = f", {about['from']}" if about["from"] else ""
    name = f" ({about['name']})" if about["name"] else ""
    lines = [f"{ROOMS[about['room']].noun} {about['kind']}{name}{origin}", "", about["text"]]
    for field in ("price", "needs"):
        if about["room"] == "samplers" and not about[field]:
            lines += ["", f"{field.capitalize()}: not stated."]
    options = about.get("options", [])
    if options:
        lines += ["", "Options:"]
    for option in options:
        default = ""
        if "default" in option:
            default = f" (default {'none' if option['default'] is None else option['default']})"
        lines.append(f"  {option['name']}: {option['type']}{default}")
        lines.append(f"      {option['means']}")
    if about.get("metrics"):
        lines += ["", "Metrics: " + ", ".join(about["metrics"])]
    for label in about.get("labels", []):
        texts = "; ".join(f"{key}: {text}" for key, text in label.items() if key != "metric")
        lines.append(f"  {label['metric']}: {texts.removeprefix('is: ')}")
    return "\n".join(lines)
