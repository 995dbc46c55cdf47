"""Claims that differ in a few words, written once, and the cases that one of them speaks of.

.. code-block:: yaml

    ring_{points}_sooner:
      for: { points: [50, 200] }
      cases:
        agents: [5, 20]
        level: [{ level: half, threshold: 0.5 }, { level: "1", threshold: 1.0 }]
      says: On rings with {points} points each D-ADMMS comes near the posterior first.
      check: { kind: sooner, threshold: "{threshold}", ... }

``for`` gives one claim for each of its cells, each a sentence of the paper. ``cases`` are the sub-
cases of one sentence, called by their labels (``agents=5+level=half``): a claim holds if all of
them do. Axes multiply. A value is that of the placeholder named like its axis; a mapping gives
several placeholders, which change together. Placeholders of numbers (``REASON_NUMBERS``) stay. A
text that is a placeholder and nothing else becomes the value with its type; a key whose value is
null is left out, and so is a mapping of nothing else.
"""

import itertools
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from concord.errors import ConcordError, nearest, short
from concord.options import build
from concord_studies.claims.claim import Case, Claim, build_case
from concord_studies.claims.verdicts import REASON_NUMBERS
from concord_studies.configuration.sweep import label_text, merge

ID = re.compile(r"[A-Za-z0-9]\w{0,99}", re.ASCII)
PLACEHOLDER = re.compile(r"\{(\w+)\}")


class ClaimWithCases(NamedTuple):
    """A claim with its key in the study's file, and its cases by label."""

    key: str
    claim: Claim
    cases: dict[str, Case]


def read_claims(claims: Mapping[str, Any], where: str) -> dict[str, ClaimWithCases]:
    """Return the claims of a study's mapping by id, with their cases.

    A ConcordError names ``where`` and the key below it.
    """
    claims_by_id: dict[str, ClaimWithCases] = {}
    for key, entry in claims.items():
        place = f"{where}.{key}"
        claim = {name: value for name, value in entry.items() if value is not None}
        shared = {name: claim[name] for name in Claim.__struct_fields__ if name in claim}
        case_keys = {n: v for n, v in claim.items() if n not in (*shared, "for", "cases")}
        template = "for" in claim or "cases" in claim  # else braces are just braces
        for _, words in _expand_axes(claim.get("for", {})):
            name, filled = _fill_in([key, shared], words, place) if template else (key, shared)
            if not ID.fullmatch(name):
                raise ConcordError(
                    f"{place}: {short(name)} is no id; use letters, digits and _ (1 to 100)"
                )
            if name in claims_by_id:
                raise ConcordError(
                    f"{place}: two claims have the id {short(name)}; name what differs in the id"
                )
            stated = claims_by_id[name] = ClaimWithCases(key, build(Claim, filled, place), {})
            for label, more in _expand_axes(claim.get("cases", {})):
                if label in stated.cases:
                    raise ConcordError(
                        f"{place}.cases: two cases are {label}; name what differs like its axis"
                    )
                case = _fill_in(case_keys, {**words, **more}, place) if template else case_keys
                both = case["check"].get("both", {})
                check = {
                    key: merge(both, value) if isinstance(value, Mapping) else value
                    for key, value in case["check"].items()
                    if key != "both"
                }
                stated.cases[label] = build_case({**case, "check": check}, stated.claim.rule, place)
    return claims_by_id


def _expand_axes(axes: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the label of every cell of axes, with the placeholders and their values."""
    rows = [
        [value if isinstance(value, dict) else {axis: value} for value in values]
        for axis, values in axes.items()
    ]
    cells = []
    for parts in itertools.product(*rows):
        words = {name: value for part in parts for name, value in part.items()}
        label = "+".join(
            f"{axis}={label_text(part.get(axis, next(iter(part.values()), '')))}"
            for axis, part in zip(axes, parts, strict=True)
        )
        cells.append((label, words))
    return cells


def _fill_in(value: Any, words: Mapping[str, Any], where: str) -> Any:
    """Return a stated value, with its placeholders replaced by words."""
    if isinstance(value, dict):
        filled = {key: _fill_in(item, words, f"{where}.{key}") for key, item in value.items()}
        present = {key: item for key, item in filled.items() if item is not None}
        return present or (None if value else present)
    if isinstance(value, list):
        return [_fill_in(item, words, where) for item in value]
    if not isinstance(value, str):
        return value
    unknown = [n for n in PLACEHOLDER.findall(value) if n not in (*words, *REASON_NUMBERS)]
    if unknown:
        raise ConcordError(
            f"{where}: there is no placeholder {unknown[0]!r}; {nearest(unknown[0], words)}"
        )
    alone = PLACEHOLDER.fullmatch(value)
    if alone and alone[1] in words:
        return words[alone[1]]
    return PLACEHOLDER.sub(lambda m: label_text(words[m[1]]) if m[1] in words else m[0], value)
