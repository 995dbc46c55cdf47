"""The site at every stage of the results: no dead link, nothing false, findings first."""

import html
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile import HOSTILE

import by_hand
import everything as configured
from concord_studies import provenance
from concord_studies.claims import ledger, robustness
from concord_studies.configuration.config import load_config
from concord_studies.configuration.init import init
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.markup import format_csv
from concord_studies.pages.site import build, reference
from concord_studies.stages import judge
from page_links import dead, faults, pages

pytest.importorskip("furo", reason="pip install -e '.[docs]'")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning", "ignore::DeprecationWarning"),
]

ROOT = Path(__file__).parents[4]
KEY, OTHER = "gurbuzbalaban2021", "tzikas2024"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="36pt"></svg>'
TABLE = "| price | sampler | mean rank |\n| --- | --- | --- |\n| bytes | D-ULA | 1 |\n\nA note.\n"
EXPECTED = "config/expected_verdicts.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with what is configured beside two papers and the arena."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "config" / "studies" / "arena").mkdir(parents=True)
    for path in (ROOT / "config").glob("expected_*.yaml"):
        shutil.copy(path, folder / "config")
    (folder / "config" / "config.yaml").write_text(f"findings: [{KEY}/sgld_agents_converge]\n")
    return folder


@pytest.fixture(scope="module")
def studies(folder) -> dict[str, Study]:
    settings = load_config(folder / "config" / "config.yaml")
    paths = [
        ROOT / "config" / path for path in (f"papers/{KEY}", f"papers/{OTHER}", "studies/arena")
    ]
    return {path.name: Study(path, settings, checked=True) for path in paths}


@pytest.fixture
def built(monkeypatch, tmp_path, folder, studies) -> Callable[..., Path]:
    """Return what makes a site of no documents but their pictures, and without reference."""
    monkeypatch.setattr(build, "HOME", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.md"))
    monkeypatch.setattr(reference, "pages", lambda pictures: [])

    def site(results: Path, **changes: Any) -> Path:
        settings = load_config(folder / "config" / "config.yaml", changes)
        monkeypatch.setattr(build, "load_studies", lambda *_: (settings, studies))
        build.site(folder / "config", results, tmp_path / "site")
        return tmp_path / "site"

    return site


def write(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def cell(row: ledger.Row) -> tuple[str, ...]:
    return tuple(row[column] for column in ("paper", "claim", "case", "reading"))


class Results:
    """Files as the stages write them, with nothing in them."""

    def __init__(self, folder: Path, studies: dict[str, Study], scale: str = "paper") -> None:
        self.folder, self.studies, self.scale = folder, studies, scale

    def draw(self, key: str, *names: str) -> None:
        """Have figures and tables; none named: all of them."""
        paper = self.studies[key]
        caption = dict.fromkeys(("source", "printed", "ours"), "")
        caption |= {key: [] for key in ("terms", "experiments", "readings", "assumptions")}
        caption |= {"title": "Title", "caption": "What is seen. More.", "scale": self.scale}
        for section, suffix in (("figures", ".svg"), ("tables", ".csv")):
            for name in paper.outputs(section):
                if not names or name in names:
                    base = self.folder / key / section / name
                    files = [base.with_suffix(suffix), base.with_suffix(".md")]
                    for path, text in zip(files, (SVG, TABLE), strict=True):
                        write(path, text)
                    provenance.write_provenance(files, seed=1, caption=caption)
                    shown = {run.experiment for run in paper.output_runs(section, name)}
                    for experiment in shown:
                        own = by_hand.experiments(paper)[experiment]
                        by_hand.write_nothing(own, self.folder / key / experiment)

    def judge(self, key: str, over: bool = False, **verdicts: str) -> None:
        """Have the committed verdicts, over the universes too; those named are others."""
        before = {cell(row): row["verdict"] for row in ledger.expected_rows(ROOT / EXPECTED)}
        universes = ledger.expected_universes(ROOT / EXPECTED)
        study, rows = self.studies[key], []
        for row in judge.verdicts(study, sorted((self.folder / key).glob("*/metrics.csv"))):
            verdict = verdicts.get(row["claim"], before.get(cell(row), "holds"))
            said = universes.get((key, row["claim"], row["reading"]), "") if over else ""
            said = {
                "number": "1.5",
                "verdict": verdict,
                "alone": verdict,
                "multiverse": said,
                "scale": self.scale,
            }
            rows.append({**row, **said})
        path = self.folder / key / "claims.csv"
        write(path, format_csv(ledger.COLUMNS, rows))
        provenance.write_provenance([path])

    def survey(self, key: str) -> None:
        """Have a multiverse, with a page, and a picture of every claim."""
        path = self.folder / key / "multiverse.csv"
        write(path, format_csv(robustness.COLUMNS, []))
        write(path.with_suffix(".md"), "# Multiverse\n")
        names = ("overview", *(f"claim_{claim}" for claim in self.studies[key].claims))
        pictures = [path.with_suffix("") / "figures" / f"{name}.svg" for name in names]
        for picture in pictures:
            write(picture, SVG)
        provenance.write_provenance([path, path.with_suffix(".md"), *pictures])

    def score(self) -> None:
        """Have the arena's scores and cards."""
        made = [self.folder / "arena" / name for name in ("scores.csv", "cards/d_ula.md")]
        for path, text in zip(made, ("task\n", "# D-ULA\n"), strict=True):
            write(path, text)
        provenance.write_provenance(made)


def ledgers(made: Results) -> None:
    for key in (KEY, OTHER):
        made.draw(key)
        made.judge(key)


def everything(made: Results) -> None:
    for key in (KEY, OTHER):
        made.draw(key)
        made.survey(key)
        made.judge(key, over=True)
    made.draw("arena")
    made.score()
    made.judge("arena")


def half_deleted(made: Results) -> None:
    everything(made)
    for path in (
        *(f"{KEY}/figures/fig3.svg", f"{KEY}/figures/fig4.json", f"{KEY}/claims.csv"),
        *(f"{OTHER}/tables", f"{OTHER}/multiverse.csv", "arena/scores.csv"),
    ):
        full = made.folder / path
        shutil.rmtree(full) if full.is_dir() else full.unlink()
    for path in made.folder.glob(f"{OTHER}/*/*/run.yaml"):
        path.unlink()


SAME = r"None of \d{2,} committed verdicts differs\."
STAGES: dict[str, tuple[Callable[[Results], None], str | None]] = {
    "nothing": (lambda made: None, None),
    "reproduce": (lambda made: [made.draw(KEY), made.draw(OTHER)], None),
    "ledger": (ledgers, SAME),
    "the arena alone": (
        lambda made: [made.draw("arena"), made.score(), made.judge("arena")],
        None,  # none is committed
    ),
    "a paper": (
        lambda made: [
            made.draw(KEY),
            made.judge(KEY, theorem10_bounds="does not hold", theorem10_linear="not run"),
        ],
        r"1 of \d+ committed verdicts differs; 1 not judged here\.",
    ),
    "everything": (everything, SAME),
    "half deleted": (half_deleted, SAME),
}


def text_of(page: Path, start: str = "", end: str = "") -> str:
    text = page.read_text().partition(start)[2] if start else page.read_text()
    text = text.partition(end)[0] if end else text
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.mark.parametrize("stage", STAGES)
def test_a_site_at_every_stage(studies, tmp_path, built, stage):
    make, compared = STAGES[stage]
    made = Results(tmp_path / "results", studies)
    made.folder.mkdir()
    make(made)
    site = built(made.folder)
    assert dead(site) == []
    assert faults(site) == []
    text = text_of(site / "index.html")
    assert text.index("What was found") < text.index("How to start")
    judged = (made.folder / KEY / "claims.csv").exists()
    table = text.partition("What was found")[2].partition("How to start")[0]
    row = table.partition("Gürbüzbalaban and others (2021)")[2].partition("Tzikas and others")[0]
    shown = (
        r" ?, DE-SGLD , DE-SGHMC [a-z ]+: \d+ [a-z ]+: \d+ open: \d+ not run: \d+ holds: \d+ "
        r"neither: \d+ [a-z, ]+: On the "
    )
    assert re.match(shown, row)
    anything_judged = any(made.folder.glob("*/claims.csv"))
    assert (", committed (" in row) == (anything_judged and not judged)
    assert ("All verdicts are committed ones" in text) != anything_judged
    assert "Which sampler leads" in table and (site / "figures.html").exists()
    assert re.search(compared, text) if compared else "committed verdicts" not in text
    assert {path.stem for path in (site / "papers").glob("*.html")} == {*studies}


def test_smoke_scale_is_not_compared(studies, tmp_path, built):
    made = Results(tmp_path / "results", studies, "smoke")
    made.draw(KEY)
    made.judge(KEY, theorem10_bounds="does not hold")
    site = built(made.folder, scale="smoke")
    assert dead(site) == []
    assert "committed" not in text_of(site / "index.html")
    for page in ("index.html", "claims.html"):
        assert ledger.SMOKE in text_of(site / page)


def test_a_page_counts_its_figures_and_says_what_is_seen(studies, tmp_path, built):
    made = Results(tmp_path / "results", studies)
    made.draw(KEY, "fig3")
    made.judge(KEY)
    site = built(made.folder)
    page = site / "papers" / f"{KEY}.html"
    text = text_of(page)
    assert re.search(rf"1 of \d+ figures has been made here; snakemake {KEY} makes all\.", text)
    (seen,) = pages(site)[page].pictures
    assert seen == "Title. What is seen."
    first = "The results of DE-SGHMC are quite similar to those of DE-SGLD ."  # names in tags
    assert f"What is seen. More. {first}" in text


def test_a_table_has_its_caption(studies, tmp_path, built):
    made = Results(tmp_path / "results", studies)
    made.draw(KEY, "lemma12")
    page = (built(made.folder) / "papers" / f"{KEY}.html").read_text()
    text, _, rest = page.partition("<caption>")[2].partition("</caption>")
    assert "What is seen. More." in text
    assert rest.partition("</table>")[0].count("<td") == 3 and "A note." in rest


@pytest.mark.parametrize("stage", ["nothing", "ledger"])
def test_a_study_of_ones_own(tmp_path, stage):
    """With documents and reference, whose links have to lead somewhere too; with any title."""
    init(tmp_path / "own")
    file = tmp_path / "own" / "config" / "papers" / "own" / "study.yaml"
    title = json.dumps(HOSTILE + "\u2028 x\x85 \u202ey " + "z" * 10_000)
    assert 'title: "own"' in file.read_text()
    file.write_text(file.read_text().replace('title: "own"', f"title: {title}"))
    studies = load_studies(tmp_path / "own" / "config", checked=True)[1]
    made = Results(tmp_path / "own" / "results", studies)
    made.folder.mkdir()
    if stage == "ledger":
        made.draw("own")
        made.judge("own")
    build.site(tmp_path / "own" / "config", made.folder, tmp_path / "site")
    assert dead(tmp_path / "site") == []
    assert faults(tmp_path / "site") == []
    assert "committed verdicts" not in text_of(tmp_path / "site" / "index.html")


def test_at_most_forty_entries_of_the_navigation_are_open(tmp_path):
    """On every page of the whole site; documents and kinds are there, too."""
    studies = configured.studies()
    made = Results(tmp_path / "results", studies)
    for key, study in studies.items():
        made.draw(key, next(iter(study.outputs("figures"))))
        made.judge(key)
        if study.printed:
            made.survey(key)
    made.score()
    build.site(ROOT / "config", made.folder, tmp_path / "site")
    opened = {path.name: page.open_entries for path, page in pages(tmp_path / "site").items()}
    assert 15 < opened["index.html"] <= opened["samplers.html"] <= 40
    assert {name: count for name, count in opened.items() if count > 40} == {}
