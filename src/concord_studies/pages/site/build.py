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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from concord import __version__, kinds
from concord.errors import ConcordError
from concord.progress import each
from concord_studies.claims import ledger
from concord_studies.claims.ledger import Row
from concord_studies.configuration.config import results_folder
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.home import HOME
from concord_studies.io import read_text
from concord_studies.markup import fence, format_csv, index_entries, line
from concord_studies.pages import claims as of_claims
from concord_studies.pages import notebooks
from concord_studies.pages.site import claims, front, papers, reference

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "config/README.md", "docs")
# The site's pages to which documents lead where they say what "`make site` has".
SITE_PAGES = {"samplers": "reference/samplers", "python": "reference/python"}
LINKED = ("src", "profiles", "workflow", "envs", "LICENSE")  # what documents link to
# What the theme draws in the color of the project.
BRAND = ("color-brand-primary", "color-brand-content", "color-link--visited")
COLORS = 64  # of a picture that was a PNG
HEAVIEST = 1_500_000  # bytes of a page and its pictures, above which the log names it
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
            **{"color-fails": "#b3261e", "color-open": "#8a5a00", "color-holds": "#1b6e3c"},
            "color-foreground-muted": "#5c6370",
        },
        "dark_css_variables": {
            **dict.fromkeys(BRAND, "#7cc4f5"),
            **{"color-fails": "#ff9b93", "color-open": "#e8b34b", "color-holds": "#6fd195"},
            "color-foreground-muted": "#a4acb8",
        },
    },
    "html_static_path": [str(Path(__file__).parent / "concord.css"), str(claims.SCRIPT)],
    "html_css_files": ["concord.css"],
    "templates_path": [str(Path(__file__).parent / "templates")],
    "html_search_scorer": str(Path(__file__).parent / "search.js"),
    "html_show_sphinx": False,
    "html_show_sourcelink": False,
    "html_copy_source": False,
    "html_permalinks_icon": "¶",
    "exclude_patterns": [*(name for name in LINKED if name != "LICENSE"), "results"],
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
    studies = dict(sorted(studies.items(), key=lambda entry: entry[1].name.casefold()))
    results = results_folder(settings) if results is None else results
    if not results.is_dir():
        raise ConcordError(f"{results}: there are no results; snakemake makes them")
    with tempfile.TemporaryDirectory() as name:
        sources, pages = Sources(Path(name, "source"), results), Path(name, "site")
        for notebook in each(sorted(sources.folder.glob("docs/notebooks/*.md")), "notebooks"):
            notebooks.write_executed(notebook)
        kinds.use(*(study.path for study in studies.values()))  # a notebook may use others
        _write_pages(config, settings, studies, results, sources)
        _run_sphinx(sources.folder, pages, Path(name, "doctrees"))
        if sources.has("claims"):
            shutil.copyfile(sources.folder / claims.TABLE, pages / claims.TABLE)
        _lighten_pictures(pages)
        for page in sorted(pages.rglob("*.html")):
            if (weight := weigh(page)) > HEAVIEST:
                print(f"{page.relative_to(pages)}: {weight / 1e6:.1f} MB", file=sys.stderr)
        _size_pictures(pages)
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(pages, output)


class Sources:
    """The folder of the pages' sources: documents, pages, and a link to the results.

    documents: names of the documents' pages, by the part of the navigation in which they are.
    """

    def __init__(self, folder: Path, results: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "results").symlink_to(results.resolve())
        self.documents = _copy_documents(folder)

    def write(self, name: str, text: str) -> str:
        """Write a page and return its name."""
        path = self.folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return name

    def has(self, name: str) -> bool:
        """Whether there is a page of this name."""
        return (self.folder / f"{name}.md").exists()

    def write_group_page(
        self, heading: str, pages: Sequence[str], titles: Mapping[str, str]
    ) -> list[str]:
        """Write a page of links to other pages, which the navigation folds below it.

        heading: of the page. pages: the names of the others. titles: of pages, by their names;
        none: their own headings. Return the names of the pages written: one, or none without
        ``pages``.
        """
        name = f"all/{re.sub('[^a-z]+', '-', heading.lower())}"
        text = f"# {heading}\n\n{_list_pages(pages, titles)}"
        return [self.write(name, text)] if pages else []


def _write_pages(
    config: Path,
    settings: Mapping[str, Any],
    studies: Mapping[str, Study],
    results: Path,
    sources: Sources,
) -> None:
    """Write the Markdown sources of all pages of the site.

    config: the folder of the configuration. results: the folder of the results. sources: the folder
    that the sources are written into.
    """
    expected = config / "expected_verdicts.yaml"
    compared = expected.exists() and settings["scale"] != "smoke"
    committed = ledger.expected_rows(expected) if compared else []
    judged: list[Row] = []
    rows: list[Row] = []
    for key, study in each(list(studies.items()), "studies"):
        table = results / key / "claims.csv"
        verdicts = ledger.read_rows(table) if table.exists() else []
        judged += verdicts
        stated = of_claims.committed_rows(study, committed)
        shown = ledger.fill_in_committed(verdicts, stated) or stated
        rows += shown
        seeds = ledger.note_unvaried_seeds(verdicts, expected)
        _write_study(study, shown, results, seeds, sources)
    if rows:
        seeds = ledger.note_unvaried_seeds(judged, expected)
        sources.write("claims", claims.claims_table(studies, rows, seeds))
        (sources.folder / claims.TABLE).write_text(format_csv(ledger.COLUMNS, rows), "utf-8")
    if figures := papers.gallery(studies.values(), results, sources.folder):
        sources.write("figures", "\n".join(figures))
    pictures = _find_pictures(studies, results)
    kinds = [sources.write(f"reference/{n}", text) for n, text in reference.pages(pictures)]
    lines = front.page(settings, studies, rows, results, sources.has)
    lines += front.describe_origin(settings, ledger.compare(judged, expected))
    sources.write("index", "\n".join([*lines, *_list_navigation(studies, kinds, sources)]))


def _write_study(
    study: Study, rows: Sequence[Row], results: Path, seeds: str, sources: Sources
) -> None:
    """Write a study's page, with its cards and its multiverse, and pack its numbers.

    seeds: a sentence on other seeds, or "". sources: the folder that pages are written into.
    """
    folder = results / study.key
    sources.write(f"papers/{study.key}", papers.study_page(study, rows, results, seeds))
    for card in papers.find_cards(folder):
        sources.write(f"cards/{study.key}/{card.stem}", read_text(card))
    if multiverse := papers.find_multiverse(folder):
        page, pictures = multiverse
        text = papers.multiverse_page(study, results, read_text(page), pictures)
        sources.write(f"multiverse/{study.key}", text)
    packed = sources.folder / "numbers" / study.key
    packed.mkdir(parents=True)
    for table in folder.glob("*/metrics.csv"):
        path = packed / f"{table.parent.name}.csv.gz"
        path.write_bytes(gzip.compress(table.read_bytes(), mtime=0))


def _list_navigation(
    studies: Mapping[str, Study], kinds: Sequence[str], sources: Sources
) -> Iterator[str]:
    """Yield the lists of pages of the navigation, part by part.

    At most 40 entries are open at once, whatever page is shown (tested).
    """
    ours = [key for key, study in studies.items() if not study.printed]
    arenas = [f"papers/{key}" for key in ours if studies[key].arenas]
    others = [f"papers/{key}" for key in ours if not studies[key].arenas]
    surveyed = [f"multiverse/{key}" for key in studies if sources.has(f"multiverse/{key}")]
    folders = ("papers", "multiverse")
    titles = {
        f"{place}/{key}": papers.name_with_samplers(study)
        for place in folders
        for key, study in studies.items()
    }
    documents = [
        sources.write_group_page(part, pages, titles) for part, pages in sources.documents.items()
    ]
    parts = {
        "Papers": [f"papers/{key}" for key, study in studies.items() if study.printed],
        "Findings": [
            *(name for name in ("claims", "figures") if sources.has(name)),
            *sources.write_group_page("What verdicts depend on", surveyed, titles),
        ],
        "Comparisons": [*arenas, *sources.write_group_page("Other comparisons", others, titles)],
        "Documents": [name for names in documents for name in names],
        "Kinds": sources.write_group_page("Kinds, options and functions", kinds, titles),
    }
    for part, pages in parts.items():
        if pages:
            yield _list_pages(pages, titles, f":hidden:\n:caption: {part}\n")


def _list_pages(pages: Iterable[str], titles: Mapping[str, str], options: str = "") -> str:
    """Return links to pages, which are in the navigation too."""
    stated = {name: line(titles.get(name, "")) for name in pages}
    lines = [f"{title} </{name}>" if title else f"/{name}" for name, title in stated.items()]
    return "\n".join(fence("{toctree}", "\n".join([options, *lines])))


def _find_pictures(studies: Mapping[str, Study], results: Path) -> dict[str, str]:
    """Return a picture of each kind of figure: the first that has been made, or the docs'."""
    pictures: dict[str, str] = {}
    for study in studies.values():
        for name, entry in study.sections.figures.items():
            if path := papers.find_output(study, "figures", name, results):
                light = papers.choose_light(path).name
                pictures.setdefault(entry.kind, f"/results/{study.key}/figures/{light}")
    for path in (HOME / "docs/figures").glob("*.png"):
        pictures.setdefault(path.stem, f"/docs/figures/{path.name}")
    return pictures


def _copy_documents(source: Path) -> dict[str, list[str]]:
    """Copy the documents, and return their names by the headings of docs/index.md.

    A page that the index does not list is one on how to do something.
    """
    for name in LINKED:
        if (HOME / name).exists():
            (source / name).symlink_to(HOME / name)
    for name in DOCUMENTS:
        path = HOME / name
        if path.is_dir():
            shutil.copytree(path, source / name)
        elif path.exists():
            (source / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(path, source / name)
    for path in (source / "docs").glob("*.md"):
        title, _, rest = read_text(path).partition("\n\n")
        entries = index_entries([path.stem.replace("-", " ")])
        if page := SITE_PAGES.get(path.stem):
            for begins, word in ((r"(?<=\n\n)", "This"), ("", "this")):
                rest = re.sub(rf"{begins}`make site`(?= has)", f"[{word} site](/{page}.md)", rest)
        path.write_text("\n".join([title, "", *entries, rest]), "utf-8")
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
    index.write_text(f"---\norphan: true\n---\n{read_text(index)}", "utf-8")  # in no navigation
    index_names = {"docs/index", *(name for names in listed.values() for name in names)}
    names = {f"docs/{path.stem}" for path in (source / "docs").glob("*.md")}
    listed.setdefault("How-to", []).extend(sorted(names - index_names))
    return listed


def _lighten_pictures(pages: Path) -> None:
    """Replace the PNGs of pages by WebPs of 64 colors: a quarter of the bytes, alike to the eye."""
    from PIL import Image  # of matplotlib

    for path in (pages / "_images").glob("*.png"):
        with Image.open(path) as picture:
            few = picture.convert("RGB").quantize(COLORS, kmeans=1).convert("RGB")
        few.save(path.with_suffix(".webp"), lossless=True)
        path.unlink()
    for page in pages.rglob("*.html"):
        text = read_text(page)
        page.write_text(re.sub(r'(_images/[^"]*)\.png"', r'\1.webp"', text), "utf-8")


def _size_pictures(pages: Path) -> None:
    """Write the size of pictures into pages, whose places then stay as pictures are loaded."""
    sizes: dict[Path, str] = {}

    def add_size(found: re.Match[str]) -> str:
        """Return a picture's tag with its size in place of the style that Sphinx gave it."""
        path = (folder / unquote(found[2])).resolve()
        if path not in sizes:
            sizes[path] = _read_size(path)
        tag = f"{found[1]}{found[3]}".replace(' style="width: 100%;"', "")
        return f"{tag}{sizes[path]}{found[4]}"

    for page in pages.rglob("*.html"):
        folder = page.parent
        text = re.sub(r'(<img [^>]*?src="([^":]+)")([^>]*?)( ?/?>)', add_size, read_text(page))
        page.write_text(text, "utf-8")


def _read_size(path: Path) -> str:
    """Return width and height of a picture in CSS pixels, as attributes of HTML; "" if unknown."""
    if path.suffix == ".svg":
        found = re.search(r'<svg[^>]*? width="([\d.]+)pt" height="([\d.]+)pt"', read_text(path))
        size = [round(float(points) * 4 / 3) for points in found.groups()] if found else []
    elif path.suffix in (".webp", ".png", ".jpg"):
        from PIL import Image  # of matplotlib

        with Image.open(path) as picture:
            size = list(picture.size)
    else:
        size = []
    return f' width="{size[0]}" height="{size[1]}"' if size else ""


def weigh(page: Path) -> int:
    """Return the bytes of a page of HTML and of the pictures in it."""
    text = read_text(page)
    pictures = {
        page.parent / unquote(name) for name in re.findall(r'<img [^>]*src="([^":]+)"', text)
    }
    return len(text.encode()) + sum(path.stat().st_size for path in pictures)


def _run_sphinx(source: Path, output: Path, doctrees: Path) -> None:
    """Make HTML of a folder of sources, with a ConcordError for any warning of Sphinx."""
    try:
        from sphinx.application import Sphinx  # of an extra
        from sphinx.errors import SphinxError
        from sphinx.util import console
        from sphinx.util.docutils import docutils_namespace
    except ModuleNotFoundError as error:
        raise ConcordError(
            f"the site needs {error.name}; install the extra `docs` of concord-bayes "
            "(`make site` does)"
        ) from error
    console.nocolor()
    warned = io.StringIO()
    try:
        with docutils_namespace():  # so that a process can make another
            app = Sphinx(
                *(source, None, output, doctrees, "html"),
                confoverrides=SETTINGS,
                status=None,
                warning=warned,
            )
            app.build()
    except SphinxError as error:
        raise ConcordError(f"the site could not be made: {error}") from error
    if warnings := warned.getvalue().replace(str(source), "").strip():
        print(warnings, file=sys.stderr)
        raise ConcordError("the site could not be made: correct what Sphinx warns of above")
