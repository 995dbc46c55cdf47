"""Rules that the claims of all papers share: the same words are judged by the same rule.

They are written in rules.yaml, and shown in docs/ledger.md.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from concord.errors import ConcordError, nearest, short
from concord.options import Options
from concord_studies.io import build_file, load_yaml

PATH = Path(__file__).with_name("rules.yaml")


class Rule(Options):
    """The check by which certain words of a paper are judged."""

    words: Annotated[str, "words of a paper that it is for"]
    rule: Annotated[str, "when they hold"]
    check: Annotated[dict[str, Any], "what the checks of its claims share"]


@cache
def rules() -> dict[str, Rule]:
    """Return the rules for certain words of papers, by name."""
    found: dict[str, Rule] = build_file(dict[str, Rule], load_yaml(PATH), PATH)
    return found


def ruled(check: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    """Return a check joined with the keys that its rule sets.

    A ConcordError if there is no such rule, or the check changes what it sets.
    """
    if name not in rules():
        raise ConcordError(
            f"{where}.rule: there is no rule {short(name)}; {nearest(name, rules())}"
        )
    return _join(rules()[name].check, check, name, f"{where}.check")


def _join(rule: Mapping[str, Any], own: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    """Return a rule's mapping joined with a check's own; refuse a key set twice differently."""
    joined = {**rule, **own}
    for key in rule.keys() & own.keys():
        place = f"{where}.{key}"
        if isinstance(rule[key], Mapping) and isinstance(own[key], Mapping):
            joined[key] = _join(rule[key], own[key], name, place)
        elif rule[key] != own[key]:
            raise ConcordError(
                f"{place}: the rule {name} sets it to {short(rule[key])}; leave it out, "
                "or choose another rule"
            )
    return joined
