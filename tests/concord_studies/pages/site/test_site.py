"""The site in a real browser: from disk, without network, at three widths, dark and light."""

import csv
import importlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hostile import SECRET, SHOWN
from smoke_project import ROOT

from page_links import Links, dead, faults, pages

pytest.importorskip("furo", reason="pip install -e '.[docs,browser]'")
webdriver = pytest.importorskip("selenium.webdriver", reason="pip install -e '.[docs,browser]'")

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
KEY = "gurbuzbalaban2021"
CLAIM = "sgld_agents_converge"
FIGURE = f"{KEY}-figures-fig3"
PAPER = f"papers/{KEY}.html"
UNFOLD = "for (const d of document.querySelectorAll('details')) d.open = true"
WIDTHS = (400, 1000, 1400)


@pytest.fixture(scope="module")
def folder(reported) -> Path:
    """The site of the project with hostile texts, documents included."""
    for name in ("docs", "README.md", "CONTRIBUTING.md", "LICENSE"):
        source, target = ROOT / name, reported.folder / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    config = reported.folder / "config" / "config.yaml"
    others = config.read_text().partition("findings:")[0]  # those of papers that are not here
    config.write_text(f"{others}findings: [{KEY}/{CLAIM}]\n")
    reported.make("site")
    return reported.folder / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    binary = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if not (binary and driver):
        pytest.skip("no browser or no driver: install chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1600,1000"),
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as chrome:
        chrome.set_script_timeout(300)  # others may be at work on this machine
        yield chrome


def opened(browser, folder: Path, page: str, width: int = 1600, scheme: str = "light") -> None:
    """Open a page; nothing may be wrong with it, and nothing may come from elsewhere."""
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    path, _, anchor = page.partition("#")
    assert (folder / path).is_file()
    browser.get(f"{(folder / path).as_uri()}#{anchor}" if anchor else (folder / path).as_uri())
    sound(browser)


def sound(browser) -> None:
    """No error was told, and nothing came from elsewhere."""
    assert browser.get_log("browser") == []
    fetched = browser.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    assert [name for name in fetched if not name.startswith(("file:", "data:", "blob:"))] == []


def test_every_link_leads_somewhere_and_every_picture_has_a_text(folder):
    assert len(pages(folder)) > 20
    assert dead(folder) == []
    assert faults(folder) == []


def test_a_claim_leads_to_its_figure_and_what_was_made(folder):
    page = Links((folder / PAPER).read_text())
    assert f"#{FIGURE}" in page.links
    assert {FIGURE, f"{KEY}-tables-lemma12"} <= page.anchors
    for name in ("fig3.json", "fig3.pdf", "lemma12.csv", "runs.yaml", "linear_sghmc.csv.gz"):
        assert any(link.endswith(f"/{name}") for link in page.links), name


def test_a_notebook_is_a_page_with_its_pictures_and_a_file_for_jupyter(folder):
    names = [path.stem for path in (folder / "docs" / "notebooks").glob("*.html")]
    assert len(names) == 4
    for name in names:
        page = Links((folder / "docs" / "notebooks" / f"{name}.html").read_text())
        assert len(page.pictures) >= 3
        assert any(link.endswith(f"/{name}.ipynb") for link in page.links)


def test_the_claims_stand_in_a_table_beside_their_page(folder):
    with (folder / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["paper"] for row in rows} >= {KEY} and all(row["verdict"] for row in rows)
    assert "claims.csv" in Links((folder / "claims.html").read_text()).links


def test_the_page_of_claims_shows_what_has_some_words_and_a_verdict(folder, browser):
    """The address keeps what is chosen, and a row leads to its sentence on the paper's page."""
    opened(browser, folder, "claims.html")
    shown = """const box = document.querySelector(arguments[0]); box.value = arguments[1];
        box.dispatchEvent(new Event("input"));
        return [...document.querySelectorAll("table.claims tbody tr")]
            .filter((row) => !row.hidden).map((row) => row.textContent)"""
    verdict = "select[data-column=verdict]"
    everything = browser.execute_script(shown, "#words", "")
    some = browser.execute_script(shown, "#words", "bound THEOREM")
    assert 0 < len(some) < len(everything)
    assert all("bound" in text.lower() and "theorem" in text.lower() for text in some)
    browser.execute_script(shown, "#words", "")
    chosen = browser.execute_script(shown, verdict, "does not hold")
    assert chosen and all("does not hold" in text for text in chosen)
    browser.get(browser.current_url)
    value = f"return document.querySelector('{verdict}').value"
    assert "verdict=does+not+hold" in browser.current_url
    assert browser.execute_script(value) == "does not hold"
    link = "table.claims tr:not([hidden]) a[id]"
    browser.get(browser.execute_script(f"return document.querySelector('{link}').href"))
    assert browser.execute_script("return document.querySelector(location.hash).tagName")


@pytest.mark.parametrize("query", ["DE-SGHMC", "Gürbüzbalaban", KEY])
def test_the_search_finds_a_paper_by_its_sampler_author_and_key(folder, browser, query):
    found = "return [...document.querySelectorAll('#search-results li')].map((r) => r.innerHTML)"
    browser.get(f"{(folder / 'search.html').as_uri()}?q={quote(query)}")
    wait = importlib.import_module("selenium.webdriver.support.wait").WebDriverWait(browser, 60)
    results = wait.until(lambda _: browser.execute_script(found))
    assert PAPER in results[0]
    assert not any(">D</span>" in result for result in results)  # letters are not looked for
    browser.get("about:blank")
    browser.get_log("browser")  # from a disk it reads no summaries


PAGES = (
    *("index.html", PAPER, "claims.html", "search.html", "docs/plugins.html", "docs/ledger.html"),
    *("reference/samplers.html", "reference/figures.html", "reference/study.html"),
    *("reference/python.html", "config/README.html", "README.html"),
    "docs/notebooks/own-data-and-network.html",
)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_the_screen(folder, browser, width):
    for page in PAGES:
        opened(browser, folder, page, width)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width, page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_names_and_roles(folder, browser, scheme):
    """The rules of WCAG 2.1, A and AA, that axe can check, with everything unfolded."""
    run = "axe.run({}, {{ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], preload: false }})"
    for page in PAGES:
        opened(browser, folder, page, scheme=scheme)
        browser.execute_script(UNFOLD)
        browser.execute_script(AXE.read_text())
        found = browser.execute_async_script(
            f"{run.format('document')}.then((r) => arguments[0](r.violations))"
        )
        told = [(v["id"], [node["html"][:200] for node in v["nodes"][:3]]) for v in found]
        assert told == [], page


def test_what_a_paper_says_is_shown_as_typed_and_does_nothing(folder, browser):
    for page in ("index.html", PAPER, "claims.html"):
        opened(browser, folder, page)
        browser.execute_script(UNFOLD)
        assert browser.execute_script("return window.pwned ?? 0") == 0
        text = browser.execute_script("return document.body.textContent")
        assert SHOWN in " ".join(text.split()), page
    for path in folder.rglob("*"):
        if path.suffix in (".html", ".js", ".csv", ".json", ".yaml"):
            assert SECRET not in path.read_text(), path


@pytest.mark.parametrize(
    ("results", "output", "told"),
    [
        *(("results", name, "it is no folder; remove it") for name in ("file", "link", "pipe")),
        ("none", "new", "there are no results"),
    ],
)
def test_wrong_folders_are_told(reported, tmp_path, capsys, results, output, told):
    from concord_cli.__main__ import main

    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    config = str(reported.folder / "config" / "config.yaml")
    words = ["--results", str(reported.folder / results), "-o", str(tmp_path / output)]
    assert main(["site", "--config", config, *words]) == 2
    assert told in capsys.readouterr().err


def test_a_folder_that_is_no_site_is_left_alone(reported, tmp_path, capsys):
    from concord_cli.__main__ import main

    (tmp_path / "note").write_text("kept")
    config = str(reported.folder / "config" / "config.yaml")
    assert main(["site", "--config", config, "-o", str(tmp_path)]) == 2
    assert "it holds files that are not a site's" in capsys.readouterr().err
    assert (tmp_path / "note").read_text() == "kept"
