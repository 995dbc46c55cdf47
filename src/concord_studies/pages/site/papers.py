"""A study's page: what it says, our figures and tables, verdicts, and what they rest on.

Claims stand above their figure, and lead to it. Anchors are ``figure-<name>``, ``table-<name>``,
``claim-<name>``, ``assumption-<name>``, ``erratum-<name>`` and ``discrepancy-<name>``.
"""

import csv
import gzip
import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from concord.errors import ConcordError, nearest, short
from concord_studies import markup, words
from concord_studies.claims import ledger
from concord_studies.claims.ledger import Row
from concord_studies.configuration.sections import Discrepancy
from concord_studies.configuration.study import Study
from concord_studies.home import HOME
from concord_studies.io import dump_yaml, read_text
from concord_studies.pages import captions
from concord_studies.pages import claims as of_claims
from concord_studies.pages.site.curves import curves, group
from concord_studies.pages.site.parts import raw, title
from concord_studies.provenance import digest, read_provenance
from concord_studies.results import read_documents
from concord_studies.runs.run import Run

ROOT = "../"  # from a study's page to the site
UNBROKEN = re.compile(r"\[[^\]]*\]| / |tie with \d+ others|\d+ of \d+")


@dataclass(frozen=True)
class Files:
    """Where results are, and where the site's files go."""

    results: Path
    output: Path

    def copy(self, source: Path, path: str) -> str:
        """Copy a file to a path of the site and return that."""
        shutil.copyfile(source, self._at(path))
        return path

    def packed(self, source: Path, path: str) -> str:
        """Write a large file, packed by gzip, to a path of the site and return that."""
        self._at(path).write_bytes(gzip.compress(source.read_bytes(), mtime=0))
        return path

    def write(self, text: str, path: str) -> str:
        """Write a file of the site and return its path."""
        self._at(path).write_text(text, encoding="utf-8")
        return path

    def _at(self, path: str) -> Path:
        target = self.output / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


def missing(paper: Study, rows: Sequence[Row], results: Path) -> list[tuple[str, str]]:
    """Return what of a study has not been made, each with the target that makes it."""
    found = []
    wanted = list(_entries(paper))
    runs = {
        entry: paper.output_runs(*entry) for entry in wanted if not _place(paper, *entry, results)
    }
    fetched = [entry for entry, read in runs.items() if any(run.downloads for run in read)]
    others = [entry for entry in runs if entry not in fetched]
    for target, entries, what in (
        ("reproduce" if paper.printed else paper.key, others, ""),
        (paper.key, fetched, ", whose data are downloaded"),
    ):
        if entries:
            why = next(filter(None, (run.unavailable for e in entries for run in runs[e])), "")
            text = f"{len(entries)} of {len(wanted)} figures and tables{what}"
            found.append((target, f"{text} ({why})" if why else text))
    if paper.arenas and not _scored(paper, results):
        found.append((paper.key, "scores and cards"))
    if paper.claims and not rows:
        target = "ledger" if paper.printed else paper.key
        claims = "claim" if len(paper.claims) == 1 else "claims"
        found.append((target, f"verdicts on {len(paper.claims)} {claims}"))
    if paper.claims and paper.printed and not any(row["multiverse"] for row in rows):
        found.append(("multiverse", "verdicts with other defensible values and seeds"))
    return found


def made(paper: Study, rows: Sequence[Row], results: Path) -> bool:
    """Whether anything of a study is there to be shown."""
    drawn = any(_place(paper, *entry, results) for entry in _entries(paper))
    surveyed = (results / paper.key / "multiverse.csv").exists()
    return bool(rows) or drawn or surveyed or _scored(paper, results)


def _entries(paper: Study) -> Iterator[tuple[str, str]]:
    """Yield section and name of every figure and table."""
    for section in ("figures", "tables"):
        yield from ((section, name) for name in paper.outputs(section))


def _scored(paper: Study, results: Path) -> bool:
    folder = results / paper.key
    return (folder / "scores.csv").exists() and (folder / "cards").is_dir()


def _place(paper: Study, section: str, name: str, results: Path) -> Path | None:
    """Return where a figure or table is, without a suffix; None where it has not been made."""
    base = results / paper.key / section / name
    shown = (".json", ".svg") if section == "figures" else (".json", ".csv")
    return base if all(base.with_suffix(suffix).exists() for suffix in shown) else None


def page(
    paper: Study,
    rows: Sequence[Row],
    files: Files,
    todo: Sequence[tuple[str, list[str]]],
    seeds: str = "",
) -> str:
    """Return a study's page in reStructuredText; its files are copied beside it.

    todo: what has not been made, by the command that makes it.
    seeds: what is said where they were not varied.
    """
    about = paper.about
    claims = summarized(rows, paper.sections.names)
    universes = _universes(paper, rows, files)
    claims = [{**claim, **_leads(claim, paper, universes, files.results)} for claim in claims]
    followed = dict.fromkeys(run.reading for run in paper.runs.values())
    head = raw(
        "head",
        root=ROOT,
        about=about,
        smoke=ledger.SMOKE if paper.config["scale"] == "smoke" else "",
        notes=of_claims.notes(rows, seeds),
        board=board(rows),
        called={paper.key: paper.name},
        todo=todo,
        readings=[
            (text, paper.readings[reading])
            for reading in followed
            if (text := ledger.shown_reading(reading, not paper.printed))
        ],
    )
    parts = [title(about.title, "#"), head]

    def add(heading: str, template: str, **shown: Any) -> None:
        parts.extend([title(heading, "*"), raw(template, root=ROOT, **shown)])

    shown: set[str] = set()
    for section, names in _groups(paper):
        entries = [e for name in names if (e := _entry(paper, section, name, files))]
        if entries:
            mine = [c for c in claims if c["figure"] in names and c["name"] not in shown]
            shown |= {claim["name"] for claim in mine}
            drawn = _curves(paper, [e["name"] for e in entries if section == "figures"], files)
            heading = _heading(paper, section, names[0])
            last = bool(paper.arenas)  # who is best comes first
            add(heading, "entries", claims=mine, entries=entries, curves=drawn, claims_last=last)
    if arena := _arena(paper, files):
        add("Entries", "arena", **arena)
    others = [claim for claim in claims if claim["name"] not in shown]
    if others:
        add("Other claims", "entries", claims=others, entries=[], claims_last=False)
    if universes:
        add("With other assumptions and seeds", "universes", **universes)
    if runs := _runs(paper, files):
        add("Runs", "runs", runs=runs)
    judged = {claim["name"] for claim in claims}
    for kind, heading, notes in _notes(paper):
        if notes:
            add(heading, "notes", kind=kind, notes=notes, judged=judged)
    if released := paper.sections.released_code:
        parts += [title("Released code", "*"), markup.rst(released)]
    return "\n\n".join(parts)


_STATED = ("paper", "says", "source", "printed", "figure", "kind", "rule")


def summarized(rows: Iterable[Row], names: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    """Return claims, each with its verdicts by reading and their cases; ``names`` are a study's."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in ledger.entries(rows):
        row = entry.rows[0]
        claim = found.setdefault(
            (row["paper"], row["claim"]),
            {key: row[key] for key in _STATED}
            | {"where": of_claims.where(row)}
            | {"name": row["claim"], "readings": [], "reasons": [], "assumptions": []},
        )
        for one in entry.rows:
            rests = [name for name in one["assumptions"].split(", ") if name]
            claim["assumptions"] += [n for n in rests if n not in claim["assumptions"]]
            reason = one["reason"].rstrip(".")
            claim["reasons"] += [reason] if reason and reason not in claim["reasons"] else []
        several = len(entry.rows) > 1
        cases = [{**one, "name": words.case(one["case"], names)} for one in entry.rows]
        claim["readings"].append(
            {
                **{"reading": entry.reading, "verdict": entry.verdict},
                "counted": entry.counted(names),
                "ours": entry.decided(names),
                "universes": row.get("multiverse"),
                "cases": cases if several else [],
            }
        )
    return list(found.values())


def _leads(
    claim: Mapping[str, Any], paper: Study, universes: Mapping[str, Any] | None, results: Path
) -> dict[str, Any]:
    """Return what a claim leads to on its paper's page: assumptions, its figure, its universes."""
    name = claim["figure"]
    made = (s for s, n in _entries(paper) if n == name and _place(paper, s, n, results))
    pictures = universes["pictures"] if universes else []
    return {
        "assumptions": [known for known in claim["assumptions"] if known in paper.assumptions],
        "anchor": next((_anchor(section, name) for section in made), None),
        "universes": next((p["anchor"] for p in pictures if p["claim"] == claim["name"]), None),
    }


def board(rows: Sequence[Row]) -> dict[str, Any]:
    """Return how many sentences have which verdict, by study and reading, for a picture."""
    columns, cells = ledger.scores(rows)
    said = columns[3:]
    scores = []
    for paper, reading, _, *counts in cells:
        found = [(verdict, int(n)) for verdict, n in zip(said, counts, strict=True) if int(n)]
        scores.append({"paper": paper, "reading": reading, "counts": found})
    kinds = list(dict.fromkeys(verdict.partition(":")[0] for verdict in said))
    return {"verdicts": said, "kinds": kinds, "rows": scores}


def _groups(paper: Study) -> list[tuple[str, list[str]]]:
    """Return section and names of what is shown together: figures that differ in their reading."""
    found: dict[str, list[str]] = {}
    for name in paper.sections.figures:
        found.setdefault(group(paper, name), []).append(name)
    figures = [("figures", names) for names in found.values()]
    tables = [("tables", [name]) for name in paper.sections.tables]
    first = 1 if paper.arenas else 0  # an arena's page begins with its leaderboard
    return [*tables[:first], *figures, *tables[first:]]


def _heading(paper: Study, section: str, name: str) -> str:
    """Return "Fig 2: title" of what has a number in print, else its title."""
    title = markup.line(paper.output(section, name).title)
    number = re.match(r"(fig|table)(S?\d+)(?![^_])", name)
    words = {"fig": "Fig", "table": "Table"}
    return f"{words[number[1]]} {number[2]}: {title}" if number else title


def _anchor(section: str, name: str) -> str:
    """Return the anchor of a figure or table of a study's page."""
    return f"{section.removesuffix('s')}-{name}"


def _entry(paper: Study, section: str, name: str, files: Files) -> dict[str, Any] | None:
    """Return what is shown of a figure or table, None if there are no results of it."""
    base = _place(paper, section, name, files.results)
    if base is None:
        return None
    folder = f"results/{paper.key}/{section}/{name}"
    suffix = ".pdf" if section == "figures" else ".csv"
    made = read_provenance(base.with_suffix(suffix))
    told = {key: value for key, value in made.items() if key not in ("table", "caption")}
    provenance = files.write(json.dumps(told, indent=1), f"{folder}.json")
    if section == "figures":
        what = _picture(base.with_suffix(".svg"), f"{folder}.svg", files)
        copied = [("SVG", what["image"])]
    else:
        what = {"table": _unbroken(made.get("table"))}
        copied = [
            (suffix[1:].upper(), files.copy(path, f"{folder}{suffix}"))
            for suffix in (".tex", ".csv")
            if (path := base.with_suffix(suffix)).exists()
        ]
    return {
        **what,
        "name": name,
        "anchor": _anchor(section, name),
        "caption": captions.of(paper, section, name),
        "runs": Counter(
            run.experiment
            for run in _list_stated_runs(paper.output_runs(section, name), files.results)
        ),
        "files": [*copied, ("provenance", provenance)],
    }


def _unbroken(table: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return a table of which numbers, what print has, intervals and ties each stay on one line."""
    if table is None:
        return None

    def cell(text: str) -> str:
        return UNBROKEN.sub(lambda part: part[0].replace(" ", "\N{NO-BREAK SPACE}"), text)

    return {**table, "rows": [[cell(text) for text in row] for row in table["rows"]]}


def _list_stated_runs(runs: Iterable[Run], results: Path) -> Iterator[Run]:
    """Yield the runs that were made; what the arena chose is on its cards."""
    made: dict[str, Mapping[str, Any]] = {}
    for run in runs:
        folder = results / run.paper / run.experiment
        if run.experiment not in made:
            there = (folder / "metrics.csv").exists()
            made[run.experiment] = read_documents(folder) if there else {}
        if run.arena is None and digest(made[run.experiment].get(run.name, {})) == run.digest:
            yield run


def _runs(paper: Study, files: Files) -> dict[str, list[tuple[str, str]]]:
    """Write what states every parameter of a run; return names and paths by experiment."""
    found: dict[str, list[tuple[str, str]]] = {}
    for run in _list_stated_runs(paper.runs.values(), files.results):
        # Names of runs have marks that a host of pages may take for its own.
        path = f"runs/{re.sub(r'[^A-Za-z0-9_./-]', '-', run.folder)}.yaml"
        text = dump_yaml(run.document)
        found.setdefault(run.experiment, []).append((run.name, files.write(text, path)))
    return found


def _picture(source: Path, path: str, files: Files) -> dict[str, Any]:
    """Write a figure to a path of the site, and return that and its size in pixels."""
    svg = read_text(source)
    found: dict[str, Any] = {"image": files.write(_shortened(svg), path)}
    if size := re.search(r'<svg[^>]* width="([\d.]+)pt" height="([\d.]+)pt"', svg):
        found["width"], found["height"] = (round(float(text) * 4 / 3) for text in size.groups())
    return found


def _shortened(svg: str) -> str:
    """Return a picture in fewer bytes: names, groups, decimals that nobody sees are left out."""
    try:
        from scour import scour  # of an extra
    except ModuleNotFoundError as error:
        raise needs(error) from error
    said = "--enable-id-stripping --shorten-ids --remove-metadata --enable-comment-stripping"
    options = scour.parse_args(
        [*said.split(), "--indent=none", "--no-line-breaks", "--set-precision=4", "--quiet"]
    )
    return str(scour.scourString(svg, options))


def needs(error: ModuleNotFoundError) -> ConcordError:
    """Return the error that names a library of the site that is not installed."""
    return ConcordError(
        f"the site needs {error.name}; install the extra `docs` of concord-bayes (`make site` does)"
    )


def _universes(paper: Study, rows: Sequence[Row], files: Files) -> dict[str, Any] | None:
    """Return the page, the table and the pictures of a multiverse, None where there is none."""
    folder = f"results/{paper.key}/multiverse"
    table = files.results / paper.key / "multiverse.csv"
    if not table.exists():
        return None
    judged = {row["claim"] for row in rows}
    drawn = {path.stem: path for path in _sealed(table, ".svg")}
    of_claims = {f"claim_{name}": name for name in paper.claims}
    pictures = []
    for stem in sorted(drawn, key=lambda stem: (stem in of_claims, stem)):
        claim = of_claims.get(stem)
        pictures.append(
            {
                **_picture(drawn[stem], f"{folder}/{stem}.svg", files),
                "name": stem,
                "anchor": f"universes-{stem}",
                "says": paper.claims[claim].says if claim else None,
                "claim": claim if claim in judged else None,
            }
        )
    return {
        "pictures": pictures,
        "table": files.copy(table, f"{folder}.csv"),
        "page": f"multiverse/{paper.key}.html" if multiverse(files.results / paper.key) else None,
        "about": "docs/multiverse.html" if (HOME / "docs" / "multiverse.md").exists() else None,
    }


def multiverse(folder: Path) -> Path | None:
    """Return the page of a paper's multiverse as Markdown, which becomes one of the site."""
    table = folder / "multiverse.csv"
    return next(iter(_sealed(table, ".md")), None) if table.exists() else None


def _arena(paper: Study, files: Files) -> dict[str, Any] | None:
    """Return the scores and cards of an arena, None where there are none."""
    source = files.results / paper.key
    if not _scored(paper, files.results):
        return None
    folder = f"results/{paper.key}"
    names, own = paper.sections.names, [card.stem for card in cards(source)]
    called = {entry: words.name("entry", entry, names) for entry in own}
    rows = explored(source / "scores.csv")
    parts = sorted({part for task in rows["names"] if "=" in task for part in task.split("+")})
    labels = (part.partition("=") for part in parts)
    texts = {f"{key}={value}": words.label(key, value, names) for key, _, value in labels}
    shown = {**rows, "called": called | texts}
    script = json.dumps(shown, separators=(",", ":"), allow_nan=False)
    return {
        "explorer": files.write(f"var concordScores={script};\n", f"curves/{paper.key}/scores.js"),
        "scores": files.packed(source / "scores.csv", f"{folder}/scores.csv.gz"),
        "cards": [(name, f"cards/{paper.key}/{entry}.html") for entry, name in called.items()],
    }


def explored(table: Path) -> dict[str, Any]:
    """Return what the explorer of scores shows: b2 of all entries, ``names`` by their numbers.

    A row has the numbers of experiment, task, entry, price, level and state, and value, lo, hi.
    """
    names: dict[str, int] = {}
    rows: list[list[Any]] = []
    for row in csv.DictReader(io.StringIO(read_text(table))):
        if row["score"] in ("b2", ""):
            texts = (row[key] for key in EXPLORED)
            rows.append([names.setdefault(text, len(names)) for text in texts])
            for end in (row[key] for key in ("value", "lo", "hi")):
                known = end not in ("", "inf")
                rows[-1].append(float(f"{float(end):.3g}") if known else None)
    return {"names": list(names), "rows": rows}


EXPLORED = ("experiment", "task", "entry", "price", "level", "state")


def cards(folder: Path) -> list[Path]:
    """Return the cards of an arena's entries as Markdown, which become pages of the site."""
    table = folder / "scores.csv"
    return sorted(_sealed(table, ".md")) if table.exists() else []


def _sealed(table: Path, suffix: str) -> list[Path]:
    """Return the files that were made with a table, of those with a suffix."""
    made = (table.parent / name for name in read_provenance(table)["sha256"])
    return [path for path in made if path.suffix == suffix]


def _curves(paper: Study, names: Sequence[str], files: Files) -> dict[str, str] | None:
    """Write the curves of figures as a script, and return where it is."""
    if not names or (found := curves(paper, names, files.results)) is None:
        return None
    name = f"{paper.key}/{names[0]}"
    data = json.dumps({"name": names[0], **found}, separators=(",", ":"), allow_nan=False)
    data = re.sub(r"(?<=[\[,])0\.", ".", data)  # a script may have .5 for 0.5
    script = f"concordCurves[{json.dumps(name)}]={data};\n"
    return {"name": name, "path": files.write(script, f"curves/{name}.js")}


def _notes(paper: Study) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield kind, heading and entries of what is noted of a paper."""
    errata, differences = paper.sections.errata, paper.sections.discrepancies
    kinds: dict[tuple[str, str], tuple[Mapping[str, Any], tuple[tuple[str, str], ...]]] = {
        ("assumption", "What the paper does not state"): (
            paper.assumptions,
            (("", "value"), ("because", "reason")),
        ),
        ("erratum", "Where the text is inconsistent"): (errata, (("", "where"), ("", "text"))),
        ("discrepancy", "Where the released code differs from the text"): (
            differences,
            (("text", "text"), ("code", "code")),
        ),
    }
    for (kind, heading), (stated, keys) in kinds.items():
        notes = [
            {
                "name": name,
                "texts": [(head, text) for head, key in keys if (text := getattr(note, key))],
                "claim": note.checked_by if isinstance(note, Discrepancy) else "",
            }
            for name, note in stated.items()
        ]
        yield kind, heading, notes


def findings(
    papers: Mapping[str, Study],
    claims: Sequence[dict[str, Any]],
    wanted: Sequence[str],
    output: Path,
) -> list[dict[str, Any]]:
    """Return the claims that the first page shows: those wanted, else the first with a figure."""
    stated = {f"{key}/{claim}" for key, paper in papers.items() for claim in paper.claims}
    for name in wanted:
        if name not in stated:
            raise ConcordError(
                f"config.yaml: findings: there is no claim {short(name)}; {nearest(name, stated)}"
            )
    known = {f"{claim['paper']}/{claim['name']}": claim for claim in claims}
    chosen = [known[name] for name in wanted if name in known] or [
        claim for claim in claims if claim["figure"] in papers[claim["paper"]].sections.figures
    ][:5]

    shown: set[str] = set()

    def image(claim: Mapping[str, Any]) -> str | None:
        path = f"results/{claim['paper']}/figures/{claim['figure']}.svg"
        if path in shown or not (output / path).exists():
            return None
        shown.add(path)  # a picture is seen once
        return path

    return [
        {
            **claim,
            "path": f"papers/{claim['paper']}.html#claim-{claim['name']}",
            "image": image(claim),
        }
        for claim in chosen
    ]
