"""Syntax: the digest of a file of code, and its imports, read off its syntax tree.

Left out of the digest, since no result depends on them, are comments and layout, docstrings (unless
the file has the word ``__doc__`` or ``getdoc``), blocks for type checkers, and the messages of
``ConcordError``.
"""

import ast
import atexit
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from concord.errors import ConcordError
from concord.kinds import NAME
from concord_studies.io import write_whole

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# This project's packages, which import the names of their ``_PUBLIC`` when they are asked for.
LAZY = ("concord", "concord_arena", "concord_studies")
PROBLEMS = "concord.problems"  # has the kinds of problems in the same way
IMPORTERS = {"import_module", "__import__", "optional"}  # functions that import what they are told
# To parse all files takes half a second. The key is a digest of content and reader, so that it says
# all that an entry depends on: which files the imports find is looked up anew.
CACHE = Path(".snakemake", "concord_code.json")
READER = f"{PYTHON} {NAME.pattern}".encode() + Path(__file__).read_bytes()


class Import(NamedTuple):
    """One import of a module: the dots before its name, the name, and the members; "*" for all."""

    dots: int
    module: str
    members: Sequence[str]


class Code(NamedTuple):
    """A parsed Python file: its own digest, its imports, and texts that may name kinds."""

    digest: str
    imports: Sequence[Import]
    words: Sequence[str]


def read_code(content: bytes, path: str) -> Code:
    """Parse a Python file's content, or take it from the cache. path: the file's, for errors."""
    key = hashlib.sha256(READER + content).hexdigest()
    entries, in_use = _load_cache()
    if key not in entries:
        entries[key] = _parse(content, path)
        _save_cache_at_exit()
    digest, imports, words = in_use[key] = entries[key]
    return Code(digest, [Import(dots, name, tuple(of)) for dots, name, of in imports], words)


@cache
def _load_cache() -> tuple[dict[str, Any], dict[str, Any]]:
    """Load the cache of parsed files: an earlier process's entries, and a dict for those in use."""
    try:
        return dict(json.loads(CACHE.read_text())), {}
    except (OSError, ValueError, TypeError):
        return {}, {}


@cache
def _save_cache_at_exit() -> None:
    """Have Python write the cache's entries in use when it ends; once in a process."""
    if CACHE.parent.is_dir():
        path = CACHE.absolute()
        atexit.register(lambda: write_whole(path, json.dumps(_load_cache()[1])))


def _parse(content: bytes, path: str) -> Code:
    """Parse a Python file's content, and read its digest, imports and texts off the tree."""
    try:
        reader = _Reader(b"__doc__" in content or b"getdoc" in content)
        reader.read(ast.parse(content, path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ConcordError(f"{path}: it is not Python ({error}); correct it") from None
    text = "\n".join(reader.tokens).encode(errors="surrogatepass")
    imports = [*reader.imports, *reader.find_lazy_imports()]
    is_user = any(one.module in (*LAZY, PROBLEMS) for one in imports)
    words = sorted(filter(NAME.fullmatch, reader.texts)) if is_user else []
    return Code(hashlib.sha256(text).hexdigest()[:16], imports, words)


@cache
def _choose_fields(fields: tuple[str, ...]) -> tuple[str, ...]:
    """Select the fields of a syntax node that enter the digest."""
    return tuple(f for f in fields if f not in ("ctx", "kind", "type_comment", "type_ignores"))


class _Reader:
    """A walk over a syntax tree that collects tokens for the digest, imports and texts."""

    def __init__(self, has_docstrings: bool) -> None:
        """Begin without tokens. has_docstrings: whether docstrings enter the digest."""
        self.has_docstrings = has_docstrings
        self.tokens: list[str] = []
        self.imports: list[Import] = []
        self.texts: set[str] = set()
        self.modules: dict[str, str] = {}  # by the name to which an import binds them
        self.uses: set[tuple[str, ...]] = set()  # of names, with up to two attributes

    def read(self, node: Any) -> None:
        """Add the tokens, imports and texts of a node and of all nodes below it."""
        kind, tokens = type(node), self.tokens
        if kind is ast.Attribute or kind is ast.Name:
            self._read_name(node)
            return
        if kind is ast.Raise and _find_name(getattr(node.exc, "func", None)) == "ConcordError":
            tokens.append("ConcordError")
            return
        tokens.append(kind.__name__)
        if kind is ast.Constant:
            if type(node.value) is str:
                self.texts.add(node.value)
        elif kind is ast.Import or kind is ast.ImportFrom or kind is ast.Call:
            self._add_import(node)
        for field in _choose_fields(kind._fields):
            value = getattr(node, field)
            if isinstance(value, list):
                if field in ("body", "orelse", "finalbody"):
                    value = list(self._select_statements(value))
                tokens.append(str(len(value)))
                for item in value:
                    if isinstance(item, ast.AST):
                        self.read(item)
                    else:  # names of a global, no default
                        tokens.append(repr(item))
            elif isinstance(value, ast.AST):
                self.read(value)
            else:
                tokens.append(repr(value))

    def _read_name(self, node: Any) -> None:
        """Add the tokens of a name, or of an expression with attributes, and record its use."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.append(node.attr)
            node = node.value
        self.tokens += ["Name", *(f".{name}" for name in attributes)]
        if isinstance(node, ast.Name):
            self.tokens.append(repr(node.id))
            self.uses.add((node.id, *attributes[:-3:-1]))
        else:
            self.read(node)

    def _select_statements(self, block: list[ast.stmt]) -> Iterator[ast.stmt]:
        """Yield the statements of a block that enter the digest.

        Of an ``if TYPE_CHECKING`` only its ``else`` enters.
        """
        for node in block:
            match node:
                case ast.Expr(value=ast.Constant(value=str())) if not self.has_docstrings:
                    continue
                case ast.Pass():
                    continue
                case ast.If(test=test) if _find_name(test) == "TYPE_CHECKING":
                    yield from self._select_statements(node.orelse)
                case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=test)) if (
                    _find_name(test) == "TYPE_CHECKING"
                ):
                    yield from self._select_statements(node.body)
                case _:
                    yield node

    def _add_import(self, node: Any) -> None:
        """Add the import of an import statement, or of a call of a function that imports."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                self.modules[alias.asname or top] = alias.name if alias.asname else top
                self.imports.append(Import(0, alias.name, []))
        elif isinstance(node, ast.ImportFrom):
            module, members = node.module or "", [alias.name for alias in node.names]
            self.imports.append(Import(node.level, module, members))
            for alias in node.names:
                self.modules[alias.asname or alias.name] = f"{module}.{alias.name}"
        elif _find_name(node.func) in IMPORTERS and node.args:
            name = getattr(node.args[0], "value", None)
            if isinstance(name, str) and name:
                module = name.lstrip(".")
                self.imports.append(Import(len(name) - len(module), module, []))

    def find_lazy_imports(self) -> Iterator[Import]:
        """Yield the imports of lazy names: members that a package loads when they are used."""
        for name, *attributes in sorted(self.uses):
            module = self.modules.get(name, "")
            if module in (*LAZY, PROBLEMS):
                yield Import(0, module, attributes[:1] or ["*"])
                if attributes[1:]:
                    yield Import(0, f"{module}.{attributes[0]}", attributes[1:])


def _find_name(node: ast.AST | None) -> str:
    """Return the last part of a dotted name, such as ``module.name``; "" of other expressions."""
    return str(getattr(node, "id", getattr(node, "attr", "")))
