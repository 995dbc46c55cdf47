"""The site in a real browser: from disk, without network, at three widths, dark and light."""

import os
import re
import shutil
import time
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hostile import SECRET, SHOWN
from smoke_project import ROOT

from links import Links, dead, pages

pytest.importorskip("furo", reason="pip install -e '.[docs,browser]'")
webdriver = pytest.importorskip("selenium.webdriver", reason="pip install -e '.[docs,browser]'")

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
KEY = "gurbuzbalaban2021"
CLAIM = "sghmc_agents_converge"
PAPER = f"papers/{KEY}.html"
UNFOLD = "for (const d of document.querySelectorAll('details')) d.open = true"
WIDTHS = (400, 1000, 1600)


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
def browser(tmp_path_factory) -> Iterator[Any]:
    binary = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if not (binary and driver):
        pytest.skip("no browser or no driver: install chromium and chromium-driver")
    downloads = tmp_path_factory.mktemp("downloads")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1600,1000"),
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with webdriver.Chrome(options=options, service=webdriver.ChromeService(driver)) as chrome:
        chrome.downloads = downloads
        chrome.set_script_timeout(300)  # others may be at work on this machine
        where = {"behavior": "allow", "downloadPath": str(downloads)}
        chrome.execute_cdp_cmd("Browser.setDownloadBehavior", where)
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


def until(condition, seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    assert found
    return found


def explore(browser, folder: Path, **options: Any) -> None:
    """Open the curves of the paper's first figure."""
    opened(browser, folder, PAPER, **options)
    browser.execute_script("document.querySelector('details.curves').open = true")
    drawn(browser)
    sound(browser)


def drawn(browser) -> None:
    """All curves that are unfolded are drawn, with the fonts of the page."""
    script = """
      const open = [...document.querySelectorAll("details.curves[open] .explorer")];
      return document.fonts.status === "loaded" && open.length > 0
        && open.every((place) => place.dataset.ready === "yes" && place.querySelector("svg"));
    """
    until(lambda: browser.execute_script(script))


def of_curves(browser, script: str, *arguments: Any) -> Any:
    """Run a script that knows the explorer, its curves, and how to choose."""
    head = """
      const explorer = document.querySelector(".explorer");
      const lines = () => explorer.querySelectorAll("[data-mark=line] path").length;
      const said = () => explorer.querySelector(".explorer-said").textContent;
      const box = (text) => [...explorer.querySelectorAll("label")]
        .find((label) => label.textContent.trim() === text).querySelector("input");
      const menu = (text) => [...explorer.querySelectorAll("label")]
        .find((label) => label.firstChild.textContent.trim() === text).querySelector("select");
      const choose = (text, value) => {
        menu(text).value = value;
        menu(text).dispatchEvent(new Event("change"));
      };
    """
    return browser.execute_script(head + script, *arguments)


def test_every_link_and_anchor_leads_somewhere(folder):
    assert len(pages(folder)) > 20
    assert dead(folder) == []


def test_a_claim_and_its_figure_lead_to_each_other(folder):
    page = Links((folder / PAPER).read_text())
    assert {f"#claim-{CLAIM}", "#figure-fig3"} <= page.links
    assert {f"claim-{CLAIM}", "figure-fig3", "table-lemma12"} <= page.anchors
    assert any(link.startswith("../runs/") for link in page.links)
    assert f"../results/{KEY}/figures/fig3.json" in page.links
    assert f"../results/{KEY}/tables/lemma12.csv" in page.links


PAGES = (
    *("index.html", PAPER, "claims.html", "search.html", "docs/plugins.html", "docs/ledger.html"),
    *("reference/samplers.html", "reference/figures.html", "reference/study.html"),
    *("reference/python.html", "config/README.html", "README.html"),
)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_the_screen(folder, browser, width):
    for page in PAGES:
        opened(browser, folder, page, width)
        wide = browser.execute_script("return document.documentElement.scrollWidth")
        assert wide <= width, page


def test_curves_fit_a_phone(folder, browser):
    explore(browser, folder, width=400)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_names_and_roles(folder, browser, scheme):
    """The rules of WCAG 2.1, A and AA, that axe can check, with everything unfolded."""
    run = "axe.run({}, {{ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'], preload: false }})"
    for page in PAGES:
        if page == PAPER:
            explore(browser, folder, scheme=scheme)
        else:
            opened(browser, folder, page, scheme=scheme)
        browser.execute_script(UNFOLD)
        if page == PAPER:
            drawn(browser)
        browser.execute_script(AXE.read_text())
        found = browser.execute_async_script(
            f"{run.format('document')}.compose_with((r) => arguments[0](r.violations))"
        )
        told = [(v["id"], [node["html"][:200] for node in v["nodes"][:3]]) for v in found]
        assert told == [], page


def test_pages_load_within_two_seconds(folder, browser):
    """At the best of some tries, since others may be at work on this machine."""
    script = "return performance.getEntriesByType('navigation')[0].loadEventEnd"

    def quick(page: str) -> bool:
        opened(browser, folder, page)
        return until(lambda: browser.execute_script(script)) < 2000

    for page in ("index.html", PAPER):
        until(partial(quick, page))


def test_readings_agents_and_laws_can_be_chosen(folder, browser):
    explore(browser, folder)
    found = of_curves(
        browser,
        """
        const counts = [lines()];
        const click = (text) => { box(text).click(); counts.push(lines()); };
        for (const text of ["Released", "2", "exact law", "Ring"]) click(text);
        const panels = explorer.querySelectorAll("figure").length;
        choose("panels by", "");
        return { counts, panels, one: explorer.querySelectorAll("figure").length, said: said() };
        """,
    )
    first, released, agent, law, ring = found["counts"]
    assert released > first and agent < released and law < agent and ring < law
    assert (found["panels"], found["one"]) == (2, 1)
    assert found["said"].endswith("curves in 1 panel.")


def test_axes_can_be_logarithmic(folder, browser):
    explore(browser, folder)
    path = "explorer.querySelector('[data-mark=line] path').getAttribute('d')"
    before = of_curves(browser, f"return {path}")
    for name in ("log vertical", "log horizontal"):
        after = of_curves(browser, f"box('{name}').click(); return {path}")
        assert after != before and "NaN" not in after
        before = after


def test_a_pointer_shows_values(folder, browser):
    from selenium.webdriver.common.action_chains import ActionChains

    explore(browser, folder)
    place = """
      const line = explorer.querySelector("[data-mark=line] path");
      line.scrollIntoView({ block: "center", behavior: "instant" });
      const point = line.getPointAtLength(line.getTotalLength() * arguments[0]);
      const at = point.matrixTransform(line.getScreenCTM());
      return [Math.round(at.x), Math.round(at.y)];
    """
    tips = "return [...explorer.querySelectorAll('[data-mark=tip], svg')].map((e) => e.textContent)"
    shown = re.compile(
        r"(estimate from the chains|exact law|a point at the mean)\W*iteration \d+: 0\.\d"
    )
    places = cycle((0.5, 0.3, 0.7))

    def pointed() -> bool:
        """The place is looked for anew at each try: pictures that load above move the page."""
        x, y = of_curves(browser, place, next(places))
        actions = ActionChains(browser)
        actions.w3c_actions.pointer_action.move_to_location(x + 2, y)
        actions.w3c_actions.pointer_action.move_to_location(x, y)
        actions.perform()
        return any(map(shown.search, of_curves(browser, tips)))

    until(pointed)


def test_curves_are_saved_as_csv_and_svg(folder, browser):
    explore(browser, folder)
    shown = of_curves(browser, "return Number(said().split(' ')[0])")

    def saved(kind: str, end: bytes) -> str:
        of_curves(
            browser,
            f"""[...explorer.querySelectorAll("button")]
              .find((button) => button.textContent.startsWith("{kind}")).click()""",
        )

        def whole() -> str | None:  # a file may be there before all of it is
            found = next(browser.downloads.glob(f"fig3*.{kind.lower()}"), None)
            return found.read_text() if found and found.read_bytes().endswith(end) else None

        return until(whole)

    csv = saved("CSV", b"\n").splitlines()
    assert csv[0].startswith("run,") and csv[0].endswith("iteration,value,lo,hi")
    assert len(csv) - 1 >= shown
    svg = saved("SVG", b"</svg>")
    assert svg.startswith("<svg") and "<path" in svg


def test_a_link_opens_what_is_folded(folder, browser):
    opened(browser, folder, f"{PAPER}#claim-{CLAIM}")
    script = "return document.querySelector(':target').getBoundingClientRect().top"
    until(lambda: 0 < browser.execute_script(script) < 300)  # it glides there


def test_the_claims_can_be_filtered(folder, browser):
    opened(browser, folder, "claims.html")
    script = """
      const form = document.querySelector("form.filters");
      const shown = () => [...document.querySelectorAll("table.ledger tbody tr")]
        .filter((row) => !row.hidden).length;
      const all = shown();
      form.elements.words.value = "no such words";
      form.dispatchEvent(new Event("input"));
      return [all, shown(), form.querySelector("[role=status]").textContent];
    """
    all_of_them, none, said = browser.execute_script(script)
    assert all_of_them > 3 and none == 0 and said == f"0 of {all_of_them} shown"


def test_without_scripts_figures_show_and_nothing_is_promised(folder):
    text = (folder / PAPER).read_text()
    assert f'<img src="../results/{KEY}/figures/fig3.svg" alt="' in text
    assert '<details class="curves" hidden' in text


def test_print_has_neither_bars_nor_buttons(folder, browser):
    opened(browser, folder, PAPER)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    for hidden in (".sidebar-drawer", "details.curves", ".files"):
        script = f"return getComputedStyle(document.querySelector('{hidden}')).display"
        assert browser.execute_script(script) == "none", hidden
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


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


def test_it_is_small(folder):
    size = sum(os.stat(path).st_size for path in folder.rglob("*") if path.is_file())
    assert size < 6e6  # with one experiment; three quarters of it are scripts and documents


def test_a_wrong_finding_is_told(reported, tmp_path, capsys, monkeypatch):
    from concord_cli.__main__ import main

    config = reported.folder / "config"
    other = tmp_path / "config"
    shutil.copytree(config, other)
    (other / "config.yaml").write_text("findings: [a/b]\n")
    command = ["site", "--config", f"{other}/config.yaml", "--scale", "smoke", "-o"]
    results = ["--results", str(reported.folder / "results/smoke")]
    assert main([*command, str(tmp_path / "site"), *results]) == 2
    assert "findings: there is no claim 'a/b'" in capsys.readouterr().err


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
