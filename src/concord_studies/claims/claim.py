"""A claim: one sentence of a paper, its cases, each with a check, and the rules of all claims.

The same words are judged by the same rule: rules.yaml has them, and docs/ledger.md shows them.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta
from msgspec.structs import replace

from concord.errors import ConcordError, require_known, short
from concord.options import Options, Some, build
from concord_studies.claims import checks
from concord_studies.io import build_file, load_yaml
from concord_studies.runs.run import Run

# As many find a sentence in print.
FirstWords = Annotated[str, Meta(pattern=r"^\S+( \S+){0,7}$(?!\n)", title="at most eight words")]
RULES = Path(__file__).with_name("rules.yaml")


class Rule(Options):
    """A rule for certain words of papers, such as "comparable", and the check that it sets."""

    words: Annotated[str, "words of a paper that it is for"]
    rule: Annotated[str, "when they hold"]
    check: Annotated[dict[str, Any], "what the checks of its claims share"]


@cache
def rules() -> dict[str, Rule]:
    """Return the rules of rules.yaml, each for certain words of papers, by name."""
    by_name: dict[str, Rule] = build_file(dict[str, Rule], load_yaml(RULES), RULES)
    return by_name


def apply_rule(check: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    """Return a check joined with the keys that its rule sets.

    A ConcordError if there is no such rule, or the check changes what it sets.
    """
    require_known("rule", name, rules(), f"{where}.rule")
    return _join_checks(rules()[name].check, check, name, f"{where}.check")


def _join_checks(
    rule: Mapping[str, Any], check: Mapping[str, Any], name: str, where: str
) -> dict[str, Any]:
    """Return a rule's mapping joined with a check's own; refuse a key set twice differently."""
    joined = {**rule, **check}
    for key in rule.keys() & check.keys():
        place = f"{where}.{key}"
        if isinstance(rule[key], Mapping) and isinstance(check[key], Mapping):
            joined[key] = _join_checks(rule[key], check[key], name, place)
        elif rule[key] != check[key]:
            raise ConcordError(
                f"{place}: the rule {name} sets it to {short(rule[key])}; leave it out, "
                "or choose another rule"
            )
    return joined


class Because(Options):
    """The reasons for a claim's verdict at paper scale, one for each that it may be.

    ``{worst}`` is the number that decides, ``{by}`` how far it fails, ``{failing}`` of ``{cases}``
    how often.
    """

    holds: Annotated[str, "why it holds, in a sentence"] = ""
    fails: Annotated[str, "why it does not hold"] = ""
    open: Annotated[str, "why it is open"] = ""


class Claim(Options):
    """A claim of a study: its sentence, source, rule and whatever else its cases share."""

    where: Annotated[str, "figure, table, theorem or section of the paper"]
    says: Annotated[str, "what it says, in our words"]
    source: Annotated[
        Literal["print", "recorded", "code", "abstract", "summary"],
        "what says so: the print; numbers that the authors recorded, their code, or the abstract, "
        "where no more was read; or somebody's summary",
    ] = "print"
    rule: Annotated[
        Literal[tuple(rules())] | None,  # type: ignore[valid-type]
        "how these words are judged in all papers (docs/ledger.md)",
    ] = None
    readings: Annotated[
        Some[str] | None, "readings it is judged in; none: those that its runs follow"
    ] = None
    figure: Annotated[str | None, "figure or table of ours that shows it"] = None
    words: Annotated[
        FirstWords | Some[FirstWords] | None, "the first words of the sentence in print, or of each"
    ] = None
    ours: Annotated[bool, "no sentence of the paper says so: it is our own"] = False
    because: Annotated[Because, "why the verdict is what it is; none: nothing is said"] = Because()


class Case(Options):
    """A check to judge in one case of a claim and one reading, with the runs it reads."""

    check: Annotated[checks.Check, "what is compared, and how"]
    reason: Annotated[str, "why this rule and tolerance"]
    printed: Annotated[str, "what is printed, as it is printed"] = ""
    reads: tuple[tuple[Any, Any], ...] = ()  # every Quantity of the check, and its list of runs

    @property
    def runs(self) -> list[Run]:
        """Return the runs of all quantities."""
        return [run for _, runs in self.reads for run in runs]


def build_case(mapping: Mapping[str, Any], rule: str | None, where: str) -> Case:
    """Return a case from a study's mapping, joined with its claim's rule and checked."""
    check, reasons = mapping["check"], [mapping.get("reason")]
    if rule is not None:
        check = apply_rule(check, rule, where)
        reasons.insert(0, rules()[rule].rule)
    if not any(reasons):
        raise ConcordError(f"{where}: the key 'reason' is missing; add it, or name a rule")
    reason = "; ".join(reason for reason in reasons if reason)
    case: Case = build(Case, {**mapping, "check": check, "reason": reason}, where)
    stated = "printed" in mapping["check"]  # by the paper, not by the rule
    if stated and isinstance(case.check, checks.Value) and not case.printed:
        case = replace(case, printed=f"{case.check.printed:.6g}")
    return case
