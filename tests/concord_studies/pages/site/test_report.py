"""Snakemake's report in a real browser: from disk, without network, without an error."""

import pytest
from hostile import SECRET, SHOWN
from smoke_project import RESULTS

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]


def test_every_figure_shows_and_every_table_is_at_hand(reported, browse):
    script = """
      const shown = {};
      await until(() => document.querySelector("#app img"));
      for (const [path, result] of Object.entries(results)) {
        shown[path] = { caption: result.caption, size: result.data_uri.length };
        if (!result.mime_type.startsWith("image")) continue;
        app.setView({ content: "img", contentPath: result.data_uri });
        const elements = () => [...document.querySelectorAll("#app img")];
        const element = await until(
          () => elements().find((other) => other.src === result.data_uri));
        await element.decode();
        shown[path].size = element.naturalWidth;
      }
      return { shown, categories: Object.keys(categories) };
    """
    found = browse(reported.folder / "report.html", script)
    assert set(found["categories"]) == {"gurbuzbalaban2021"}
    names = {path.removeprefix(f"{RESULTS}/") for path in found["shown"]}
    assert names == {"figures/fig3.svg", "figures/fig3_released.svg", "tables/lemma12.csv"}
    for path, result in found["shown"].items():
        assert result["size"] > 100, path
        assert len(result["caption"]) > 50, path
    caption = found["shown"][f"{RESULTS}/figures/fig3.svg"]["caption"]
    assert "friction 15" in caption and "corrected" in caption and "Smoke scale" in caption


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
    assert len(hostile) == 3
    for caption in hostile:
        assert caption.startswith(f"{SHOWN}. {SHOWN}")
        assert f"({SHOWN})" in caption
    for file in reported.results().values():
        if file.suffix in (".md", ".csv", ".json"):
            assert SECRET not in file.read_text(), file
    report = (reported.folder / "report.html").read_text()
    assert SECRET not in report and "System Message" not in report


def test_the_report_holds_no_draws(reported):
    """What it holds are figures and tables: a few megabytes, most of them Snakemake's own."""
    assert (reported.folder / "report.html").stat().st_size < 8e6
