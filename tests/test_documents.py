"""What the documents show exists and works."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from concord_cli.__main__ import COMMANDS, FIRST, main
from concord_studies.claims.claim import rules

ROOT = Path(__file__).parents[1]
MARKDOWN = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "config/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
DOCUMENTS = [
    *MARKDOWN,
    *(ROOT / name for name in ("Makefile", ".ci/run", "envs/Dockerfile")),
    ROOT / "profiles" / "slurm" / "config.yaml",
]
TRACKED = ("config", "docs", "envs", "profiles", "src", "tests", "workflow")


def code(path: Path) -> list[str]:
    """Return the spans and the lines of code of a Markdown file."""
    text = path.read_text()
    return re.findall(r"`([^`]+)`", text) + re.findall(r"^ {4}(\S.*)$", text, re.MULTILINE)


def test_targets_stand_before_the_settings():
    """Snakemake takes a target that follows --config for a setting, and ends in an error."""
    found = []
    for path in DOCUMENTS:
        for line in path.read_text().splitlines():
            for after in re.findall(r"snakemake[^`#]*?--config ([^`#|>]*)", line):
                found.append(after)
                assert all("=" in word for word in after.split()), f"{path}: {line}"
    assert len(found) >= 2


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_paths_and_links_lead_somewhere(path):
    words = {word.rstrip(",;:") for text in code(path) for word in text.split()}
    paths = {ROOT / word for word in words if word.startswith(tuple(f"{t}/" for t in TRACKED))}
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    for named in {*paths, *(path.parent / link for link in links)}:
        assert "<" in str(named) or named.exists(), f"{path.name}: {named.relative_to(ROOT)}"


def test_links_lead_somewhere_in_the_wheel():
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    packed = [ROOT / name for name in stated["targets"]["wheel"]["force-include"]]
    pages = [path for path in MARKDOWN if any(map(path.is_relative_to, packed))]
    assert pages == MARKDOWN
    for path in pages:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
            target = (path.parent / link).resolve()
            assert any(map(target.is_relative_to, packed)), f"{path.name}: {link}"


def test_anchors_are_headings():
    for path in MARKDOWN:
        for link, anchor in re.findall(r"\]\(([^)#:]*)#([^)]*)\)", path.read_text()):
            page = path.parent / link if link else path
            headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}, path


def test_make_and_concord_know_what_they_are_told(capsys):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    with pytest.raises(SystemExit):
        main(["--help"])
    first = set(re.findall(r"^ {4}(\w+)(?: |$)", capsys.readouterr().out, re.MULTILINE))
    assert first == set(FIRST) & set(COMMANDS)
    main(["help", "stages"])
    others = set(re.findall(r"^ {2}(\w+) ", capsys.readouterr().out, re.MULTILINE))
    assert first | others == set(COMMANDS) and not first & others
    commands = set(COMMANDS)
    for path in MARKDOWN:
        for text in code(path):
            if text.startswith("make "):
                words = shlex.split(text, comments=True)[1:]
                assert {word for word in words if "=" not in word} <= targets, text
            if text.startswith("concord "):
                assert text.split()[1] in {*commands, "--help", "--version"}, text


def test_a_job_can_be_repeated_by_hand(tmp_path, monkeypatch):
    """A run alone; what other commands read is planned."""
    monkeypatch.chdir(ROOT)
    page = ROOT / "docs" / "how-it-works.md"
    (line,) = (text for text in code(page) if text.startswith("concord run"))
    line = line.replace("-o alone", f"--scale smoke -o {tmp_path}")
    assert main(shlex.split(line)[1:]) == 0
    assert {p.name for p in tmp_path.iterdir()} >= {"runs.yaml", "draws.nc", "metrics.csv"}


def test_the_page_of_the_ledger_shows_every_rule():
    rows = [f"| `{name}` | {rule.words} | {rule.rule} |" for name, rule in rules().items()]
    assert "\n".join(rows) in (ROOT / "docs" / "ledger.md").read_text()
