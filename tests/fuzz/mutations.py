"""Mutations of configuration files: of their structure, and of their text."""

import copy
import json
import math
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from pieces import tokens

Path = tuple[Any, ...]

ODD_TEXTS = (
    *("", " ", "..", "../../outside", "/etc/outside", "a/b", "a b", ".hidden", "-o", "~"),
    *("line\nbreak", "tab\tstop", "nul\0", "\u202eleft", "naïve", "𝔘𝔫𝔦", "e\u0301", "\ufeff"),
    *("$(touch pwned)", "; touch pwned", "`touch pwned`", "'", '"', "\\", "{paper}", "%s", "*"),
    *("yes", "no", "null", "1e-4", "010", "1:30", "0x10", "1_000", ".inf", "nan", "-1"),
    *("2021-11-20", "x" * 300, "x" * 20_000, "!!python/object:os.system"),
    *("last", "average", "all", "kind"),
)
ODD_NUMBERS = (
    *(0, 1, -1, 2, 7, 10**4, 10**6, 10**9, -(10**9), 2**31, 2**63, 10**30, 10**400),
    *(0.0, -0.0, 0.5, 1.5, -0.5, 1e-300, 1e300, -1e300, float("nan"), float("inf"), -float("inf")),
)
ODD_NESTS: tuple[Any, ...] = (
    *([], {}, [[]], [{}], {"": ""}, {"kind": {}}, {"kind": []}, {"kind": None}, [None], [1, "a"]),
    *({1: 2}, {None: 1}, {True: 1}, {0.5: 1}, {"a b": 1}, {"x\ny": 1}, {"key": 1, "values": 2}),
    *({"key": [], "values": [1]}, {"key": "a.b.c", "values": []}, {"experiment": ["x"]}),
    *([[1, 2], [3]], [[0, 1], [1, 0]], {"name": ["x"]}, {"name": 3, "kind": "linear_regression"}),
    *(list(range(500)), {str(i): i for i in range(200)}),
    {"kind": "ring", "where": "x", "agents": 2},
)


def _deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"a": value}
    return value


values = st.one_of(
    st.sampled_from((None, True, False, *ODD_NUMBERS)),
    st.sampled_from(ODD_TEXTS),
    st.sampled_from(ODD_NESTS),
    st.deferred(lambda: st.sampled_from(tokens())),
    st.integers(-(10**6), 10**6),
    st.floats(),
    st.text(max_size=12),
    st.integers(3, 60).map(_deep),
)
names = st.one_of(
    st.sampled_from(ODD_TEXTS),
    st.deferred(lambda: st.sampled_from([t for t in tokens() if isinstance(t, str)])),
    st.text(max_size=6),
    st.sampled_from((None, True, 3, 0.5)),
)


def paths(value: Any, here: Path = ()) -> list[Path]:
    """Return where every value below a document's root stands."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, item in items:
        found.append((*here, key))
        if isinstance(item, (dict, list)):
            found += paths(item, (*here, key))
    return found


def look(document: Any, path: Path) -> Any:
    for part in path:
        document = document[part]
    return document


def _delete(draw: Any, parent: Any, key: Any, root: Any) -> None:
    del parent[key]


def _rename(draw: Any, parent: Any, key: Any, root: Any) -> None:
    if isinstance(parent, dict):
        new = draw(names)
        items = [(new if k == key else k, v) for k, v in parent.items()]
        parent.clear()
        parent.update(items)
    else:
        parent.insert(draw(st.integers(0, len(parent))), parent.pop(key))


def _duplicate(draw: Any, parent: Any, key: Any, root: Any) -> None:
    if isinstance(parent, dict):
        parent[draw(names)] = copy.deepcopy(parent[key])
    else:
        parent.append(copy.deepcopy(parent[key]))


def _replace(draw: Any, parent: Any, key: Any, root: Any) -> None:
    parent[key] = copy.deepcopy(draw(values))


def _renumber(draw: Any, parent: Any, key: Any, root: Any) -> None:
    """Replace a number by one of another size or kind."""
    parent[key] = draw(st.sampled_from(ODD_NUMBERS))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _disturb(draw: Any, parent: Any, key: Any, root: Any) -> None:
    """Change a value a little, or only its type."""
    value = parent[key]
    options: list[Any] = [[value], {"kind": value}, {"key": value}, str(value)]
    if _is_number(value) and abs(value) < 1e300:
        options += [-value, value + 1, value - 1, value / 2, value * 1000, float(value)]
    if isinstance(value, str):
        options += [value.upper(), value[:-1], f" {value}", f"{value}\n", list(value)]
    if isinstance(value, list):
        options += [value[:-1], value * 2, value[::-1], {"a": value}, *value[:1]]
    if isinstance(value, dict):
        options += [list(value), list(value.values()), *list(value.values())[:1]]
    parent[key] = copy.deepcopy(draw(st.sampled_from(options)))


def _swap(draw: Any, parent: Any, key: Any, root: Any) -> None:
    other = draw(st.sampled_from(paths(root)))
    place = look(root, other[:-1])
    mine, theirs = copy.deepcopy(parent[key]), copy.deepcopy(place[other[-1]])
    place[other[-1]] = mine
    parent[key] = theirs


OPERATIONS: tuple[Callable[..., None], ...] = (
    *(_delete, _rename, _duplicate, _replace, _replace, _renumber, _disturb, _disturb, _swap),
)


# A function that returns documents or texts by name (not these themselves: hypothesis would print
# them all).
Source = Callable[[], dict[str, Any]]


@st.composite
def mutated(draw: Any, source: Source, most: int = 2, sections: tuple[str, ...] = ()) -> Any:
    """Return one of the documents, mutated in one place or a few (of these sections only)."""
    documents = source()
    document = copy.deepcopy(documents[draw(st.sampled_from(sorted(documents)))])
    for _ in range(draw(st.integers(1, most))):
        places = [p for p in paths(document) if not sections or p[0] in sections]
        if not places:
            break
        operation = draw(st.sampled_from(OPERATIONS))
        if operation is _renumber:
            places = [p for p in places if _is_number(look(document, p))] or places
        path = draw(st.sampled_from(places))
        operation(draw, look(document, path[:-1]), path[-1], document)
    return document


@st.composite
def transplanted(draw: Any, source: Source) -> Any:
    """Return a document in which part of another stands, at the same place or any other."""
    documents = source()
    first, second = (documents[draw(st.sampled_from(sorted(documents)))] for _ in range(2))
    document = copy.deepcopy(first)
    theirs = draw(st.sampled_from(paths(second)))
    same = [path for path in paths(document) if path[:1] == theirs[:1]]
    ours = draw(st.sampled_from(same or [theirs[:1]]))
    look(document, ours[:-1])[ours[-1]] = copy.deepcopy(look(second, theirs))
    return document


def dumped(document: Any) -> str:
    """Return YAML text, each section on a line of its own; faster than PyYAML, and never refuses.

    Keys are written with ``?`` so that they may be of any kind and length.
    """
    if isinstance(document, dict) and document:
        return "".join(f"? {_flow(key)}\n: {_flow(value)}\n" for key, value in document.items())
    return _flow(document) + "\n"


def encoded(document: Any) -> bytes:
    return dumped(document).encode("utf-8", "replace")  # no lone surrogates


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"? {_flow(k)} : {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}[str(value)]
    if isinstance(value, float):
        text = repr(value)  # YAML wants a point before the exponent, and the exponent's sign
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    return json.dumps(value, ensure_ascii=False)


GARBAGE = (
    *(b"\t", b"\x00", b"\xff\xfe", b"\xc3", b"\r", b":", b": ", b"- ", b"&a ", b"*a", b"!!"),
    *(b"{", b"}", b"[", b"]", b"'", b'"', b"|\n", b">-\n", b"? ", b"%", b"@", b"`", b"#", b"---\n"),
    *(b"...\n", b"<<: *a\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xf0\x9f\x92\xa3", b"=", b"~"),
    *(b"!!binary ", b"!x ", b"!!python/name:os.system ", b"!!set {a}", b"!!int x", b"<<"),
    *(b"!!timestamp 2001-99-99", b"[" * 99),
)


@st.composite
def garbled(draw: Any, source: Source) -> bytes:
    """Return one of the texts with bytes cut, doubled, moved or put in."""
    texts = source()
    text = texts[draw(st.sampled_from(sorted(texts)))]
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.sampled_from((0, 1, 2, 5, 20, 80, 10**6))))
        kind = draw(st.sampled_from(("cut", "put", "swap line", "double", "indent")))
        if kind == "cut":
            text = text[:start] + text[end:]
        elif kind == "put":
            garbage = st.one_of(st.sampled_from(GARBAGE), st.binary(max_size=4))
            text = text[:start] + draw(garbage) + text[start:]
        elif kind == "double":
            text = text[:end] + text[start:end] + text[end:]
        else:
            lines = text.splitlines(keepends=True) or [b""]
            i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
            if kind == "indent":
                lines[i] = draw(st.sampled_from((b" ", b"  ", b"\t", b"- "))) + lines[i]
            else:
                lines[i], lines[j] = lines[j], lines[i]
            text = b"".join(lines)
    return text
