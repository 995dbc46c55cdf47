"""expect: commit a ledger's verdicts as the expected ones, and update the pages that show them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from concord.errors import ConcordError
from concord_studies.claims import ledger, verdicts
from concord_studies.claims.claim import Claim
from concord_studies.claims.ledger import Row
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.io import dump_yaml, read_text, write_whole
from concord_studies.pages.claims import state_reason
from concord_studies.pages.findings import half_page


def expect(ledger_path: Path, expected_path: Path, pages: Path) -> None:
    """Write a ledger's verdicts as the expected ones, and update the pages that show them.

    pages: the folder of the documents with scoreboard and findings (``replace_parts``). Committed
    verdicts stay for studies that the ledger does not hold, and for claims not run here.
    """
    rows = ledger.read_rows(ledger_path)
    if ledger.is_smoke(rows):
        raise ConcordError(f"{ledger_path} is of smoke scale; commit verdicts of scale paper")
    judged = dict.fromkeys(row["paper"] for row in rows)
    committed = ledger.expected_rows(expected_path)
    before = {ledger.verdict_key(row): row for row in committed}
    papers = [*dict.fromkeys([*(paper for paper, *_ in before), *judged])]  # stay in their order
    claims = _read_claims(expected_path.parent, papers)
    rows = [_keep_committed(row, before, claims) for row in rows]
    others = ledger.committed_values(expected_path).items()
    values: dict[tuple[str, ...], Any] = {at: text for at, text in others if at[0] not in judged}
    for row in rows:
        case = (row["case"],) if row["case"] else ()
        place = row["paper"], row["claim"], row["reading"], *case
        values[place] = [row["verdict"], row["number"]] if row["number"] else row["verdict"]
    head = "# Verdicts at paper scale, seed 1; written by `concord expect results/claims.csv`.\n"
    ordered = sorted(values.items(), key=lambda item: papers.index(item[0][0]))
    write_whole(expected_path, head + dump_yaml(_nest(ordered)))
    universes = _nest(ledger.expected_universes(expected_path).items())
    universes |= _nest(ledger.robustness_by_claim(rows).items())
    if universes:
        head = "# What verdicts depend on; written by `concord expect results/claims.csv`.\n"
        path = expected_path.with_name("expected_multiverse.yaml")
        write_whole(path, head + dump_yaml(universes))
    all_rows = [mark_ours(row, claims) for row in ledger.expected_rows(expected_path)]
    parts = {"scoreboard": ledger.scoreboard(all_rows)}
    for paper in judged:
        paper_rows = [row for row in rows if row["paper"] == paper]
        parts[f"findings of {paper}"] = half_page(paper_rows)
    for page in sorted(pages.glob("*.md")):
        text = read_text(page)
        if (new := replace_parts(text, parts)) != text:
            write_whole(page, new)


def _read_claims(config: Path, keys: Iterable[str]) -> dict[tuple[str, str], Claim]:
    """Return the claims of those studies of the configuration that exist, by study and name."""
    folders = [config / section / key for key in keys for section in ("papers", "studies")]
    claims: dict[tuple[str, str], Claim] = {}
    for folder in filter(Path.is_dir, folders):
        study = Study(folder, load_config(config / "config.yaml"), checked=True)
        claims |= {(study.key, name): claim for name, claim in study.claims.items()}
    return claims


def mark_ours(row: Row, claims: Mapping[tuple[str, str], Claim]) -> Row:
    """Return a committed row, with the source of our sentences if no sentence of the paper is it.

    claims: by study and name.
    """
    claim = claims.get((row["paper"], row["claim"]))
    return {**row, "source": ledger.OUR_SENTENCE} if claim and claim.ours else row


def _keep_committed(
    row: Row,
    before: Mapping[tuple[str, ...], Row],
    claims: Mapping[tuple[str, str], Claim],
) -> Row:
    """Return a row with the verdict to commit: the committed one if the row's decides less.

    It decides less if its runs were not made, or if it depends on the seed and seeds were not
    varied. before: the committed rows, by key. claims: by study and name, for reasons.
    """
    committed = before.get(ledger.verdict_key(row), {})
    was = committed.get("verdict", verdicts.NOT_RUN)
    lost = row["verdict"] == verdicts.NOT_RUN != was
    if not lost and (was != verdicts.SEED or row["multiverse"]):
        return row
    claim = claims.get((row["paper"], row["claim"]))
    kept = {"verdict": was, "because": state_reason(claim, was) if claim else ""}
    return {**row, **kept, **({"ours": "", "number": committed["number"]} if lost else {})}


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
