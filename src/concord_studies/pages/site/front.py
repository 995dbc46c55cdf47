"""The first page: what was found, how to start, and from what the site was made."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord_studies import words
from concord_studies.claims import ledger
from concord_studies.claims.ledger import Row
from concord_studies.configuration.study import Study
from concord_studies.io import read_text
from concord_studies.markup import fence, fold, line, markdown, markdown_table
from concord_studies.pages import claims as of_claims
from concord_studies.pages.findings import (
    COUNTED,
    count_parts,
    format_shortly,
    group_by_sentence,
)
from concord_studies.pages.site import papers
from concord_studies.pages.site.claims import link_count
from concord_studies.pages.site.reference import kind_anchor
from concord_studies.provenance import describe

# What is said whatever was made: on Concord, the table, the figure that says most, and on starting.
WORDS = read_text(papers.FRONT).split("---\n")
LEADERS = 5  # of the arena, at each price
SHOWN = ("price", "sampler", "mean rank")  # columns of a leaderboard


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
    lead, which, counted, ranked, picture, ways, commands = WORDS
    documented = has("docs/reproduce") and has("papers/tzikas2024")
    boards: dict[str, tuple[str, list[list[str]]]] = {}
    for key, study in studies.items():
        if study.arenas:
            origin, board = papers.read_committed(key, "tables", "leaderboard", results)
            if leaders := _first_of_each_price(board) if board else []:
                boards[key] = origin, leaders
    marked, rows = rows, ledger.unmark_committed(rows)
    lines = ["# Concord", "", lead, ""]
    answers = _answer_what_holds(studies, rows) if rows else []
    for key, (_, leaders) in boards.items():
        names = _link_samplers(studies[key]) if has("reference/samplers") else {}
        for leader in leaders:
            leader[1] = names.get(leader[1], leader[1])
        told = [*_name_leaders(leaders), *[which] * documented]
        answers += _panel("Which sampler should I take?", told)
    lines += fence("{container} answers", "\n".join(answers)) if answers else []
    if settings["scale"] == "smoke":
        lines += [f"**{ledger.SMOKE}**", ""]
    if rows:
        table = _tabulate_studies(studies, rows, settings["findings"])
        lines += ["## What was found", "", of_claims.describe_verdicts(marked, ""), ""]
        lines += [counted, *table, "", "[All claims of all papers](claims.md)", ""]
    lines += ["[Figures that have been made, or are committed](figures.md)", ""] * has("figures")
    for key, (origin, leaders) in boards.items():
        lines += ["## Which sampler leads", "", ranked, origin, ""]
        lines += [*markdown_table(SHOWN, leaders, 2), ""]
        lines += papers.picture_lines(studies[key], "phase", results)
        lines += [f"[All of them, and other tasks](papers/{key}.md)", ""]
    lines += [picture] * documented
    return [*lines, "## How to start", "", *[ways] * documented, commands]


def _panel(question: str, lines: Sequence[str]) -> list[str]:
    """Return Markdown with a question and its answer in a frame."""
    return fence("{container}", "\n".join([f"**{question}**", "", *lines]))


def _answer_what_holds(studies: Mapping[str, Study], rows: Sequence[Row]) -> list[str]:
    """Return Markdown that counts the sentences of all papers, and leads to each paper."""
    printed = (row for row in rows if row["source"] not in (ledger.OURS, ledger.OUR_SENTENCE))
    sentences = group_by_sentence(printed)
    counts = count_parts(sentences)
    counted = ", ".join(f"{counts[k]} {text}" for k, text in COUNTED.items() if counts[k])
    links = [
        f"[{markdown(study.about.samplers or study.name)}](papers/{key}.md)"
        for key, study in studies.items()
        if study.printed
    ]
    return _panel(
        "What holds of a paper?",
        [
            f"Of {len(sentences)} sentences of papers: {counted}.",
            "[The table](#what-was-found) counts each paper's; [the ledger](claims.md) has all of "
            "them, with their numbers.",
            "",
            f"Papers on {', '.join(links)}.",
        ],
    )


def _first_of_each_price(board: Sequence[str]) -> list[list[str]]:
    """Return the first entries of a leaderboard at each price: the cells of the columns shown.

    board: its lines in Markdown; a price is named in the first row of its entries alone. [] if it
    has not all columns.
    """
    heads, _, *rows = ([cell.strip() for cell in row[2:-2].split(" | ")] for row in board)
    if not {*SHOWN} <= {*heads}:
        return []
    places = [heads.index(column) for column in SHOWN]
    entries, place = [], 0
    for row in rows:
        place = 1 if row[0] else place + 1
        entries += [[row[n] for n in places]] * (place <= LEADERS)
    return entries


def _link_samplers(study: Study) -> dict[str, str]:
    """Return links to the samplers of an arena's entries, by the entries' names in Markdown."""
    links = {}
    for run in study.runs.values():
        if entry := run.labels.get("entry"):
            name = markdown(line(words.name("entry", entry, study.sections.names)))
            links[name] = f"[{name}](#{kind_anchor('samplers', run.document['sampler']['kind'])})"
    return links


def _name_leaders(leaders: Sequence[Sequence[str]]) -> list[str]:
    """Return Markdown with the first three entries at each price, as an item of a list."""
    starts = [n for n, row in enumerate(leaders) if row[0]]
    lines = ["First of the arena, with their mean rank over its tasks, of the same", ""]
    for start in starts:
        named = (f"{sampler} {rank}" for _, sampler, rank, *_ in leaders[start : start + 3])
        lines.append(f"- {leaders[start][0]}: {'; '.join(named)}")
    return [*lines, ""]


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
    """Return a table of papers: how many of their sentences fail or hold, and so on, and one each.

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
        first = next((named[name] for name in chosen if name in named), sentences[0])
        shown = [
            link_count(str(counts[kind]), study, kind) if counts[kind] else "0" * bool(printed)
            for kind in COUNTED
        ]
        table.append([paper, *shown, format_shortly(first)])
    columns = ("paper", *COUNTED, "one of its sentences, and its number")
    return fence("{table}", "\n".join([":class: papers", "", *markdown_table(columns, table)]))
