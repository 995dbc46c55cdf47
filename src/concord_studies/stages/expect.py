"""expect: commit a ledger's verdicts as the expected ones, and write the pages that show them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from concord import __version__
from concord.errors import ConcordError
from concord_studies.claims import ledger, verdicts
from concord_studies.claims.ledger import Row
from concord_studies.configuration.config import results_folder
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.io import dump_yaml, read_text, write_whole
from concord_studies.pages.claims import committed_rows
from concord_studies.pages.findings import count_sentences, list_briefly
from concord_studies.provenance import read_provenance


def expect(ledger_path: Path, expected_path: Path, pages: Path) -> None:
    """Write a ledger's verdicts as the expected ones, and the pages that show all of these.

    pages: the folder of the documents with scoreboard, findings (``page_parts``) and tables of
    results. Committed verdicts stay for studies that the ledger does not hold, and for claims not
    run here.
    """
    rows = ledger.read_rows(ledger_path)
    if ledger.is_smoke(rows):
        raise ConcordError(f"{ledger_path} is of smoke scale; commit verdicts of scale paper")
    judged = dict.fromkeys(row["paper"] for row in rows)
    committed = ledger.expected_rows(expected_path)
    before = {ledger.verdict_key(row): row for row in committed}
    rows = [_keep_committed(row, before) for row in rows]
    others = ledger.committed_values(expected_path).items()
    values: dict[tuple[str, ...], Any] = {at: text for at, text in others if at[0] not in judged}
    for row in rows:
        case = (row["case"],) if row["case"] else ()
        place = row["paper"], row["claim"], row["reading"], *case
        values[place] = [row["verdict"], row["number"]] if row["number"] else row["verdict"]
    head = "# Verdicts at paper scale, seed 1; written by `concord expect results/claims.csv`.\n"
    papers = [*dict.fromkeys([*(paper for paper, *_ in before), *judged])]  # stay in their order
    ordered = sorted(values.items(), key=lambda item: papers.index(item[0][0]))
    write_whole(expected_path, head + dump_yaml(_nest(ordered)))
    places = {(row["paper"], row["claim"], row["reading"]) for row in rows}
    surveyed = ledger.expected_universes(expected_path) | ledger.robustness_by_claim(rows)
    kept = {at: text for at, text in surveyed.items() if at[0] not in judged or at in places}
    universes = _nest(kept.items())
    if universes:
        head = "# What verdicts depend on; written by `concord expect results/claims.csv`.\n"
        path = expected_path.with_name("expected_multiverse.yaml")
        write_whole(path, head + dump_yaml(universes))
    config, results = expected_path.parent, ledger_path.parent
    studies: Mapping[str, Study] = {}
    if (config / "config.yaml").exists():
        settings, studies = load_studies(config)
        results = results_folder(settings)
    parts = page_parts(expected_path, studies)
    for page in sorted(pages.glob("*.md")):
        text = read_text(page)
        if (new := replace_parts(text, parts | _table_parts(text, results))) != text:
            write_whole(page, new)


def page_parts(expected_path: Path, studies: Mapping[str, Study]) -> dict[str, list[str]]:
    """Return version, scoreboard and findings by their names in pages, as lines of Markdown.

    They depend on nothing but the committed verdicts, with their numbers, and the studies.
    """
    committed = ledger.expected_rows(expected_path)
    by_study = {key: committed_rows(study, committed) for key, study in studies.items()}
    others = [row for row in committed if row["paper"] not in studies]
    head = f"*Concord {__version__}; paper scale, seed 1.*"
    board = count_sentences([*others, *(row for rows in by_study.values() for row in rows)])
    findings = {
        f"findings of {key}": list_briefly([{**row, "ours": ""} for row in rows])
        for key, rows in by_study.items()
    }
    return {"version": [head], "scoreboard": [head, "", *board], **findings}


def _table_parts(text: str, results: Path) -> dict[str, list[str]]:
    """Return the tables that a page names (``<!-- results/arena/tables/leaderboard -->``).

    results: folder of the results. A table that has not been made there is left as it stands.
    """
    parts = {}
    for name in re.findall(r"<!-- (results/\S+) -->", text):
        path = results / f"{name.removeprefix('results/')}.md"
        if path.exists():
            version = read_provenance(path)["concord"]
            head = f"*Concord {version}, `snakemake {name}.csv`; paper scale, seed 1.*"
            parts[name] = [head, "", *read_text(path).strip().split("\n")]
    return parts


def _keep_committed(row: Row, before: Mapping[tuple[str, ...], Row]) -> Row:
    """Return a row with the verdict to commit: the committed one if the row's decides less.

    It decides less if its runs were not made, or if it depends on the seed and seeds were not
    varied. before: the committed rows, by key.
    """
    committed = before.get(ledger.verdict_key(row), {})
    was = committed.get("verdict", verdicts.NOT_RUN)
    lost = row["verdict"] == verdicts.NOT_RUN != was
    if not lost and (was != verdicts.SEED or row["multiverse"]):
        return row
    return {**row, "verdict": was, **({"number": committed["number"]} if lost else {})}


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
