"""The reference: what kinds there are, what a study's files may hold, the functions of Python."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import concord
from concord import kinds
from concord.rooms import ROOMS
from concord_studies import markup
from concord_studies.catalog import described
from concord_studies.configuration.editor import study_schema
from concord_studies.pages.site.parts import title


def pages(pictures: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names and texts (reStructuredText) of the pages of the reference.

    pictures: kind of figure: path of a picture of one, from the reference's folder.
    """
    for package, about in ROOMS.items():
        found = [described(package, kind, execute=False) for kind in kinds.names(package)]
        parts = [
            title(package.replace("_", " ").capitalize(), "#"),
            f"A {about.one} is chosen by its kind, which is what you type.",
        ]
        for kind in found:
            if kinds.NAME.fullmatch(kind["kind"]):  # one of a distribution may be called anything
                parts.append(f".. _{package}-{kind['kind']}:")
            named = f"{kind['name']} ({kind['kind']})" if kind["name"] else kind["kind"]
            parts.append(title(named, "*"))
            if package == "figures" and kind["kind"] in pictures:
                picture = escape(pictures[kind["kind"]])
                parts.append(
                    f'.. raw:: html\n\n   <div class="plate"><img src="../{picture}" '
                    f'loading="lazy" alt="A figure of kind {escape(kind["kind"])}"></div>'
                )
            parts += _text(kind)
            if kind.get("metrics"):
                names = ", ".join(map(_code, kind["metrics"]))
                parts.append(f"Metrics: {names}.")
            if kind.get("options"):
                parts.append(_table(("option", "type", "default", "meaning"), _options(kind)))
        yield package, "\n\n".join(parts)
    yield "study", _study()
    yield "python", _python()


def _text(kind: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a kind's docstring says: of what is built in as markup, else as it is typed."""
    if not kind["from"]:
        yield kind["text"].replace("|", "\\|") if not kind["equation"] else kind["text"]
        return
    yield f"A plug-in, {markup.rst(kind['from'])}."
    if kind["text"].strip():
        text = kind["text"].strip("\n").splitlines()
        lines = ["".join(c if c.isprintable() else " " for c in line) for line in text]
        yield "\n".join([".. code-block:: text", "", *(f"   {line}".rstrip() for line in lines)])
    if "options" not in kind and "metrics" not in kind:
        yield "No study uses it: ``concord describe`` says which options it takes."


def _code(text: str) -> str:
    """Return a text as code, where it can be."""
    text = markup.line(text)
    return f"``{text}``" if text and "`" not in text and "\\" not in text else markup.rst(text)


def _options(kind: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    for option in kind["options"]:
        default = option.get("default", "")
        text = "none" if default is None else str(default)
        given = _code(text) if "default" in option and text else ""
        shape, means = markup.rst(option["type"]), markup.rst(option["means"])
        yield _code(option["name"]), shape, given, means


def _study() -> str:
    """Return every key of a study's files, from their schema."""
    schema = study_schema(execute=False)
    parts = [
        title("Keys of a study", "#"),
        "Every key of the files in ``config/papers/<key>`` and ``config/studies/<key>``, as the "
        "schema for editors has it (``concord schema study``).",
        title("Sections", "*"),
        _keys(schema["properties"], schema.get("required", ())),
    ]
    for name, part in schema["$defs"].items():
        if part.get("properties"):
            parts += [f".. _study-{name}:", title(part.get("title", name), "*")]
            parts += [markup.rst(part.get("description", ""))]
            parts += [_keys(part["properties"], part.get("required", ()))]
    return "\n\n".join(parts)


def _keys(properties: Mapping[str, Any], required: Sequence[str]) -> str:
    rows = [
        (
            _code(key) + (" (required)" if key in required else ""),
            _shape(value),
            markup.rst(value.get("description", "")),
        )
        for key, value in properties.items()
    ]
    return _table(("key", "what it holds", "meaning"), rows)


def _shape(value: Mapping[str, Any]) -> str:
    """Return what a key of a JSON Schema holds, in words."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return markup.rst(name)
    if "enum" in value:
        return ", ".join(_code(str(choice)) for choice in value["enum"])
    if "const" in value:
        return _code(str(value["const"]))
    for several in ("anyOf", "oneOf", "allOf"):
        if several in value:
            found = dict.fromkeys(_shape(part) for part in value[several])
            return ("; " if several == "allOf" else " or ").join(found)
    kind = value.get("type", "any value")
    if kind == "array":
        items = value.get("items") or (value.get("prefixItems") or [{}])[0]
        return f"list of {_shape(items)}" if isinstance(items, dict) else "list"
    if kind == "object" and isinstance(value.get("additionalProperties"), dict):
        inner = _shape(value["additionalProperties"])
        return f"mapping to {inner}" if inner != "any value" else "mapping"
    names = {"string": "text", "object": "mapping", "null": "none", "boolean": "true or false"}
    return " or ".join(names.get(k, k) for k in ([kind] if isinstance(kind, str) else kind))


def _python() -> str:
    parts = [title("Python", "#"), "What ``import concord`` offers."]
    for name in sorted(dir(concord), key=str.lower):
        if name in ("__version__", "problems"):
            continue
        found = getattr(concord, name)
        directive = "autoclass" if isinstance(found, type) else "autofunction"
        parts.append(f".. {directive}:: concord.{name}")
        if isinstance(found, type):
            parts[-1] += "\n   :members:"
    return "\n\n".join(parts)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [".. list-table::", "   :header-rows: 1", "   :class: keys", ""]
    for row in ([*columns], *rows):
        for number, cell in enumerate(row):
            mark = "   * -" if number == 0 else "     -"
            lines.append(f"{mark} {cell}".rstrip())
    return "\n".join(lines)
