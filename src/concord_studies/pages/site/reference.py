"""The reference: every kind with its options, every key of a study, and Python's functions.

Docstrings are reStructuredText, and are typeset as such. A plug-in's is shown as it is typed where
it is none, or holds more than prose and equations; no plug-in that nothing has used is executed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from concord import kinds
from concord.kinds import ROOMS
from concord_studies.catalog import describe_kind, first_sentence
from concord_studies.configuration.editor import study_schema
from concord_studies.home import HOME
from concord_studies.io import read_text
from concord_studies.markup import fence, index_entries, line, markdown, markdown_table

# Classes of what functions return: their paths, and what their sections document of them.
RESULTS = {
    "Trace": (
        "concord.sampling.trace.Trace",
        "to_xarray, to_arviz, plot, save, rows_after, divergence",
    ),
    "Law": ("concord.laws.exact.Law", "moments_of, plot, divergence"),
    "Answer": ("concord_arena.recommendation.Answer", "plot, read"),
    "BiasMap": ("concord_arena.biases.BiasMap", "plot"),
}
CALLS = dict(zip(RESULTS, ("sample", "law", "recommend", "bias_map"), strict=True))  # return these
OF_DATA = (
    *("linear_regression", "logistic_regression", "unknown_noise", "gamma_poisson"),
    *("tied_mixture", "quadratic", "gaussian"),
)
PYTHON = {
    "results": ("What functions return", tuple(RESULTS)),
    "runs": (
        "Sample, compute laws, repeat",
        ("sample", "law", "load", "load_run", "Sampler", "FullGradientSampler", "test"),
    ),
    "answers": (
        "Distances, comparisons, recommendations, pictures",
        ("w2", "bias2", "compare", "recommend", "bias_map", "predictive", "plot_w2"),
    ),
    "problems": (
        "Problems and networks",
        (
            *("Problem", *(f"problems.{name}" for name in OF_DATA)),
            *("from_pymc", "from_numpyro", "from_shards", "from_torch", "from_jax", "share_all"),
            *("Gaussian", "network"),
        ),
    ),
    "errors": ("Errors and warnings", ("ConcordError", "DivergenceWarning")),
}
PROJECT = 3  # folders from a study's to its project's
DOCUMENTS = 4  # that a name's section links to at most
# What a plug-in's docstring may be made of to be typeset: prose, lists, equations and code.
PROSE = {
    *("document", "paragraph", "Text", "emphasis", "strong", "inline", "literal", "rubric"),
    *("math", "math_block", "subscript", "superscript", "block_quote", "literal_block"),
    *("bullet_list", "enumerated_list", "list_item", "doctest_block"),
    *("definition_list", "definition_list_item", "term", "definition"),
}


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
            lines += [f"({kind_anchor(package, name)})=", f"## {markdown(named)}", ""]
            if package == "samplers":
                lines += index_entries([kind["name"] or name])
            lines += _docstring_lines(kind)
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
    for name, (heading, members) in PYTHON.items():
        lines = [f"# Python: {heading[0].lower()}{heading[1:]}", ""]
        lines += [part for member in members for part in _member_lines(member)]
        yield f"python-{name}", "\n".join(lines)


def kind_anchor(package: str, name: str) -> str:
    """Return the anchor of a kind in the site, such as "kind-samplers-d-ula"."""
    return f"kind-{package}-{name}".replace("_", "-")


def _docstring_lines(kind: Mapping[str, Any]) -> list[str]:
    """Return a kind's docstring as markup, or as it is typed if it is a plug-in's without it."""
    text = kind["text"] if kind["equation"] else kind["text"].replace("|", "\\|")
    text = re.sub(r"^Examples\n-+$", ".. rubric:: Examples\n", text, flags=re.M)
    if not kind["from"]:
        return fence("{eval-rst}", text)
    lines = [f"A plug-in, {markdown(_shorten_origin(kind['from']))}.", ""]
    if _is_prose(text):
        lines += fence("{eval-rst}", text)
    elif kind["text"].strip():
        typed = kind["text"].strip("\n").splitlines()
        shown = ("".join(c if c.isprintable() else " " for c in line) for line in typed)
        lines += fence("text", "\n".join(shown))
    if "options" not in kind and "metrics" not in kind:
        lines += ["No study uses it: `concord describe` says which options it takes.", ""]
    return lines


def _shorten_origin(origin: str) -> str:
    """Return the file of a plug-in from its project's folder on; a distribution as it is."""
    for study in kinds.studies:  # config/papers/<key> of a project
        project = [study, *study.parents][: PROJECT + 1][-1]
        if Path(origin).is_relative_to(project):
            return Path(origin).relative_to(project).as_posix()
    return origin


def _is_prose(text: str) -> bool:
    """Return whether a text is reStructuredText of prose, lists, equations and code alone.

    So it reads no file, leads nowhere, and makes Sphinx warn of nothing.
    """
    from docutils.core import publish_doctree  # of an extra, as Sphinx is
    from docutils.utils.math import MathError

    from concord_studies.pages.site.extension import typeset

    settings = {"report_level": 5, "file_insertion_enabled": False, "raw_enabled": False}
    parts = list(publish_doctree(text, settings_overrides=settings).findall())
    if not text.strip() or not all(type(part).__name__ in PROSE for part in parts):
        return False
    try:
        for part in parts:
            if part.tagname in ("math", "math_block"):
                typeset(part.astext(), part.tagname == "math_block")
    except MathError:
        return False
    return True


def _write_code(text: str) -> str:
    """Return a text as code, where it can be."""
    text = line(text)
    return f"`{text}`" if text and "`" not in text else markdown(text)


def _write_prose(text: str) -> str:
    """Return a text of a docstring, in which two backticks mark code."""
    parts = re.split(r"``(.+?)``", text)
    written = (_write_code(part) if n % 2 else _keep_spaces(part) for n, part in enumerate(parts))
    return "".join(written)


def _keep_spaces(text: str) -> str:
    """Return a text in Markdown with a space where it begins or ends with one."""
    return " " * text[:1].isspace() + markdown(text) + " " * (text[-1:].isspace() and text != " ")


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
    """Return the lines of the page that lists what ``import concord`` offers."""
    lines = ["# Python", "", "What `import concord` offers, and what its functions return.", ""]
    for page, (heading, members) in PYTHON.items():
        rows = [
            (_link(name), _write_prose(first_sentence(_locate(name)[1].__doc__ or "")))
            for name in members
        ]
        lines += [f"## [{heading}](python-{page}.md)", "", *markdown_table(("name", "is"), rows)]
        lines.append("")
    return [*lines, "Other problems are made of [their options](problems.md).", ""]


def _locate(name: str) -> tuple[str, Any, str]:
    """Return path, object, and documented members of a name on the pages of Python."""
    path, members = RESULTS.get(name, (f"concord.{name}", ""))
    module, _, last = path.rpartition(".")
    return path, getattr(import_module(module), last), members


def _link(name: str) -> str:
    """Return a link to the section of a name, from another page on Python."""
    page = next(page for page, (_, members) in PYTHON.items() if name in members)
    return f"[`{name}`](python-{page}.md#{name.lower().replace('.', '')})"


def _member_lines(name: str) -> list[str]:
    """Return the section of a name: signature and docstring, related names, and documents."""
    path, member, members = _locate(name)
    of_class = isinstance(member, type)
    option = f"\n   :members: {members}".rstrip() if of_class else ""
    kind, text = "class" if of_class else "function", member.__doc__ or ""
    lines = [f"## {name}", "", *fence("{eval-rst}", f".. auto{kind}:: {path}{option}")]
    words = set(re.findall(r"``(?:concord\.)?([\w.]+)", text)) - {name}
    words |= {result for result in RESULTS if re.search(rf"\b{result}\b", text)} - {name}
    related = [_link(one) for _, names in PYTHON.values() for one in names if one in words]
    pages = [f"[{title}](/docs/{page})" for page, title in _list_documents(name)]
    for head, links in (("Related", related), ("In documents", pages)):
        lines += [f"{head}: {', '.join(links)}.", ""] * bool(links)
    return lines


@cache
def _read_documents() -> dict[str, str]:
    """Return the texts of the documents, by file name."""
    return {path.name: read_text(path) for path in sorted((HOME / "docs").glob("*.md"))}


def _list_documents(name: str) -> list[tuple[str, str]]:
    """Return files and titles of documents that use a name, those that use it most first."""
    called = CALLS.get(name, name).replace(".", r"\.")
    texts = _read_documents()
    counts = {p: len(re.findall(rf"\bconcord\.{called}\b", text)) for p, text in texts.items()}
    most = sorted(filter(counts.get, counts), key=lambda page: -counts[page])[:DOCUMENTS]
    return [(p, markdown(texts[p].partition("\n")[0].removeprefix("# "))) for p in most]
