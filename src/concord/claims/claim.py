"""A claim: one sentence of a paper, with a check for each of the cases that it speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import field
from msgspec.structs import replace

from concord.claims import checks
from concord.claims.rules import ruled, rules
from concord.errors import ConcordError
from concord.options import Options, build


class Case(Options):
    """What is judged, in one of a claim's cases; the check's options depend on its kind."""

    kind: Annotated[Literal[tuple(checks.KINDS)], "check kind"]  # type: ignore[valid-type]
    check: Annotated[dict[str, Any], "options of the check kind"]
    reason: Annotated[str, "why this rule and tolerance"]
    printed: Annotated[str, "what is printed, as it is printed"] = ""
    readings: Annotated[tuple[str, ...], "readings it is judged in"] = ()

    def checker(self, where: str) -> Any:
        """Return the check with its options."""
        return build(checks.KINDS[self.kind], self.check, f"{where}.check")


class Claim(Options):
    """A sentence of a paper: what its cases share, and the cases by label."""

    where: Annotated[str, "figure, table, theorem or section of the paper"]
    says: Annotated[str, "what it says, in our words"]
    rule: Annotated[str | None, "rule of rules.yaml, which the same words have in all papers"] = (
        None
    )
    readings: Annotated[
        tuple[str, ...], "readings it is judged in; none: those that its runs follow"
    ] = ()
    figure: Annotated[str | None, "figure or table of ours that shows it"] = None
    cases: Annotated[
        dict[str, Case], "what is judged, by label; one without a label, or several"
    ] = field(default_factory=dict)


def case(mapping: Mapping[str, Any], rule: str | None, where: str) -> Case:
    """Return a case as a paper's file has it, joined with its claim's rule, checked."""
    check, reasons = dict(mapping["check"]), [mapping.get("reason")]
    if rule is not None:
        check = ruled(check, rule, where)
        reasons.insert(0, rules()[rule].rule)
    if "kind" not in check:
        raise ConcordError(f"{where}.check: the key 'kind' is missing; add it, or name a rule")
    if not any(reasons):
        raise ConcordError(f"{where}: the key 'reason' is missing; add it, or name a rule")
    kind = check.pop("kind")
    reason = "; ".join(reason for reason in reasons if reason)
    found: Case = build(Case, {**mapping, "kind": kind, "check": check, "reason": reason}, where)
    checker = found.checker(where)
    checks.require_curves(checker, f"{where}.check")
    if "printed" in mapping["check"] and not found.printed:
        found = replace(found, printed=f"{checker.printed:.6g}")
    return found
