"""The reference: every kind with its options, every key of a study, and Python's functions.

Docstrings are reStructuredText, and stand in the pages as such. A plug-in's is shown as it is
typed, and no plug-in that nothing has used is executed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import concord
from concord import kinds
from concord.kinds import ROOMS
from concord_studies.catalog import describe_kind
from concord_studies.configuration.editor import study_schema
from concord_studies.markup import fence, line, markdown, markdown_table


def pages(pictures: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the pages of the reference.

    pictures: kind of figure: path of a picture of one, from the site's sources.
    """
    for package, about in ROOMS.items():
        lines = [
            f"# {package.replace('_', ' ').capitalize()}",
            "",
            f"A {about.noun} is chosen by its kind, which is what you type.",
            "",
        ]
        for name in kinds.names(package):
            kind = describe_kind(package, name, execute=False)
            named = f"{kind['name']} ({name})" if kind["name"] else name
            lines += [f"## {markdown(named)}", "", *_docstring_lines(kind)]
            if package == "figures" and name in pictures:
                alt = f':alt: "A figure of kind {name}"'
                lines += fence(f"{{image}} {pictures[name]}", alt)
            if kind.get("metrics"):
                lines += [f"Metrics: {', '.join(map(_write_code, kind['metrics']))}.", ""]
            if kind.get("options"):
                columns = ("option", "type", "default", "meaning")
                lines += [*markdown_table(columns, map(_option_row, kind["options"])), ""]
        yield package, "\n".join(lines)
    yield "study", "\n".join(_study_page())
    yield "python", "\n".join(_python_page())


def _docstring_lines(kind: Mapping[str, Any]) -> list[str]:
    """Return a kind's docstring: as markup if it is built in, else as it is typed."""
    if not kind["from"]:
        text = kind["text"] if kind["equation"] else kind["text"].replace("|", "\\|")
        text = re.sub(r"^Examples\n-+$", ".. rubric:: Examples\n", text, flags=re.M)
        return fence("{eval-rst}", text)
    lines = [f"A plug-in, {markdown(kind['from'])}.", ""]
    if kind["text"].strip():
        typed = kind["text"].strip("\n").splitlines()
        shown = ("".join(c if c.isprintable() else " " for c in line) for line in typed)
        lines += fence("text", "\n".join(shown))
    if "options" not in kind and "metrics" not in kind:
        lines += ["No study uses it: `concord describe` says which options it takes.", ""]
    return lines


def _write_code(text: str) -> str:
    """Return a text as code, where it can be."""
    text = line(text)
    return f"`{text}`" if text and "`" not in text else markdown(text)


def _write_prose(text: str) -> str:
    """Return a text of a docstring, in which two backticks mark code."""
    parts = re.split(r"``(.+?)``", text)
    return "".join(_write_code(part) if n % 2 else markdown(part) for n, part in enumerate(parts))


def _option_row(option: Mapping[str, Any]) -> Sequence[str]:
    """Return the row of an option, {name, type, ...}, for the table of a kind's options."""
    default = option.get("default", "")
    text = "none" if default is None else str(default)
    means = _write_prose(option["means"])
    return _write_code(option["name"]), markdown(option["type"]), _write_code(text), means


def _study_page() -> list[str]:
    """Return the lines of the page on every key of a study's files, from their schema."""
    schema = study_schema(execute=False)
    lines = [
        "# Keys of a study",
        "",
        "Every key of the files in `config/papers/<key>` and `config/studies/<key>`, as the schema "
        "for editors has it (`concord schema study`).",
        "",
        "## Sections",
        "",
        *_keys_table(schema),
    ]
    for name, part in schema["$defs"].items():
        if part.get("properties"):
            lines += [f"## {markdown(part.get('title', name))}", ""]
            lines += [_write_prose(part.get("description", "")), "", *_keys_table(part)]
    return lines


def _keys_table(part: Mapping[str, Any]) -> list[str]:
    """Return a table of the keys of a mapping, from its JSON Schema."""
    required = part.get("required", ())
    rows = [
        (
            _write_code(key) + (" (required)" if key in required else ""),
            _describe_type(value),
            _write_prose(value.get("description", "")),
        )
        for key, value in part["properties"].items()
    ]
    return [*markdown_table(("key", "what it holds", "meaning"), rows), ""]


def _describe_type(value: Mapping[str, Any]) -> str:
    """Return the type of a value of a JSON Schema in words, such as "list of text"."""
    if "$ref" in value:
        return markdown(value["$ref"].rpartition("/")[2])
    if "enum" in value:
        return ", ".join(_write_code(str(choice)) for choice in value["enum"])
    if "const" in value:
        return _write_code(str(value["const"]))
    for several in ("anyOf", "oneOf", "allOf"):
        if several in value:
            texts = dict.fromkeys(_describe_type(part) for part in value[several])
            return ("; " if several == "allOf" else " or ").join(texts)
    kind = value.get("type", "any value")
    if kind == "array":
        items = value.get("items") or (value.get("prefixItems") or [{}])[0]
        return f"list of {_describe_type(items)}" if isinstance(items, dict) else "list"
    if kind == "object" and isinstance(value.get("additionalProperties"), dict):
        inner = _describe_type(value["additionalProperties"])
        return f"mapping to {inner}" if inner != "any value" else "mapping"
    names = {"string": "text", "object": "mapping", "null": "none", "boolean": "true or false"}
    return " or ".join(names.get(k, k) for k in ([kind] if isinstance(kind, str) else kind))


def _python_page() -> list[str]:
    """Return the lines of the page of ``import concord``: its classes and functions."""
    lines = ["# Python", "", "What `import concord` offers.", ""]
    for name in sorted(set(dir(concord)) - {"__version__", "problems"}, key=str.lower):
        kind = "class" if isinstance(getattr(concord, name), type) else "function"
        members = "\n   :members:" if kind == "class" else ""
        lines += fence("{eval-rst}", f".. auto{kind}:: concord.{name}{members}")
    return lines
