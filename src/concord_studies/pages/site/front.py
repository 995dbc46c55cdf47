"""The first page: what was found, how to start, and from what the site was made."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord_studies.claims import ledger
from concord_studies.claims.ledger import Row
from concord_studies.configuration.study import Study
from concord_studies.io import read_text
from concord_studies.markup import fence, fold, markdown, markdown_table
from concord_studies.pages import claims as of_claims
from concord_studies.pages.findings import (
    PARTS_OF_TABLE,
    count_parts,
    format_shortly,
    group_by_sentence,
)
from concord_studies.pages.site import papers
from concord_studies.pages.site.claims import link_claims
from concord_studies.provenance import describe

# What is said whatever was made: on Concord, the table, the figure that says most, and on starting.
WORDS = read_text(Path(__file__).with_name("front.md")).split("---\n")
LEADERS = 5  # of the arena, at each price


def page(
    settings: Mapping[str, Any],
    studies: Mapping[str, Study],
    rows: Sequence[Row],
    results: Path,
    has: Callable[[str], bool],
) -> list[str]:
    """Return the lines of the first page: what was found, and how to start.

    results: the folder of the results. has: whether there is a page of a name.
    """
    lead, what_holds, which, counted, ranked, picture, ways, commands = WORDS
    documented = has("docs/reproduce") and has("papers/tzikas2024")
    boards = {
        key: papers.read_committed(key, "leaderboard", results)
        for key, study in studies.items()
        if study.arenas
    }
    lines = ["# Concord", "", lead, "", *[what_holds] * bool(rows)]
    lines += [which, ""] * (documented and any(board for _, board in boards.values()))
    if settings["scale"] == "smoke":
        lines += [f"**{ledger.SMOKE}**", ""]
    if rows:
        lines += ["## What was found", "", of_claims.describe_verdicts(rows, ""), ""]
        lines += [
            counted,
            *_tabulate_studies(studies, ledger.unmark_committed(rows), settings["findings"]),
            "",
        ]
        lines += ["[All claims of all papers](claims.md)", ""]
    lines += ["[All figures](figures.md)", ""] * has("figures")
    for key, (origin, board) in boards.items():
        if board:
            lines += ["## Who leads the arena", "", ranked, origin, ""]
            lines += [*_first_of_each_price(board), ""]
            lines += [f"[All of them, and other tasks](papers/{key}.md)", ""]
    lines += [picture] * documented
    return [*lines, "## How to start", "", *[ways] * documented, commands]


def _first_of_each_price(board: Sequence[str]) -> list[str]:
    """Return the lines of a leaderboard without the later entries of each price.

    board: its lines in Markdown; a price is named in the first row of its entries alone.
    """
    lines, place = [*board[:2]], 0
    for row in board[2:]:
        place = 1 if row.split("|")[1].strip() else place + 1
        lines += [row] * (place <= LEADERS)
    return lines


def describe_origin(settings: Mapping[str, Any], compared: ledger.Comparison) -> list[str]:
    """Return lines on the versions that made the site, and on verdicts that differ.

    compared: verdicts beside the committed ones.
    """
    about = describe()
    lock = (about["lock"] or "unknown")[:12]
    lines = [
        "## How it was made",
        "",
        f"Concord {about['concord']}, commit `{about['commit'] or 'unknown'}`, master seed "
        f"{settings['seed']}, Python {about['python']}, libraries of the lock file `{lock}`. Every "
        "figure has its provenance beside it.",
        "",
    ]
    if compared.compared is not None:
        others = (*compared.changed, *compared.seeds, *compared.new)
        listed = [f"- {markdown(line)}" for line in others]
        lines += [markdown(compared.text), "", *fold("Which are not the same", listed)]
    return lines


def _tabulate_studies(
    studies: Mapping[str, Study], rows: Sequence[Row], chosen: Sequence[str]
) -> list[str]:
    """Return a table of papers: how many of their sentences fail, are open or hold, and one each.

    A sentence that the paper does not make is not counted. Shown is the first one chosen, else the
    first. A study of our own is in it if a claim of it is chosen, or none of any.
    """
    stated = {f"{key}/{claim}" for key, study in studies.items() for claim in study.claims}
    for name in chosen:
        if name not in stated:
            raise ConcordError(
                f"config.yaml: findings: there is no claim {short(name)}; {nearest(name, stated)}"
            )
    table = []
    for key, study in sorted(studies.items(), key=lambda item: not item[1].printed):
        sentences = group_by_sentence(row for row in rows if row["paper"] == key)
        named = {f"{key}/{sentence.first_row['claim']}": sentence for sentence in sentences}
        if not named or (chosen and not study.printed and not named.keys() & {*chosen}):
            continue
        printed = [s for s in sentences if s.first_row["source"] != ledger.OUR_SENTENCE]
        counts = count_parts(printed)
        paper = f"[{markdown(study.name)}](papers/{key}.md)"
        paper += f", {markdown(study.about.samplers)}" * bool(study.about.samplers)
        paper += f" ({link_claims('its sentences', paper=study.name)})"
        first = next((named[name] for name in chosen if name in named), sentences[0])
        shown = [str(counts[part]) if printed else "" for part in PARTS_OF_TABLE]
        table.append([paper, *shown, format_shortly(first)])
    columns = ("paper", *PARTS_OF_TABLE, "one of its sentences, and its number")
    return fence("{table}", "\n".join([":class: papers", "", *markdown_table(columns, table)]))
