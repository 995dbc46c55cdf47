"""The first page: what was found, how to start, and from what the site was made."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord_studies.claims import ledger
from concord_studies.claims.ledger import Row, is_smoke
from concord_studies.configuration.study import Study
from concord_studies.markup import fence, fold, markdown, markdown_table
from concord_studies.pages import claims as of_claims
from concord_studies.pages.findings import (
    PARTS_OF_TABLE,
    count_parts,
    format_sentence,
    format_shortly,
    group_by_sentence,
)
from concord_studies.pages.site import papers
from concord_studies.provenance import describe

LEAD = """Each agent of a network, say a hospital, keeps its data to itself and exchanges its
current samples with neighbors only. Together the agents sample the posterior that all data give.
Concord reproduces the papers on such samplers figure by figure, judges every claim by a stated
rule, and compares all samplers, yours too, at the same price: gradients computed, or bytes sent."""
# Three ways to start: what one does, a line of it, and the documents that say more.
START = (
    (
        "Reproduce a paper",
        "snakemake results/gurbuzbalaban2021/figures/fig3.pdf",
        {"docs/reproduce": "Reproduce a paper", "docs/papers": "All papers, one ledger"},
    ),
    (
        "Sample your own data, with the sampler for your problem, network and budget",
        'concord_arena.recommend(problem, "ring", budget={"gradients": 2000})',
        {"docs/your-data": "Your data in a notebook", "docs/recommend": "Which sampler to use"},
    ),
    (
        "Compare your own sampler with others",
        "concord compare mine.py de_sgld --tasks ring",
        {"docs/your-sampler": "Your sampler in ten minutes", "docs/arena": "How they are compared"},
    ),
)
# The figure that says most, as the documents have it.
PICTURE = "docs/covariance.png"
PICTURED = (
    "The posterior's variance is 1. Agents of the gradient samplers (filled) draw far too widely "
    "where they are many or do not talk, while their averages (hollow) are right within a fifth. "
    "D-ADMMS's average is too narrow or too wide, although its paper says that it converges."
)
LEADERS = 5  # of the arena
COUNTED = (
    "Counted are a paper's sentences, each once for all its cases and readings. Of a paper whose "
    "text was not read none is counted, and a sentence of ours is shown. The number is that of the "
    "first case that decides, and the rule in brackets is what the sentence asks of it."
)


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
    lines = ["# Concord", "", LEAD, ""]
    if settings["scale"] == "smoke":
        lines += [f"**{ledger.SMOKE}**", ""]
    if rows:
        lines += ["## What was found", "", of_claims.describe_verdicts(rows, ""), ""]
        lines += _tabulate_papers(studies, rows, settings["findings"])
        lines += [*_list_findings(studies, rows, settings["findings"]), ""]
        lines += ["[All claims of all papers](claims.md)", ""]
    if has("README"):
        lines += [f"![{PICTURED}]({PICTURE})", "", f"*{PICTURED}*", ""]
        lines += ["[The figure, and what else its paper's page has](papers/tzikas2024.md)", ""]
    for key in (key for key, study in studies.items() if study.arenas):
        origin, board = papers.read_committed(key, "leaderboard", results)
        if board:
            lines += [f"## Who leads the arena: the first {LEADERS}", "", origin, ""]
            lines += [*board[: 2 + LEADERS], "", f"[All of them](papers/{key}.md)", ""]
    lines += ["## Three ways to start", ""]
    for text, command, documents in START:
        links = [f"[{title}]({name}.md)" for name, title in documents.items() if has(name)]
        lines += [f"**{text}.** {', '.join(links)}", "", *fence("text", command)]
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


def _tabulate_papers(
    studies: Mapping[str, Study], rows: Sequence[Row], chosen: Sequence[str]
) -> list[str]:
    """Return a table of papers: how many of their sentences fail, are open or hold, and one each.

    A sentence that the paper does not make is not counted. The one shown is the first chosen, or
    else the first.
    """
    columns = ("paper", *PARTS_OF_TABLE, "one of its sentences, and its number")
    table = []
    for key, study in studies.items():
        sentences = group_by_sentence(row for row in rows if row["paper"] == key)
        if not study.printed or not sentences:
            continue
        printed = [s for s in sentences if s.first_row["source"] != ledger.OUR_SENTENCE]
        counts = count_parts(printed)
        named = {f"{key}/{sentence.first_row['claim']}": sentence for sentence in sentences}
        first = next((named[name] for name in chosen if name in named), sentences[0])
        link = f"[{markdown(study.name)}](papers/{key}.md)"
        paper = ", ".join(filter(None, [link, markdown(study.about.samplers)]))
        shown = [str(counts[part]) if printed else "" for part in PARTS_OF_TABLE]
        table.append([paper, *shown, format_shortly(first)])
    return [COUNTED, "", *markdown_table(columns, table), ""] if table else []


def _list_findings(
    studies: Mapping[str, Study], rows: Sequence[Row], chosen: Sequence[str]
) -> list[str]:
    """Return the findings of our own studies that the first page lists.

    chosen: claims that the configuration names; none: the first five.
    """
    stated = {f"{key}/{claim}" for key, study in studies.items() for claim in study.claims}
    for name in chosen:
        if name not in stated:
            raise ConcordError(
                f"config.yaml: findings: there is no claim {short(name)}; {nearest(name, stated)}"
            )
    of_ours = [row for row in rows if not studies[row["paper"]].printed]
    sentences = group_by_sentence(of_ours)
    judged = {f"{s.first_row['paper']}/{s.first_row['claim']}": s for s in sentences}
    lines = []
    for name in [name for name in chosen if name in judged] if chosen else list(judged)[:5]:
        study = studies[judged[name].first_row["paper"]]
        text = format_sentence(judged[name], study.sections.names, is_smoke(rows))
        lines.append(f"{text} ([{markdown(study.name)}](papers/{study.key}.md))")
    return lines
