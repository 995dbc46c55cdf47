"""A report at smoke scale, of a few runs, and a browser to open it in."""

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[3] / "workflow"))

from hostile import HOSTILE, SECRET
from smoke_project import PAPER, Project, of_all_runs

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET = ("gpu", "quic", "background-networking", "component-update", "sync", "extensions")
# Runs before anything else on the page, so that no error escapes it.
LISTEN = """
<script>
const errors = [];
const note = (event) => errors.push(event.message || "cannot load " + event.target.src);
addEventListener("error", note, true);
addEventListener("unhandledrejection", (event) => errors.push(String(event.reason)));
const plain = console.error;
console.error = (...words) => { errors.push(words.map(String).join(" ")); plain(...words); };
</script>
"""
REPORT = """
<script>
async function until(condition) {
  for (let tries = 0; tries < 200 && !condition(); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return condition();
}
addEventListener("load", async () => {
  let found;
  try { found = await (async () => { %s })(); } catch (error) { errors.push(String(error)); }
  const fetched = performance.getEntriesByType("resource").map((entry) => entry.name);
  const outside = fetched.filter((name) => !name.startsWith("data:"));
  document.title = "FOUND" + JSON.stringify({ found, errors, outside }) + "END";
});
</script>
"""

Browse = Callable[[Path, str], Any]


@pytest.fixture(scope="session")
def browse() -> Browse:
    """A function that opens a file from disk, runs a script there and returns what it returns."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip("no browser: install chromium")

    def opened(path: Path, script: str) -> Any:
        text = path.read_text(encoding="utf-8")
        assert "</body>" in text
        text = text.replace("<head>", "<head>" + LISTEN, 1)
        before, _, after = text.rpartition("</body>")
        copy = path.with_name(f"opened-{path.name}")
        copy.write_text(f"{before}{REPORT % script}</body>{after}", encoding="utf-8")
        with tempfile.TemporaryDirectory() as profile:
            done = subprocess.run(
                [
                    *(browser, "--headless", "--no-sandbox", "--no-first-run", "--dump-dom"),
                    *(f"--disable-{what}" for what in QUIET),
                    *(f"--user-data-dir={profile}", "--virtual-time-budget=20000"),
                    *("--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1500,1000"),
                    copy.as_uri(),
                ],
                capture_output=True,
                text=True,
                timeout=120,
            )
        result = re.search(r"<title>FOUND(.*)END</title>", done.stdout, re.DOTALL)
        assert result, done.stderr[-2000:]
        answer = json.loads(html.unescape(result.group(1)))
        assert answer["errors"] == []
        assert answer["outside"] == []
        return answer["found"]

    return opened


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with one experiment of the paper, in hostile words, and its report, made in the
    surroundings of somebody who draws other figures in Jupyter."""
    project = Project(tmp_path_factory.mktemp("report") / "project")
    paper = project.sections()
    kept = "linear_sghmc"
    for section in ("figures", "tables", "claims"):
        paper[section] = {
            name: entry
            for name, entry in paper[section].items()
            if kept in str(entry) and "linear_sgld" not in str(entry)
        }
    paper["experiments"] = {kept: paper["experiments"][kept]}
    paper["assumptions"] = of_all_runs(paper["assumptions"])
    for text in ("title", "authors", "reference"):
        paper["paper"][text] = HOSTILE
    paper["discrepancies"] = {"hostile": {"text": HOSTILE, "code": HOSTILE}}
    for section, texts in {
        "assumptions": ("value", "reason"),
        "errata": ("where", "text"),
        "figures": ("title", "caption"),
        "tables": ("title", "caption"),
        "claims": ("where", "says", "reason"),
    }.items():
        for entry in paper[section].values():
            entry.update(dict.fromkeys(texts, HOSTILE))
    project.rewrite(paper)
    (project.folder / "secret.txt").write_text(SECRET)
    (project.folder / "matplotlibrc").write_text("text.usetex: true\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "module://of_another_python")  # as Jupyter sets it
        project.make(PAPER, "ledger")
    project.make("made")
    project.make("made", "--report", "report.html")
    return project
