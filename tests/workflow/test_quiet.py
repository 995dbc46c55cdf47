"""With its logger a run says a line per figure; all that Snakemake says is asked for, or logged."""

import re
import subprocess
from pathlib import Path

import pytest
from smoke_project import FIGURES, RESULTS, Project

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.thorough]
FIGURE = f"{RESULTS}/figures/fig1.pdf"


def said(project: Project, *arguments: str) -> tuple[int, list[str]]:
    """Return the exit code and what was said of a run, as one would type it."""
    command = project.command(*arguments, "--logger", "concord")
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, timeout=240)
    lines = [line for line in done.stderr.splitlines() if "workflow specific profile" not in line]
    return done.returncode, lines


def test_a_run_says_a_line_per_figure_and_where_to_look(project):
    code, lines = said(project, FIGURE)
    assert code == 0
    assert lines[0].startswith("Reading the configuration; planning")
    assert "figure   gurbuzbalaban2021/fig1" in lines
    assert sum(line.startswith("runs     gurbuzbalaban2021/") for line in lines) == 1
    assert any(re.fullmatch(r" +\d+ % +\d+ of \d+ jobs, about [\d:]+ left", line) for line in lines)
    assert re.fullmatch(r"Made 1 figure, \d runs \(\d+ jobs\) in [\d:]+\.", lines[-3])
    assert lines[-2] == f"Look at: {RESULTS}/figures"
    log = Path(lines[-1].removeprefix("Full log: "))
    assert "rule measure:" in log.read_text()
    assert len(lines) < 15
    code, lines = said(project, FIGURE)
    assert code == 0 and len(lines) == 2 and lines[1].startswith("Nothing to be done")


def test_a_failed_job_is_told_with_its_log(project):
    with project.edited("src/concord_studies/figures/networks.py", "def draw(", "def draw(wrong, "):
        code, lines = said(project, FIGURE)
    assert code == 1
    text = "\n".join(lines)
    assert "Error in rule figure" in text and "TypeError" in text and "Full log: " in text


def test_a_dry_run_says_all(finished):
    code, lines = said(finished, *FIGURES, "--dry-run", "--forceall")
    assert code == 0
    assert "Look at" not in "\n".join(lines)
    assert "rule figure:" in finished.make(FIGURES[0], "--dry-run", "--forceall")
