"""expect: commit a ledger's verdicts as the expected ones, and update the pages that show them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from concord.errors import ConcordError
from concord_studies.claims import ledger, verdicts
from concord_studies.claims.ledger import Row
from concord_studies.io import dump_yaml, read_text, write_whole
from concord_studies.pages.findings import half_page


def expect(ledger_path: Path, expected_path: Path, pages: Path) -> None:
    """Write a ledger's verdicts as the expected ones, and update the pages that show them.

    pages: the folder of the documents with scoreboard and findings (``replace_parts``). Committed
    verdicts stay for studies that the ledger does not hold, and for claims not run here.
    """
    rows = ledger.read_rows(ledger_path)
    if ledger.is_smoke(rows):
        raise ConcordError(f"{ledger_path} is of smoke scale; commit verdicts of scale paper")
    judged = {row["paper"] for row in rows}
    committed = ledger.expected_rows(expected_path)
    before = {ledger.verdict_key(row): row["verdict"] for row in committed}
    rows = [_keep_committed(row, before) for row in rows]
    others = ledger.committed_values(expected_path).items()
    values: dict[tuple[str, ...], Any] = {at: text for at, text in others if at[0] not in judged}
    for row in rows:
        case = (row["case"],) if row["case"] else ()
        values[row["paper"], row["claim"], row["reading"], *case] = row["verdict"]
    head = "# Verdicts at paper scale, seed 1; written by `concord expect results/claims.csv`.\n"
    write_whole(expected_path, head + dump_yaml(_nest(values.items())))
    universes = _nest(ledger.expected_universes(expected_path).items())
    universes |= _nest(ledger.robustness_by_claim(rows).items())
    if universes:
        head = "# What verdicts depend on; written by `concord expect results/claims.csv`.\n"
        path = expected_path.with_name("expected_multiverse.yaml")
        write_whole(path, head + dump_yaml(universes))
    parts = {"scoreboard": ledger.scoreboard(ledger.expected_rows(expected_path))}
    for paper in judged:
        paper_rows = [row for row in rows if row["paper"] == paper]
        parts[f"findings of {paper}"] = half_page(paper_rows)
    for page in sorted(pages.glob("*.md")):
        text = read_text(page)
        if (new := replace_parts(text, parts)) != text:
            write_whole(page, new)


def _keep_committed(row: Row, before: Mapping[tuple[str, ...], str]) -> Row:
    """Return a row with the verdict to commit: the committed one if the row's decides less.

    It decides less if its runs were not made, or if it depends on the seed and seeds were not
    varied. before: the committed verdicts, by key.
    """
    was = before.get(ledger.verdict_key(row), verdicts.NOT_RUN)
    if row["verdict"] == verdicts.NOT_RUN != was:
        return {**row, "verdict": was, "ours": "", "number": ""}
    return {**row, "verdict": was} if was == verdicts.SEED and not row["multiverse"] else row


def replace_parts(text: str, parts: Mapping[str, Sequence[str]]) -> str:
    """Return a page's text with the lines of some parts replaced; two marks enclose a part.

    ``<!-- scoreboard -->`` begins a part and ``<!-- end of scoreboard -->`` ends it.
    """
    for name, lines in parts.items():
        start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        if start in text:
            before, rest = text.split(start, 1)
            if end not in rest:
                raise ConcordError(f"the page has no end of the {name}; add {end}")
            text = "\n".join([before + start, "", *lines, "", end + rest.split(end, 1)[1]])
    return text


def _nest(values: Iterable[tuple[Sequence[str], Any]]) -> dict[str, Any]:
    """Return nested mappings from pairs of a key, a sequence of names, and a value."""
    nested: dict[str, Any] = {}
    for (*outer, last), text in values:
        place = nested
        for key in outer:
            place = place.setdefault(key, {})
        place[last] = text
    return nested
