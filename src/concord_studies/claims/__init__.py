"""Claims and their verdicts; ``judge`` decides about anybody's numbers by the ledger's rules.

A number is a mapping with ``value``, its 95 % interval ``lo`` and ``hi``, and ``trials``, how many
independent trials are behind it (0: the number is exact and needs no interval). The error of a run
that diverged is infinite; what is not a number is not judged. Its other keys say what it is of,
such as the method or the data set; ``agent`` and ``iteration`` are two of them.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from concord.errors import ConcordError, require_known, short
from concord.options import build
from concord_studies.claims import checks, verdicts
from concord_studies.claims.claim import apply_rule, rules
from concord_studies.io import write_whole
from concord_studies.markup import format_csv
from concord_studies.results import Measured

Rows = Sequence[Mapping[str, Any]]
NUMBERS = ("value", "lo", "hi", "trials")


@dataclass(frozen=True)
class Verdict:
    """What a rule decides about a claim.

    says: the claim, in words.
    rule, asks: the rule's name, and when it is met.
    verdict, reason: "holds", "does not hold", "inconclusive: ..." or "not run", and why.
    number: the number on which it turns, with its interval and what the rule asks of it.
    """

    says: str
    rule: str
    asks: str
    verdict: str
    reason: str
    number: str


def judge(rule: str, *, says: str = "", what: str = "number", **terms: Any) -> Verdict:
    """Judge numbers by a rule of the ledger, or by a kind of check; return the verdict.

    rule: "nearer", "comparable", ... (docs/ledger.md), or a kind of check that is called like none
    of them: "value", "trend", ...
    says: the claim, in words. what: what the numbers are, such as "accuracy".
    terms: the check's options by name (config/README.md). A quantity is a list of numbers, each a
    mapping with value, lo, hi and trials, and with labels that say what it is of. All others are
    plain values: ``judge("value", quantity=[{"value": 1.9, "lo": 1.8, "hi": 2.0, "trials": 50,
    "method": "DE-SGLD"}], printed=2.0, tolerance=0.5)``.

    Intervals are widened so that they hold jointly at 95 %. Numbers of two quantities are paired by
    the labels that vary on both sides. A ConcordError names a rule or an option that does not
    exist, or a value that is not a number.
    """
    require_known("rule", rule, [*rules(), *checks.KINDS], "judge")
    tables = {name: rows for name, rows in terms.items() if _is_quantity(rows)}
    stated: dict[str, Any] = {**terms, **{name: {"experiment": name} for name in tables}}
    if rule in rules():
        stated = apply_rule(stated, rule, "judge")
    else:
        stated["kind"] = rule
    for name in tables:
        stated[name] = {"metric": what, "at": "all", **stated[name]}
    check = build(checks.Check, stated, "judge")
    runs = {name: _build_runs(rows, stated[name]["metric"]) for name, rows in tables.items()}
    reads = [(of, runs[of.experiments[0]]) for of in checks.quantities(check)]
    judgement = verdicts.judge(check, reads, lambda run: run)
    asks = rules()[rule].rule if rule in rules() else str(type(check).__doc__).splitlines()[0]
    return Verdict(says, rule, asks, judgement.verdict, judgement.ours, judgement.number)


def write(judged: Sequence[Verdict], path: Path | str) -> None:
    """Write verdicts as a table (.csv) or as a list of mappings (.json)."""
    path = Path(path)
    rows = [asdict(verdict) for verdict in judged]
    texts = {
        ".csv": lambda: format_csv([field.name for field in fields(Verdict)], rows),
        ".json": lambda: json.dumps(rows, indent=2, ensure_ascii=False) + "\n",
    }
    if path.suffix not in texts:
        raise ConcordError(f"{path}: verdicts are written as .csv or .json")
    write_whole(path, texts[path.suffix]())


def _is_quantity(value: Any) -> bool:
    """Return whether an option of a check is a list of numbers."""
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], Mapping)


def _build_runs(rows: Rows, metric: str) -> list[Measured]:
    """Return rows of numbers as runs with one metric: rows with the same labels are one run."""
    import pandas  # a quarter of a second

    tables: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}
    for row in rows:
        value, lo, hi = (_read_number(row, name, math.nan) for name in ("value", "lo", "hi"))
        trials = _read_number(row, "trials", math.inf)
        place = {
            "agent": str(row.get("agent", "")),
            "iteration": int(_read_number(row, "iteration", 0)),
        }
        labels = tuple((k, str(v)) for k, v in row.items() if k not in (*NUMBERS, *place))
        numbers = {"value": value, "lo": lo, "hi": hi, "trials": trials}
        tables.setdefault(labels, []).append({"metric": metric, **place, **numbers})
    return [
        Measured(
            {
                "experiment": "table",
                "run": ", ".join(value for _, value in labels) or "row",
                "labels": dict(labels),
            },
            pandas.DataFrame(table),
        )
        for labels, table in tables.items()
    ]


def _read_number(row: Mapping[str, Any], name: str, absent: float) -> float:
    """Return a row's number under ``name``; ``absent`` where the row has none or an empty text."""
    stated = row.get(name)
    if stated in (None, ""):
        return absent
    try:
        return float(stated)
    except (TypeError, ValueError):
        raise ConcordError(f"judge: {name} is {short(stated)}, and no number") from None
