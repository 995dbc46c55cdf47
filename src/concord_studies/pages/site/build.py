"""The site: papers, findings and documents as pages that open from a disk and need no network.

Every page is Markdown: made of the results at hand, or a document as it is. Sphinx makes them HTML.
"""

import gzip
import io
import posixpath
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from concord import __version__
from concord.errors import ConcordError, nearest, short
from concord.progress import each
from concord_studies.claims import ledger
from concord_studies.claims.ledger import Row, is_smoke
from concord_studies.claims.verdicts import NOT_RUN
from concord_studies.configuration.config import results_folder
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.home import HOME
from concord_studies.io import read_text
from concord_studies.markup import fenced, fold, markdown
from concord_studies.pages import claims as of_claims
from concord_studies.pages.findings import item, sentences
from concord_studies.pages.site import papers, reference
from concord_studies.provenance import describe

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "config/README.md", "docs")
BESIDE = ("src", "profiles", "workflow", "envs", "LICENSE")  # what documents link to
LEAD = """Each agent of a network, say a hospital, keeps its data to itself and exchanges its
current samples with neighbors only. Together the agents sample the posterior that all data give.
Concord reproduces the papers on such samplers figure by figure, judges every claim by a stated
rule, and compares all samplers, yours too, at the same price: gradients computed, or bytes sent."""
# What the first page leads to, where the documents are at hand.
START = (
    ("docs/your-data", "Sample your own data in a notebook"),
    ("docs/your-sampler", "Compare your own sampler with DE-SGLD, in ten minutes"),
    ("docs/recommend", "Find the sampler for your problem, network and budget"),
    ("docs/reproduce", "Reproduce a paper"),
)
COMMANDS = """snakemake          # every figure and table that needs no download
snakemake ledger   # the verdicts, and the runs that only they read
snakemake site     # these pages, of whatever has been made"""

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
    "html_static_path": [str(Path(__file__).parent / "concord.css")],
    "html_css_files": ["concord.css"],
    "html_show_sphinx": False,
    "html_show_sourcelink": False,
    "html_copy_source": False,
    "html_permalinks_icon": "¶",
    "exclude_patterns": [*(name for name in BESIDE if name != "LICENSE"), "results"],
    "autodoc_typehints": "none",
    "pygments_style": "a11y-high-contrast-light",
    "show_warning_types": True,
    "smartquotes": False,  # texts of studies are shown as they are typed
}


def site(
    config: Path, results: Path | None, output: Path, changes: Mapping[str, Any] | None = None
) -> None:
    """Make the site of the results at hand, in a folder that it replaces.

    config: folder of the configuration.
    results: folder of the results, None for that of the configuration; figures and tables that are
    not there are left out, and the committed verdicts stand for those that are not.
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
        source, made = Path(name, "source"), Path(name, "site")
        source.mkdir()
        _write_pages(config, settings, studies, results, source)
        _run_sphinx(source, made, Path(name, "doctrees"))
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(made, output)


def _write_pages(
    config: Path,
    settings: Mapping[str, Any],
    studies: Mapping[str, Study],
    results: Path,
    source: Path,
) -> None:
    """Write the sources of all pages; ``results`` among them is a link to the results."""

    def write(name: str, text: str) -> str:
        path = source / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return name

    (source / "results").symlink_to(results.resolve())
    groups = _copy_documents(source)
    expected = config / "expected_verdicts.yaml"
    known = ledger.expected_rows(expected) if _are_comparable(settings, expected) else []
    judged: list[Row] = []
    rows: list[Row] = []
    for key, study in each(list(studies.items()), "studies"):
        table = results / key / "claims.csv"
        own = list(ledger.read_rows(table)) if table.exists() else []
        judged += own
        seeds = ledger.unvaried(own, expected)
        own = _fill(own, of_claims.committed(study, known))
        rows += own
        write(f"papers/{key}", papers.page(study, own, results, seeds))
        _pack_numbers(results / key, source / "numbers" / key)
        for card in papers.cards(results / key):
            write(f"cards/{key}/{card.stem}", read_text(card))
        if found := papers.universes(results / key):
            page, pictures = found
            text = papers.of_universes(study, results, read_text(page), pictures)
            write(f"multiverse/{key}", text)
    if rows:
        called = {key: study.name for key, study in studies.items()}
        seeds = ledger.unvaried(judged, expected)
        write("claims", of_claims.ledger(rows, seeds, called, "papers/{}.md"))
    kinds = [
        write(f"reference/{name}", text)
        for name, text in reference.pages(_find_pictures(studies, results))
    ]

    def group(heading: str, pages: Sequence[str]) -> list[str]:
        """Write a page that lists others, which the navigation folds; nothing of none."""
        name = f"all/{re.sub('[^a-z]+', '-', heading.lower())}"
        return [write(name, f"# {heading}\n\n{_list_pages(pages, titles)}")] if pages else []

    titles = {f"papers/{key}": study.name for key, study in studies.items()}
    titles |= {f"multiverse/{key}": study.name for key, study in studies.items()}
    universes = [
        f"multiverse/{key}" for key in studies if (source / f"multiverse/{key}.md").exists()
    ]
    ours = [key for key, study in studies.items() if not study.printed]
    arenas = [f"papers/{key}" for key in ours if studies[key].arenas]
    comparisons = [f"papers/{key}" for key in ours if not studies[key].arenas]
    # At most 30 entries are open at once, whatever page is shown (tested).
    trees = {
        "Papers": [f"papers/{key}" for key, study in studies.items() if study.printed],
        "Findings": [*["claims"] * bool(rows), *group("What verdicts depend on", universes)],
        "Comparisons": [*arenas, *group("Other comparisons", comparisons)],
        "Documents": [name for part, pages in groups.items() for name in group(part, pages)],
        "Kinds": group("Kinds, options and functions", kinds),
    }
    trees = {part: pages for part, pages in trees.items() if pages}
    options = ":hidden:\n:caption: {}\n"
    lists = [_list_pages(pages, titles, options.format(part)) for part, pages in trees.items()]
    found = _list_findings(studies, rows, settings["findings"])
    compared = ledger.compare(judged, expected)
    write("index", "\n".join([*_front(settings, source, rows, judged, found, compared), *lists]))


def _pack_numbers(folder: Path, packed: Path) -> None:
    """Pack the metrics of a study's experiments by gzip into another folder."""
    packed.mkdir(parents=True)
    for table in folder.glob("*/metrics.csv"):
        path = packed / f"{table.parent.name}.csv.gz"
        path.write_bytes(gzip.compress(table.read_bytes(), mtime=0))


def _fill(rows: Sequence[Row], committed: Sequence[Row]) -> list[Row]:
    """Return a study's verdicts, in the place of those that were not judged the committed ones."""

    def place(row: Row) -> tuple[str, ...]:
        return row["claim"], row["case"], row["reading"]

    stated = {place(row): row for row in committed}
    filled = [stated.get(place(row), row) if row["verdict"] == NOT_RUN else row for row in rows]
    return filled or list(committed)


def _are_comparable(settings: Mapping[str, Any], expected: Path) -> bool:
    """Return whether committed verdicts are those of the scale of these results."""
    return expected.exists() and settings["scale"] != "smoke"


def _front(
    settings: Mapping[str, Any],
    source: Path,
    rows: Sequence[Row],
    judged: Sequence[Row],
    found: Sequence[str],
    compared: ledger.Comparison,
) -> list[str]:
    """Return the lines of the first page: what was found, how to start, how it was made."""
    lines = ["# Concord", "", LEAD, ""]
    picture = source / "docs" / "example.png"
    if settings["scale"] == "smoke":
        lines += [f"**{ledger.SMOKE}**", ""]
    if found:
        lines += ["## What was found", "", of_claims.notes(rows, ""), "", *found, ""]
        lines += ["[All claims of all papers](claims.md)", ""]
    if picture.exists():
        lines += [f"![{PICTURE}](docs/example.png)", ""]
    started = [f"- [{text}]({name}.md)" for name, text in START if (source / f"{name}.md").exists()]
    lines += ["## How to start", "", *started, "", *fenced("text", COMMANDS)]
    made = describe()
    lock = (made["lock"] or "unknown")[:12]
    lines += [
        "## How it was made",
        "",
        f"Concord {made['concord']}, commit `{made['commit'] or 'unknown'}`, master seed "
        f"{settings['seed']}, Python {made['python']}, libraries of the lock file `{lock}`. Every "
        "figure has its provenance beside it.",
        "",
    ]
    if compared.compared is not None:
        others = (*compared.changed, *compared.seeds, *compared.new)
        listed = [f"- {markdown(line)}" for line in others]
        lines += [markdown(compared.text), "", *fold("Which are not the same", listed)]
    return lines


PICTURE = (
    "DE-SGHMC on linear regression, on two networks and without edges: an agent's draws stay far "
    "from the posterior, the network average comes close."
)


def _list_findings(
    studies: Mapping[str, Study], rows: Sequence[Row], wanted: Sequence[str]
) -> list[str]:
    """Return the claims that the first page shows as a list: those wanted, else the first five."""
    stated = {f"{key}/{claim}" for key, study in studies.items() for claim in study.claims}
    for name in wanted:
        if name not in stated:
            raise ConcordError(
                f"config.yaml: findings: there is no claim {short(name)}; {nearest(name, stated)}"
            )
    found = {f"{one.row['paper']}/{one.row['claim']}": one for one in sentences(rows)}
    lines = []
    for name in [name for name in wanted if name in found] or list(found)[:5]:
        study = studies[found[name].row["paper"]]
        text = item(found[name], study.sections.names, is_smoke(rows))
        lines.append(f"{text} ([{markdown(study.name)}](papers/{study.key}.md))")
    return lines


def _list_pages(pages: Iterable[str], titles: Mapping[str, str], options: str = "") -> str:
    """Return links to pages, which are in the navigation too."""
    lines = [f"{titles[name]} </{name}>" if name in titles else f"/{name}" for name in pages]
    return "\n".join(fenced("{toctree}", "\n".join([options, *lines])))


def _find_pictures(studies: Mapping[str, Study], results: Path) -> dict[str, str]:
    """Return a picture of each kind of figure: the first that has been made, or the docs'."""
    found = {
        path.stem: f"/docs/figures/{path.name}" for path in (HOME / "docs/figures").glob("*.png")
    }
    made = {}
    for study in studies.values():
        for name, entry in study.sections.figures.items():
            if path := papers.path_of(study, "figures", name, results):
                made.setdefault(entry.kind, f"/results/{study.key}/figures/{path.name}")
    return found | made


def _copy_documents(source: Path) -> dict[str, list[str]]:
    """Copy the documents, and return their names by the headings of docs/index.md.

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
    index = source / "docs" / "index.md"
    if not index.exists():
        return {}
    parts = re.split(r"^## (.*)$", read_text(index), flags=re.M)[1:]
    listed = {
        heading: [
            posixpath.normpath(f"docs/{link}") for link in re.findall(r"\]\(([^)#:]+)\.md\)", text)
        ]
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }
    index.unlink()
    known = {name for names in listed.values() for name in names}
    names = sorted(f"docs/{path.stem}" for path in (source / "docs").glob("*.md"))
    listed.setdefault("How-to", []).extend(name for name in names if name not in known)
    return listed


def _run_sphinx(source: Path, output: Path, doctrees: Path) -> None:
    """Make HTML of a folder of documents; Sphinx's warnings are errors."""
    try:
        import furo  # noqa: F401
        from sphinx.application import Sphinx  # of an extra, like the others
        from sphinx.errors import SphinxError
        from sphinx.util import console
        from sphinx.util.docutils import docutils_namespace
    except ModuleNotFoundError as error:
        raise ConcordError(
            f"the site needs {error.name}; install the extra `docs` of concord-bayes "
            "(`make site` does)"
        ) from error
    console.nocolor()
    said, warned = io.StringIO(), io.StringIO()
    try:
        with docutils_namespace():  # so that a process can make another
            app = Sphinx(
                *(source, None, output, doctrees, "html"),
                confoverrides=SETTINGS,
                status=said,
                warning=warned,
            )
            app.build()
    except SphinxError as error:
        raise ConcordError(f"the site could not be made: {error}") from error
    if warnings := warned.getvalue().replace(str(source), "").strip():
        print(warnings, file=sys.stderr)
        raise ConcordError("the site could not be made: correct what Sphinx warns of above")
