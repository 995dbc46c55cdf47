"""Claims that differ in a few words: written once with ``for``, one claim for each of its cells.

.. code-block:: yaml

    ring_{agents}_sooner_to_{level}:
      for:
        agents: [5, 20]
        level: [{ level: half, threshold: 0.5 }, { level: "1", threshold: 1.0 }]
      says: On a ring of {agents} D-ADMMS comes within W2 = {threshold} first.

The axes multiply. A value is that of the placeholder named like its axis; a mapping gives several
placeholders, which change together. A text that is a placeholder and nothing else becomes the value
with its type; a key whose value is null is left out, and so is a mapping of nothing else.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord.studies.sweep import MOST_RUNS, label_text, merge

ID = re.compile(r"[A-Za-z0-9]\w{0,99}", re.ASCII)
PLACEHOLDER = re.compile(r"\{(\w+)\}")


def members(claims: Mapping[str, Any], where: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return every claim by id: the key it is written under, and the claim itself.

    Raises
    ------
    ConcordError
        Naming ``where`` and the key below it.
    """
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for key, claim in claims.items():
        place = f"{where}.{key}"
        cells = _cells(claim["for"], f"{place}.for") if "for" in claim else [None]
        written = {name: value for name, value in claim.items() if name != "for"}
        for words in cells:
            name, member = (key, written) if words is None else _fill([key, written], words, place)
            if not ID.fullmatch(name):
                raise ConcordError(
                    f"{place}: {short(name)} is no id; use letters, digits and _ (1 to 100)"
                )
            if name in found:
                raise ConcordError(
                    f"{place}: two claims have the id {short(name)}; name what differs in the id"
                )
            check = _of_both(member["check"], f"{place}.check")
            found[name] = key, {**member, "kind": check.pop("kind"), "check": check}
    return found


def _cells(axes: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """Return the placeholders and their values, cell by cell."""
    if math.prod(map(len, axes.values())) > MOST_RUNS:
        raise ConcordError(f"{where}: it has more than {MOST_RUNS} cells; shorten an axis")
    rows = [
        [value if isinstance(value, dict) else {axis: value} for value in values]
        for axis, values in axes.items()
    ]
    return [
        {name: value for part in parts for name, value in part.items()}
        for parts in itertools.product(*rows)
    ]


def _fill(value: Any, words: Mapping[str, Any], where: str) -> Any:
    """Return a value with its placeholders filled in."""
    if isinstance(value, dict):
        filled = {key: _fill(item, words, f"{where}.{key}") for key, item in value.items()}
        kept = {key: item for key, item in filled.items() if item is not None}
        return kept or (None if value else kept)
    if isinstance(value, list):
        return [_fill(item, words, where) for item in value]
    if not isinstance(value, str):
        return value
    unknown = [name for name in PLACEHOLDER.findall(value) if name not in words]
    if unknown:
        raise ConcordError(
            f"{where}: there is no placeholder {unknown[0]!r}; {nearest(unknown[0], words)}"
        )
    alone = PLACEHOLDER.fullmatch(value)
    return words[alone[1]] if alone else PLACEHOLDER.sub(lambda m: label_text(words[m[1]]), value)


def _of_both(check: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a check with what its quantities share, its ``both``, merged into each of them."""
    check = dict(check)
    shared = check.pop("both", {})
    if not isinstance(shared, Mapping):
        raise ConcordError(f"{where}.both: {short(shared)} is not a mapping of keys of a quantity")
    return {
        key: merge(shared, value) if isinstance(value, Mapping) else value
        for key, value in check.items()
    }
