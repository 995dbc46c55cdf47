"""The site: papers, findings and documents as pages that open from a disk and need no network.

Pages are put together as sources of Sphinx, of the results at hand; Sphinx makes them HTML.
"""

import posixpath
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from concord import __version__
from concord.errors import ConcordError
from concord.progress import each
from concord.rooms import ROOMS
from concord_studies.claims import ledger
from concord_studies.claims.ledger import Row
from concord_studies.configuration.config import load_config, results_folder
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.home import HOME
from concord_studies.io import read_text
from concord_studies.markup import table_of
from concord_studies.pages import claims as of_claims
from concord_studies.pages.site import papers as pages
from concord_studies.pages.site import reference
from concord_studies.pages.site.papers import Files
from concord_studies.pages.site.parts import raw, title
from concord_studies.provenance import describe

STATIC = Path(__file__).parent / "static"
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "config/README.md", "docs")
BESIDE = ("src", "profiles", "workflow", "envs", "LICENSE")  # what documents link to
INDEX = HOME / "docs" / "index.md"
# What the first page leads to.
START = (
    ("docs/your-data", "Sample your own data in a notebook"),
    ("docs/your-sampler", "Compare your own sampler with DE-SGLD, in ten minutes"),
    ("docs/recommend", "Find the sampler for your problem, network and budget"),
    ("docs/reproduce", "Reproduce a paper"),
)

# What the theme draws in the color of the project.
BRAND = ("color-brand-primary", "color-brand-content", "color-link--visited")
SETTINGS: dict[str, Any] = {
    "project": "Concord",
    "html_title": "Concord",
    "copyright": "the Concord developers",
    "version": __version__,
    "extensions": [
        *("myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"),
        "concord_studies.pages.site.extension",
    ],
    "myst_enable_extensions": ["dollarmath"],
    "myst_heading_anchors": 4,
    "html_theme": "furo",
    "html_theme_options": {
        "light_css_variables": {
            **dict.fromkeys(BRAND, "#0b5c8a"),
            "color-foreground-muted": "#5c6370",
        },
        "dark_css_variables": {
            **dict.fromkeys(BRAND, "#7cc4f5"),
            "color-foreground-muted": "#a4acb8",
        },
    },
    "html_static_path": [str(STATIC)],
    "html_css_files": ["concord.css"],
    "html_js_files": [(name, {"defer": "defer"}) for name in ("explorer.js", "scores.js")],
    "html_show_sphinx": False,
    "html_show_sourcelink": False,
    "html_copy_source": False,
    "html_permalinks_icon": "¶",
    "exclude_patterns": ["src", "profiles", "workflow", "envs", "results"],
    "autodoc_typehints": "none",
    "pygments_style": "a11y-high-contrast-light",
    "nitpicky": False,
    "show_warning_types": True,
}


def site(
    config: Path, results: Path | None, output: Path, changes: Mapping[str, Any] | None = None
) -> None:
    """Make the site of the results at hand, in a folder that it replaces.

    config: folder of the configuration.
    results: folder of the results, None for that of the configuration; figures, tables and verdicts
    that are not there are left out.
    output: folder of the site. One that holds anything else is refused.
    changes: what is set in place of ``config.yaml``'s keys.
    A ConcordError if Sphinx is not installed, warns, or the folder is not the site's.
    """
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise ConcordError(f"{output}: it is no folder; remove it, or name another one")
    if output.is_dir() and any(output.iterdir()) and not (output / ".buildinfo").exists():
        raise ConcordError(f"{output}: it holds files that are not a site's; name another folder")
    settings, studies = load_studies(config, changes)
    results = results_folder(settings) if results is None else results
    if not results.is_dir():
        raise ConcordError(f"{results}: there are no results; snakemake makes them")
    with tempfile.TemporaryDirectory() as name:
        source, extra = Path(name, "source"), Path(name, "extra")
        source.mkdir()
        extra.mkdir()
        _write(config, settings, studies, results, source, extra)
        made = Path(name, "site")
        _sphinx(source, made, Path(name, "doctrees"))
        (made / "objects.inv").unlink(missing_ok=True)
        shutil.rmtree(made / "_sources", ignore_errors=True)
        shutil.copytree(extra, made, dirs_exist_ok=True)
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(made, output)


def _write(
    config: Path,
    settings: Mapping[str, Any],
    studies: Mapping[str, Study],
    results: Path,
    source: Path,
    extra: Path,
) -> None:
    """Write the sources of all pages; ``extra`` gets what they show, which Sphinx leaves alone."""

    def write(page: str, *parts: str) -> None:
        path = source / f"{page}.rst"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(parts) + "\n", "utf-8")

    files = Files(results, extra)
    rows: list[Row] = []
    claims: list[dict[str, Any]] = []
    shown, lacking = [], {}
    expected = config / "expected_verdicts.yaml"
    compared = expected.exists() and settings["scale"] != "smoke"
    known = ledger.expected_rows(expected) if compared else []
    judged: list[Row] = []
    typed = _typed(config, settings)
    for key, paper in each(list(studies.items()), "studies"):
        table = results / key / "claims.csv"
        mine = list(ledger.read_rows(table)) if table.exists() else []
        lacking[key] = pages.missing(paper, mine, results)
        if not pages.made(paper, mine, results):
            continue
        shown.append(key)
        judged += mine
        seeds = ledger.unvaried(mine, expected)
        mine = mine or of_claims.committed(paper, known)
        rows += mine
        claims += pages.summarized(mine, paper.sections.names)
        own = [(key if target == "reproduce" else target, what) for target, what in lacking[key]]
        write(f"papers/{key}", pages.page(paper, mine, files, _todo({"": own}, typed), seeds))
    ours = [key for key in shown if not studies[key].printed]
    board, seeds = pages.board(rows), ledger.unvaried(judged, expected)
    called = {key: study.name for key, study in studies.items()}
    smoke = ledger.SMOKE if settings["scale"] == "smoke" else ""
    if rows:
        listed = raw(
            "ledger",
            root="",
            claims=claims,
            papers=list(dict.fromkeys(row["paper"] for row in rows)),
            called=called,
            verdicts=board["verdicts"],
            smoke=smoke,
            notes=of_claims.notes(rows, seeds),
            intervals=ledger.INTERVALS,
        )
        (extra / "claims.csv").write_text(table_of(ledger.COLUMNS, rows), "utf-8")
        write("claims", title("Claims", "#"), listed)
    universes = []
    for key in shown:
        for card in pages.cards(results / key):  # its arena's page leads to it
            _markdown(source, f"cards/{key}/{card.stem}", "---\norphan: true\n---\n", card)
        if made := pages.multiverse(results / key):
            universes.append(_markdown(source, f"multiverse/{key}", "", made))
    documents = _documents(source)
    kinds: list[str] = []
    functions = ["config/README"] if (source / "config/README.md").exists() else []
    for name, text in reference.pages(_pictures(studies, extra)):
        (kinds if name in ROOMS else functions).append(f"reference/{name}")
        write(f"reference/{name}", text)
    front = raw(
        "front",
        root="",
        findings=pages.findings(studies, claims, settings["findings"], extra),
        called=called,
        printed=[key for key in shown if key not in ours],
        tutorials=[(path, heading) for path, heading in START if (source / f"{path}.md").exists()],
        board=board,
        todo=_todo({called[key]: things for key, things in lacking.items()}, typed),
        commands=[
            (typed("reproduce"), "every figure and table that needs no download"),
            (typed("ledger"), "the verdicts, and the runs that only they read"),
            (typed("site"), "these pages, of whatever has been made"),
        ],
        compared=ledger.compare(judged, expected),
        smoke=smoke,
        notes=of_claims.notes(rows, seeds),
        made=describe(),
        seed=settings["seed"],
    )
    titles = {
        f"{folder}/{key}": called[key] for key in shown for folder in ("papers", "multiverse")
    }

    def group(heading: str, found: Iterable[str]) -> list[str]:
        """Write a page that lists others, which the navigation folds; nothing of nothing."""
        if not found:
            return []
        name = f"all/{re.sub('[^a-z]+', '-', heading.lower())}"
        text = "Every page of this kind, by name."
        write(name, title(heading, "#"), text, _tree(found, titles))
        return [name]

    whole = [key for key in shown if key not in ours and not studies[key].about.read]
    others = [f"papers/{key}" for key in shown if studies[key].about.read]
    # At most 30 entries are open at once, whatever page is shown (tested).
    trees = {
        "Papers": [*(f"papers/{key}" for key in whole), *group("Judged by their code", others)],
        "Findings": ["claims"] * bool(rows) + group("What verdicts depend on", universes),
        "Compare": [f"papers/{key}" for key in ours],
        "Learn": [
            *(n for part in ("Tutorials", "How-to") for n in group(part, documents.pop(part, []))),
            *group("Explanation", documents.pop("Explanation", [])),
        ],
        "Reference": [
            *(name for found in documents.values() for name in found if name not in functions),
            *group("Kinds and their options", kinds),
            *group("Keys and functions", functions),
        ],
    }
    hidden = "   :hidden:\n   :caption: "
    index = [_tree(found, titles, hidden + part) for part, found in trees.items() if found]
    write("index", title("Concord", "#"), front, *index)


def _markdown(source: Path, name: str, head: str, page: Path) -> str:
    """Take over a page of the results, below a head."""
    path = source / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + read_text(page), "utf-8")
    return name


def _tree(found: Iterable[str], titles: Mapping[str, str], options: str = "") -> str:
    """Return links to pages, which are in the navigation too."""
    lines = [f"   {titles[name]} <{name}>" if name in titles else f"   {name}" for name in found]
    lines = [re.sub(r"(<|^   )(?=\w[^<]*$)", r"\1/", line) for line in lines]
    return "\n".join([".. toctree::", *([options] if options else []), "", *lines])


def _typed(config: Path, settings: Mapping[str, Any]) -> Callable[[str], str]:
    """Return what somebody types for a target, with what was set for this site, too."""
    stated = load_config(config / "config.yaml")
    changed = [
        f"{key}={settings[key]}" for key in ("scale", "seed") if settings[key] != stated[key]
    ]
    makefile = config.resolve() == HOME / "config" and (HOME / "Makefile").exists()

    def typed(target: str) -> str:
        if makefile and not changed and target in ("reproduce", "arena", "multiverse", "site"):
            return f"make {target}"
        settings = list(changed)
        if target == "multiverse":  # verdicts are to wait for it
            target, settings = "multiverse ledger", [*settings, "multiverse=true"]
        return " ".join(["snakemake", target, *(["--config", *settings] if settings else [])])

    return typed


def _todo(
    lacking: Mapping[str, Iterable[tuple[str, str]]], typed: Callable[[str], str]
) -> list[tuple[str, list[str]]]:
    """Return what has not been made, and of which studies, by the command that makes it."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, things in lacking.items():
        for target, what in things:
            found.setdefault(typed(target), {}).setdefault(what, []).append(name)
    return [
        (command, [f"{what}: {'; '.join(of)}" if any(of) else what for what, of in parts.items()])
        for command, parts in found.items()
    ]


def _pictures(studies: Mapping[str, Study], extra: Path) -> dict[str, str]:
    """Return a picture of each kind of figure: the first that has been made, or the docs'."""
    found: dict[str, str] = {}
    for paper in studies.values():
        for name, entry in paper.sections.figures.items():
            path = extra / "results" / paper.key / "figures" / f"{name}.svg"
            if path.exists():
                found.setdefault(entry.kind, str(path.relative_to(extra)))
    for path in (HOME / "docs" / "figures").glob("*.png"):
        if path.stem not in found:
            found[path.stem] = f"reference/{path.name}"
            (extra / "reference").mkdir(exist_ok=True)
            shutil.copyfile(path, extra / "reference" / path.name)
    return found


def _documents(source: Path) -> dict[str, list[str]]:
    """Copy the documents, and return them by the headings of docs/index.md.

    A page that the index does not list is one on how to do something.
    """
    for name in BESIDE:
        if (HOME / name).exists():
            (source / name).symlink_to(HOME / name)
    for name in DOCUMENTS:
        path = HOME / name
        if path.is_dir():
            shutil.copytree(path, source / name)
        elif path.exists():
            (source / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(path, source / name)
    if not INDEX.exists():
        return {}
    parts = re.split(r"^## (.*)$", read_text(INDEX), flags=re.M)[1:]
    listed = {
        heading: [
            posixpath.normpath(f"docs/{link}") for link in re.findall(r"\]\(([^)#:]+)\.md\)", text)
        ]
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }
    known = {name for names in listed.values() for name in names}
    others = sorted(
        f"docs/{path.stem}"
        for path in (source / "docs").glob("*.md")
        if f"docs/{path.stem}" not in known and path.stem != "index"
    )
    listed.setdefault("How-to", []).extend(others)
    (source / "docs" / "index.md").unlink()
    return listed


def _sphinx(source: Path, output: Path, doctrees: Path) -> None:
    try:
        from concord_studies.pages.site import sphinx_html  # of an extra
    except ModuleNotFoundError as error:
        raise pages.needs(error) from error
    sphinx_html.make(source, output, doctrees, SETTINGS)
