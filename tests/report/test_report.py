"""The report and its pages in a real browser: from disk, without network, without an error."""

from __future__ import annotations

import csv

import pytest
from hostile import SECRET, SHOWN
from smoke_project import RESULTS

from concord.claims import ledger

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]

# What a reader does with a table: choose a verdict, search, click a column's head.
USE_TABLE = """
  const rows = () => [...page.querySelectorAll("tbody tr")].filter((row) => !row.hidden);
  // Without the lines that are folded.
  const open = (cell) => [...cell.querySelector("div").childNodes]
    .filter((node) => node.nodeName !== "DETAILS").map((node) => node.textContent).join("");
  const cells = (n) => rows().map((row) => open(row.cells[n]).trim());
  const heads = [...page.querySelectorAll("th")].map((head) => head.textContent);
  const column = (name) => heads.indexOf(name);
  const change = (element, value) => {
    element.value = value;
    element.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const select = (name) => page.querySelector(`select[data-column="${column(name)}"]`);
  const search = page.querySelector("input[type=search]");
"""
USE_LEDGER = (
    USE_TABLE
    + """
  const all = cells(column("says"));
  change(select("reading"), "published");
  const published = [cells(column("reading")), page.querySelector(".shown").textContent];
  change(search, "BETA");
  const beta = cells(column("says"));
  change(search, "");
  change(select("reading"), "");
  const menu = [...select("verdict").options].map((option) => option.textContent);
  const head = page.querySelectorAll("th")[column("says")];
  head.click();
  const up = [cells(column("says")), head.getAttribute("aria-sort")];
  head.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  const down = [cells(column("says")), head.getAttribute("aria-sort")];
  return { all, published, beta, menu, up, down };
"""
)


@pytest.fixture(scope="module")
def rows(reported) -> list[dict[str, str]]:
    with open(reported.folder / "results/smoke/claims.csv", newline="") as file:
        return list(csv.DictReader(file))


def check_ledger(found, rows):
    folded = ledger.entries(rows)
    entries = [entry.rows[0] for entry in folded]
    said = [row["says"] for row in entries]
    published = [row for row in entries if row["reading"] == "published"]
    assert len(entries) > len(published) > 1
    assert found["all"] == said
    assert found["published"] == [
        ["published"] * len(published),
        f"{len(published)} of {len(entries)} shown",
    ]
    assert found["beta"] == [row["says"] for row in published if "beta" in str(row).lower()]
    assert found["menu"] == ["all", *sorted({entry.verdict for entry in folded})]
    assert sorted(found["up"][0]) == sorted(said) and found["up"][1] == "ascending"
    assert found["down"] == [found["up"][0][::-1], "descending"]


def test_the_ledger_sorts_filters_and_searches(reported, browse, rows):
    path = reported.folder / "results/smoke/ledger.html"
    check_ledger(browse(path, "const page = document;" + USE_LEDGER), rows)


def test_the_front_page_shows_the_ledger_and_how_it_was_made(reported, browse, rows):
    script = """
      const place = "iframe[title='Ledger of claims']";
      const frame = await until(() => document.querySelector(place));
      await until(() => frame.contentDocument.querySelector("th"));
      await until(() => frame.contentDocument.readyState === "complete");
      const page = frame.contentDocument;
      const front = document.querySelector(".concord").innerText;
      const width = frame.getBoundingClientRect().width / innerWidth;
      const ledger = (() => { %s })();
      return { front, width, ledger };
    """
    found = browse(reported.folder / "report.html", script % USE_LEDGER)
    check_ledger(found["ledger"], rows)
    for words in ("Smoke scale", "corrected", "commit", "seed\t1", "numpy", "jobs"):
        assert words in found["front"]
    assert found["width"] > 0.6


def test_every_figure_and_table_shows(reported, browse):
    script = """
      const shown = {};
      await until(() => document.querySelector("#app img"));
      for (const [path, result] of Object.entries(results)) {
        const image = result.mime_type.startsWith("image");
        app.setView({ content: image ? "img" : "html", contentPath: result.data_uri });
        const elements = () => [...document.querySelectorAll(image ? "#app img" : "#app iframe")];
        const element = await until(
          () => elements().find((other) => other.src === result.data_uri));
        if (image) await element.decode();
        shown[path] = {
          width: image ? element.naturalWidth : element.clientWidth,
          caption: result.caption,
        };
      }
      return { shown, categories: Object.keys(categories) };
    """
    found = browse(reported.folder / "report.html", script)
    assert set(found["categories"]) == {"gurbuzbalaban2021", "ledger"}
    names = {path.removeprefix(f"{RESULTS}/") for path in found["shown"]}
    assert names == {
        *("claims.html", "figures/fig3.svg", "figures/fig3_released.svg", "tables/lemma12.html"),
        "results/smoke/ledger.html",
    }
    for path, result in found["shown"].items():
        assert result["width"] > 100, path
        assert len(result["caption"]) > 50, path
    caption = found["shown"][f"{RESULTS}/figures/fig3.svg"]["caption"]
    assert "friction 15" in caption and "corrected" in caption and "Smoke scale" in caption


@pytest.mark.parametrize("name", ["claims", "tables/lemma12"])
def test_pages_open_from_disk(reported, browse, name):
    script = "const page = document;" + USE_TABLE + "return rows().length;"
    assert browse(reported.folder / RESULTS / f"{name}.html", script) > 1


def test_what_a_paper_says_is_shown_as_typed_and_does_nothing(reported, browse):
    script = """
      const captions = [];
      let elements = 0;
      await until(() => document.querySelector("#app img"));
      for (const result of Object.values(results)) {
        const place = document.createElement("div");
        document.body.append(place);
        place.innerHTML = result.caption;
        captions.push(place.innerText);
        elements += place.querySelectorAll("a, img, script").length;
      }
      await new Promise((resolve) => setTimeout(resolve, 500));
      return { captions, elements, pwned: window.pwned ?? 0 };
    """
    found = browse(reported.folder / "report.html", script)
    assert (found["pwned"], found["elements"]) == (0, 0)
    hostile = [caption for caption in found["captions"] if SHOWN in caption]
    assert len(hostile) == 3  # of figures and the table; the other two pages' are Concord's
    for caption in hostile:
        assert caption.startswith(f"{SHOWN}. {SHOWN}")
        assert f"({SHOWN})" in caption
    for file in reported.results().values():
        if file.suffix in (".html", ".md", ".csv", ".json"):
            assert SECRET not in file.read_text(), file
    report = (reported.folder / "report.html").read_text()
    assert SECRET not in report and "System Message" not in report


@pytest.mark.parametrize(
    "name", ["results/smoke/ledger", f"{RESULTS}/claims", f"{RESULTS}/tables/lemma12"]
)
def test_pages_show_what_a_paper_says_as_typed(reported, browse, name):
    script = "return { pwned: window.pwned ?? 0, text: document.body.innerText };"
    found = browse(reported.folder / f"{name}.html", script)
    assert found["pwned"] == 0
    assert SHOWN in " ".join(found["text"].replace("\u200b", "").split())


def test_numbers_sort_as_numbers(browse, tmp_path):
    from concord.report.pages import Section, page

    values = ["10", "", "9.5 [9, 10]", "1e-3", "-2", "inf"]
    path = tmp_path / "page.html"
    path.write_text(page("T", "", [Section("", "", ["n"], [[value] for value in values])]))
    script = "const page = document;" + USE_TABLE
    script += 'page.querySelector("th").click(); return cells(0);'
    assert browse(path, script) == ["-2", "1e-3", "9.5 [9, 10]", "10", "inf", ""]


def test_the_report_holds_no_draws(reported):
    """What it holds are figures and tables: a few megabytes, most of them Snakemake's own."""
    assert (reported.folder / "report.html").stat().st_size < 8e6
