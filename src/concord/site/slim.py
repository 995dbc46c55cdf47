"""Figures in a third of the bytes: what nobody sees of matplotlib's SVG is left out.

Lines keep within a tenth of a point (0.04 mm) of where they are. Groups without attributes, names
that nothing refers to and metadata go; what many marks have, a style or a name, is written short.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

import numpy as np

SVG, HREF = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
REFERENCE = re.compile(r"url\(#([^)]*)\)")
LINES = re.compile(r"([MLz])\s*([\d.e-]*)\s*([\d.e-]*)")

STROKE = re.compile(r"M(-?[\d.]+) ?(-?[\d.]+)([lhv][-. \d]+)")


def slim(svg: str) -> str:
    """Return a figure that looks the same in a third of the bytes."""
    ElementTree.register_namespace("", SVG[1:-1])
    root = ElementTree.fromstring(svg)
    for metadata in root.findall(f"{SVG}metadata"):
        root.remove(metadata)
    names: dict[str, str] = {}
    styles: dict[str, str] = {}

    def short(found: re.Match[str] | str) -> str:
        name = found if isinstance(found, str) else found[1]
        return names.setdefault(name, f"a{len(names)}")

    for node in root.iter():
        node.text = (node.text or "").strip()
        node.tail = None
        if HREF in node.attrib:
            href = node.attrib.pop(HREF)
            node.set("href", f"#{short(href[1:])}" if href.startswith("#") else href)
        for key, text in node.items():
            if key == "d":
                node.set(key, _path(text))
            elif key == "style":
                styles.setdefault(text, f"s{len(styles)}")
                node.set("class", styles[text])
                del node.attrib[key]
            elif key in ("x", "y"):
                node.set(key, _number(float(text), 1))
            elif key == "transform":
                node.set(key, re.sub(r"translate\([^)]*\)", _translation, text))
            elif key != "id":
                node.set(key, REFERENCE.sub(lambda found: f"url(#{short(found)})", text))
    for node in root.iter():
        if (name := node.attrib.pop("id", None)) in names:
            node.set("id", names[str(name)])
    _join(root, {n.attrib["id"]: n for n in root.iter(f"{SVG}path") if "id" in n.attrib})
    _unwrap(root)
    sheet = next(root.iter(f"{SVG}style"), None)
    if sheet is not None:
        sheet.text = f"{sheet.text}{''.join(f'.{n}{{{s}}}' for s, n in styles.items())}"
    return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")


def _unwrap(node: ElementTree.Element) -> None:
    """Put the children of groups that say nothing in their place."""
    children: list[ElementTree.Element] = []
    for child in list(node):
        _unwrap(child)
        bare = child.tag in (f"{SVG}g", f"{SVG}defs") and not child.attrib
        if bare and (child.tag != f"{SVG}defs" or not len(child)):
            children += list(child)
        else:
            children.append(child)
    node[:] = children


def _join(node: ElementTree.Element, marks: dict[str, ElementTree.Element]) -> None:
    """Write a run of equal marks that are mere strokes, such as ticks, as one path."""
    children: list[ElementTree.Element] = []
    for child in list(node):
        _join(child, marks)
        mark = marks.get(child.get("href", "#")[1:]) if child.tag == f"{SVG}use" else None
        stroke = STROKE.fullmatch(mark.get("d", "")) if mark is not None else None
        if mark is None or stroke is None or "transform" in child.attrib:
            children.append(child)
            continue
        start = [
            float(child.get(k, 0)) + float(at) for k, at in zip("xy", stroke.groups(), strict=False)
        ]
        line = f"M{_numbers(start, 1)}{stroke[3]}"
        rest = {k: v for k, v in child.items() if k not in ("x", "y", "href")}
        rest.setdefault("class", mark.get("class", ""))
        last = children[-1] if children else None
        if last is not None and last.get("d") and {**last.attrib, "d": ""} == {**rest, "d": ""}:
            last.attrib["d"] += line
        else:
            children.append(ElementTree.Element(f"{SVG}path", {**rest, "d": line}))
    node[:] = children


def _translation(found: re.Match[str]) -> str:
    ends = re.findall(r"-?[\d.]+", found[0])
    return f"translate({_numbers(map(float, ends), 2)})"


def _path(text: str) -> str:
    """Return a path whose straight lines are steps in tenths of a point."""
    if not re.fullmatch(r"[MLz\s\d.e-]*", text):
        parts = re.findall(r"([A-Za-z])([^A-Za-z]*)", text)
        return "".join(f"{kind}{_numbers(map(float, ends.split()), 2)}" for kind, ends in parts)
    found = []
    for part in re.findall(r"M[^M]*", text):
        ends = [(float(x), float(y)) for kind, x, y in LINES.findall(part) if kind != "z"]
        corners = np.rint(10 * _simplified(np.array(ends))).astype(int)
        steps = [step for step in np.diff(corners, axis=0).tolist() if any(step)]
        found.append(f"M{_numbers(corners[0] / 10, 1)}")
        last = ""
        for x, y in steps:
            kind = "v" if not x else "h" if not y else "l"
            step = _numbers([v / 10 for v in (x, y) if kind == "l" or v], 1)
            found.append(step if kind == last and step[0] == "-" else f"{kind}{step}")
            if kind == last and step[0] != "-":
                found[-1] = f" {step}"
            last = kind
        found.append("z" if part.rstrip().endswith("z") else "")
    return "".join(found)


def _simplified(corners: np.ndarray, within: float = 0.06) -> np.ndarray:
    """Return the corners of a line without those that it passes closely (Ramer, Douglas, Peucker).

    With the rounding to tenths no corner is farther from the line than a tenth of a point.
    """
    kept = np.zeros(len(corners), dtype=bool)
    kept[[0, -1]] = True
    stretches = [(0, len(corners) - 1)]
    while stretches:
        first, last = stretches.pop()
        if last - first < 2:
            continue
        along = corners[last] - corners[first]
        between = corners[first + 1 : last] - corners[first]
        length = float(along @ along)
        part = np.clip(between @ along / length, 0, 1) if length else np.zeros(len(between))
        away = np.hypot(*(between - part[:, None] * along).T)
        middle = first + 1 + int(away.argmax())
        if away.max() > within:
            kept[middle] = True
            stretches += [(first, middle), (middle, last)]
    return corners[kept]


def _numbers(values: Iterable[float], digits: int) -> str:
    """Return numbers as an SVG may have them: .5-1.5 for 0.5, -1.5."""
    text = " ".join(_number(value, digits) for value in values)
    return text.replace(" -", "-")


def _number(value: float, digits: int) -> str:
    text = f"{round(value, digits) + 0.0:g}"  # no -0
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text
