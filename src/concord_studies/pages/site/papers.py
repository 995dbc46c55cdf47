"""A study's page as Markdown: findings, our figures and tables, and what they rest on.

It is the page of the study's claims with figures and tables. Their anchors are
``<study>-figures-<name>`` and ``<study>-tables-<name>``; paths begin at the site's sources, where
``results`` is the folder of the results.
"""

import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from concord_studies import words
from concord_studies.claims.ledger import Row, unmark_committed
from concord_studies.configuration.study import Study
from concord_studies.home import HOME
from concord_studies.io import read_text
from concord_studies.markup import fence, fold, index_entries, line, markdown, sentence
from concord_studies.pages import captions
from concord_studies.pages import claims as of_claims
from concord_studies.pages.captions import Caption
from concord_studies.pages.findings import format_shortly, group_by_sentence
from concord_studies.pages.markdown import Section
from concord_studies.pages.site.claims import link_counts
from concord_studies.provenance import read_provenance

WIDE = 360  # points; a column of print has 250
HEAVY = 50_000  # bytes of an SVG, in place of which its PNG is shown, as a WebP of few colors
ROWS = 60  # of a table, folded; of one with more the CSV has them
THUMBNAIL = 400  # pixels of a picture's width in the gallery
FRONT = Path(__file__).with_name("front.md")
FOLDED = re.compile(r"<details><summary>((\d+) more of \d+ rows)</summary>.*?</details>", re.S)
HEADINGS = {"figures": "Figures", "tables": "Tables"}
SHOWN = {"figures": ".svg", "tables": ".csv"}


def study_page(study: Study, rows: Sequence[Row], results: Path, seeds_note: str = "") -> str:
    """Return a study's page in Markdown.

    rows: verdicts on its claims.
    results: folder of the results; figures and tables that are not there are left out.
    seeds_note: a sentence that is printed where no other seeds were run.
    """
    sections = [section for section in HEADINGS if study.outputs(section)]
    unmarked = unmark_committed(rows)  # of which the findings say so, if all are
    parts = [_show_section(study, section, unmarked, results) for section in sections]
    if find_multiverse(results / study.key):
        lines = [f"[What every verdict depends on](/multiverse/{study.key}.md)", ""]
        parts.append(Section("With other assumptions and seeds", "", lines=lines))
    if pages := find_cards(results / study.key):
        parts.append(Section("Entries of the arena", "", lines=_link_cards(study, pages)))

    def link(name: str) -> str:
        """Return the name of a figure or table, as a link if it has been made."""
        section = "figures" if name in study.sections.figures else "tables"
        shown = name and find_output(study, section, name, results)
        return f"[{markdown(name)}](#{_anchor(study, section, name)})" if shown else markdown(name)

    counts = link_counts(study, group_by_sentence(unmarked))
    page = of_claims.claims_page(study, rows, seeds_note, parts, link)
    title, _, rest = page.partition("\n\n")
    names = [study.name, *study.about.samplers.split(", ")]
    if study.printed:
        author = re.split(r" and others| \(", study.name)[0]
        names += [study.key, author]
        rest = f"{title.removeprefix('# ')}\n\n{rest}"
        title = f"# {markdown(name_with_samplers(study))}"
    return "\n".join([title, "", *index_entries(names), *[counts, ""] * bool(counts), rest])


def name_with_samplers(study: Study) -> str:
    """Return a study's name for readers, and those of the samplers that its paper proposes."""
    return ", ".join(filter(None, [study.name, study.about.samplers]))


def find_output(paper: Study, section: str, name: str, results: Path) -> Path | None:
    """Return the path of a figure or table. None if it has not been made."""
    path = (results / paper.key / section / name).with_suffix(SHOWN[section])
    return path if path.exists() and path.with_suffix(".json").exists() else None


def read_committed(key: str, section: str, name: str, results: Path) -> tuple[str, list[str]]:
    """Return a sentence on where a table or picture is from, and its lines in Markdown.

    A table that was made comes first; else it is the one below its mark in the documents. ("", [])
    if there is none.
    """
    path = results / key / "tables" / f"{name}.md"
    if section == "tables" and path.exists():
        return "Made here.", read_text(path).partition("\n\n")[0].splitlines()
    mark = f"<!-- results/{key}/{section}/{name} -->\n"
    for page in (HOME / "README.md", FRONT, *sorted((HOME / "docs").glob("*.md"))):
        _, found, rest = read_text(page).partition(mark) if page.exists() else ("", "", "")
        if found:
            first, second = rest.strip().split("\n\n")[:2]
            if section == "tables":
                return f"Committed, and not made here: {first}", second.splitlines()
            folder = "/docs/" if page.parent.name == "docs" else "/"
            picture = re.sub(r"\]\((?=[^)]*\)$)", f"]({folder}", first)
            return "Committed, and not made here.", [picture, "", *second.splitlines()]
    return "", []


def picture_lines(study: Study, name: str, results: Path) -> list[str]:
    """Return Markdown with a figure and its caption: as it was made, or is committed; or []."""
    path = find_output(study, "figures", name, results)
    if not path:
        return [*read_committed(study.key, "figures", name, results)[1], ""]
    caption: Caption = read_provenance(path)["caption"]
    alt = f"{sentence(caption['title'])} {captions.first_sentence(caption)}"
    return [*_picture(path, results, alt), *captions.lines_above_fold(caption)]


def gallery(studies: Collection[Study], results: Path, sources: Path) -> list[str]:
    """Return the page of figures that were made or are committed, each a link; [] if there is none.

    sources: the folder of the site's sources, into which small pictures are written.
    """
    lines: list[str] = []
    for study in studies:
        entries = []
        for name, figure in study.sections.figures.items():
            path, place = find_output(study, "figures", name, results), ""
            if path:
                image, place = path.with_suffix(".png"), _place(choose_light(path), results)
            else:
                picture = "".join(read_committed(study.key, "figures", name, results)[1][:1])
                place = picture.rpartition("](")[2].rstrip(")")
                image = sources / place[1:]
            if not place:
                continue
            if image.exists():
                place = f"/thumbnails/{study.key}/{name}-small.webp"
                _write_thumbnail(image, sources / place[1:])
            options = [f":alt: {_quote(figure.title)}", ":figclass: small"]
            options += [f":target: papers/{study.key}.html#{_anchor(study, 'figures', name)}"]
            lines_of = "\n".join([*options, "", markdown(_heading(name, figure.title))])
            entries += fence(f"{{figure}} {place}", lines_of)
        lines += [f"## {markdown(name_with_samplers(study))}", "", *entries] * bool(entries)
    of_papers = [study for study in studies if study.printed]
    shown = sum(f"## {markdown(name_with_samplers(study))}" in lines for study in of_papers)
    head = f"Figures of {shown} of {len(of_papers)} papers have been made or are committed."
    return ["# Figures", "", f"{head} Each leads to its place.", "", *lines] if lines else []


def find_multiverse(folder: Path) -> tuple[Path, list[Path]] | None:
    """Return the page and the pictures of a paper's multiverse, None where there is none."""
    files = _made_with(folder / "multiverse.csv")
    pictures = sorted(path for path in files if path.suffix == ".svg")
    return next(((path, pictures) for path in files if path.suffix == ".md"), None)


def find_cards(folder: Path) -> list[Path]:
    """Return the pages of an arena's entries, which were made with its scores."""
    return sorted(path for path in _made_with(folder / "scores.csv") if path.suffix == ".md")


def multiverse_page(study: Study, results: Path, text: str, pictures: Sequence[Path]) -> str:
    """Return the page of a multiverse, whose Markdown is ``text``, with its pictures."""
    lines = [text, "", "## Pictures", ""]
    for path in sorted(pictures, key=lambda path: path.stem.startswith("claim_")):
        claim = study.claims.get(path.stem.removeprefix("claim_"))
        says = claim.says if claim else "Claims over assumptions: which assumption turns which."
        head = "The number on which the verdict turns, in every universe, sorted: " if claim else ""
        lines += [markdown(says), "", *_picture(path, results, head + says)]
    return "\n".join(lines)


def _made_with(table: Path) -> list[Path]:
    """Return the files of the rule that made a table, [] where there is no table."""
    names = read_provenance(table)["sha256"] if table.exists() else ()
    return [table.parent / name for name in names]


def _anchor(paper: Study, section: str, name: str) -> str:
    """Return the anchor of a figure or table in the site, such as "paper-figures-fig1"."""
    return f"{paper.key}-{section}-{name}".replace("_", "-").lower()


def _show_section(study: Study, section: str, rows: Sequence[Row], results: Path) -> Section:
    """Return the part of the page with all figures or tables that were made, or are committed."""
    names = study.outputs(section)
    made = [name for name in names if find_output(study, section, name, results)]
    lines: list[str] = []
    committed = 0
    for name, entry in names.items():
        shown = _show_output if name in made else _show_committed
        if about := shown(study, section, name, rows, results):
            place = _anchor(study, section, name)
            lines += [f"({place})=", f"### {_heading(name, entry.title)}", "", *about]
            committed += name not in made
    counted = f"{len(made) or 'None'} of {len(names)} {section}"
    told = f"{counted} {'have' if len(made) > 1 else 'has'} been made here"
    told += f", and {committed} shown below {'are' if committed > 1 else 'is'} committed" * (
        committed > 0
    )
    missing = [f"{told}; `snakemake {study.key}` makes all.", ""] * (len(made) < len(names))
    return Section(HEADINGS[section] if lines else "", "", lines=[*missing, *lines])


def _show_committed(
    study: Study, section: str, name: str, rows: Sequence[Row], results: Path
) -> list[str]:
    """Return a figure or table as the documents have it, with what is claimed of it, or []."""
    origin, shown = read_committed(study.key, section, name, results)
    return [*shown, "", origin, "", *_list_claims(name, rows)] if shown else []


def _list_claims(name: str, rows: Sequence[Row]) -> list[str]:
    """Return a list of the sentences that a figure bears on, with their verdicts."""
    judged = group_by_sentence(row for row in rows if row["figure"] == name)
    return [*(f"- {format_shortly(one)}" for one in judged), ""]


def _show_output(
    study: Study, section: str, name: str, rows: Sequence[Row], results: Path
) -> list[str]:
    """Return a figure or table that was made: picture, caption, claims, how it was made, files."""
    place, base = f"/results/{study.key}/{section}/{name}", results / study.key / section / name
    shown = base.with_suffix(SHOWN[section])
    caption: Caption = read_provenance(shown)["caption"]
    if section == "figures":
        lines = [*picture_lines(study, name, results), *_list_claims(name, rows)]
    else:
        first = caption["caption"] or caption["title"]
        table, _, rest = read_text(base.with_suffix(".md")).partition("\n\n")
        lines = [*fence(f"{{table}} {markdown(first)}", table), FOLDED.sub(_leave_out, rest), ""]
        lines += captions.lines_above_fold({**caption, "caption": ""})
    folded = captions.lines_below_fold(caption)
    for experiment in dict.fromkeys(run.experiment for run in study.output_runs(section, name)):
        if (results / study.key / experiment / "metrics.csv").exists():
            runs = f"/results/{study.key}/{experiment}/runs.yaml"
            numbers = f"/numbers/{study.key}/{experiment}.csv.gz"
            folded.append(f"- `{experiment}`: [every parameter]({runs}), [all numbers]({numbers})")
    lines += fold("How it was made", folded)
    suffixes = {"PDF": ".pdf", "SVG": ".svg", "CSV": ".csv", "TeX": ".tex", "provenance": ".json"}
    links = [
        f"[{what}]({place}{suffix})"
        for what, suffix in suffixes.items()
        if base.with_suffix(suffix).exists()
    ]
    return [*lines, ", ".join(links), ""]


def _leave_out(folded: re.Match[str]) -> str:
    """Return folded rows of a table as they are, or where they are if they are many."""
    return f"{folded[1]} are in the CSV." if int(folded[2]) > ROWS else folded[0]


def _heading(name: str, title: str) -> str:
    """Return a heading: "Fig 2a: title" of ``fig2a``, else the title."""
    number = re.match(r"(fig|table)(S?\d+[a-z]?)(?![^_])", name)
    of = f"{number[1].capitalize()} {number[2]}: " if number else ""
    return of + markdown(title)


def _picture(path: Path, results: Path, alt: str) -> list[str]:
    """Return Markdown with a picture and its alternative text; a wide one fills the column.

    path: an SVG; its PNG is shown where the SVG is heavy.
    """
    width = re.search(r'<svg[^>]* width="([\d.]+)pt"', read_text(path))
    options = [f":alt: {_quote(alt)}"]
    options += [":class: wide"] * bool(width and float(width[1]) > WIDE)
    return fence(f"{{image}} {_place(choose_light(path), results)}", "\n".join(options))


def _place(path: Path, results: Path) -> str:
    """Return where the site's sources have a file of the results."""
    return f"/results/{path.resolve().relative_to(results.resolve()).as_posix()}"


def choose_light(path: Path) -> Path:
    """Return the path of an SVG, or of its PNG where the SVG is heavy."""
    image = path.with_suffix(".png")
    return image if path.stat().st_size > HEAVY and image.exists() else path


def _write_thumbnail(image: Path, path: Path) -> None:
    """Write a PNG as a small WebP."""
    from PIL import Image  # of matplotlib

    path.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(image) as picture:
        height = round(THUMBNAIL * picture.height / picture.width)
        picture.convert("RGB").resize((THUMBNAIL, height)).save(path, quality=50)


def _quote(text: str) -> str:
    """Return a text for an option of a directive."""
    return json.dumps(line(text), ensure_ascii=False)


def _link_cards(study: Study, cards: Sequence[Path]) -> list[str]:
    """Return Markdown with links to the cards of an arena's entries, and to its scores.

    cards: files of the cards, each called like its entry.
    """
    names = [line(words.name("entry", card.stem, study.sections.names)) for card in cards]
    links = [
        f"{name} </cards/{study.key}/{card.stem}>" for name, card in zip(names, cards, strict=True)
    ]
    return [
        "A card of each entry: its equation and source, its tuning, its best and worst tasks.",
        f"All scores: [scores.csv](/results/{study.key}/scores.csv).",
        "",
        *fence("{toctree}", "\n".join([":maxdepth: 1\n", *links])),
    ]
