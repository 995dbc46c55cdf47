"""Targets of the Makefile that need no set-up, and what CI makes of them."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("linked", [False, True])
def test_clean_deletes_results_wherever_they_are(linked, tmp_path):
    """Snakemake's records go as well: old results without them would pass for up to date."""
    project, results = tmp_path / "project", tmp_path / "project" / "results"
    for folder in ("envs", "src/__pycache__", "tests", "workflow", ".snakemake", ".venv"):
        (project / folder).mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", project)
    shutil.copy(ROOT / "envs" / "requirements.lock", project / "envs")
    if linked:
        (tmp_path / "scratch").mkdir()
        results.symlink_to(tmp_path / "scratch")
    (results / "smoke" / "x").mkdir(parents=True)
    for name in ("README.md", ".hidden", "claims.csv", "smoke/x/trace.nc"):
        (results / name).touch()
    done = subprocess.run(["make", "clean"], cwd=project, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in results.iterdir()] == ["README.md"]
    assert results.is_symlink() == linked
    assert sorted(path.name for path in project.iterdir()) == [
        *(".venv", "Makefile", "envs", "results", "src", "tests", "workflow")
    ]
    assert not list((project / "src").iterdir())


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_reproduce_says_at_its_end_what_makes_verdicts():
    command = ["make", "-n", "--no-print-directory", "reproduce"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ledger' makes the verdicts" in done.stdout.splitlines()[-1]


def test_marks_of_thorough_tests_stand_in_the_files_by_which_ci_finds_them():
    files = (path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_"))
    assert [path for path in files if "thorough" in path.read_text()] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_asks_for_the_logger_which_a_snakemake_without_it_could_not_start_with():
    asked = ["make", "-n", "reproduce", "report", "site", "crate", "multiverse", "arena"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith(".venv/bin/snakemake")]
    assert len(lines) == 8 and all(" --profile profiles/make " in line for line in lines)
    profiles = {p.parent.name: p.read_text() for p in ROOT.glob("profiles/*/config.yaml")}
    assert {name for name in profiles if "logger: " in profiles[name]} == {"make"}
