"""The multiverse of a small study: its runs, its ledger and what is expected."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from smoke_project import PAPER, STUDY, Project

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

SECTIONS = yaml.safe_load(Path(__file__).with_name("walk.yaml").read_text())
TARGETS = (f"multiverse_{PAPER}", "ledger")


def make(project: Project, *arguments: str) -> str:
    """Run Snakemake at paper scale, at which verdicts are committed; it must succeed."""
    done = project.snakemake(*TARGETS, *arguments, config=["scale=paper", "multiverse=true"])
    assert done.returncode == 0, done.stdout
    return done.stdout


def rows(project: Project, table: str) -> dict[str, dict[str, str]]:
    with open(project.folder / "results" / table) as file:
        return {row.get("universe", row["claim"]): row for row in csv.DictReader(file)}


def concord(project: Project, *arguments: str) -> None:
    command = [sys.executable, "-m", "concord_cli", *arguments]
    subprocess.run(command, cwd=project.folder, check=True, capture_output=True)


def test_the_multiverse_of_a_study(project):
    project.rewrite(SECTIONS)
    make(project)
    assert "Nothing to be done" in make(project, "--dry-run")
    # What cannot be run has its reason, and the rest is judged.
    found = rows(project, f"{PAPER}/multiverse.csv")
    assert found["weights.lossy"]["verdict"] == "not run"
    assert "has no edges" in found["weights.lossy"]["ours"]
    others = {found[u]["verdict"] for u in ("base", "weights.lazy", "seed_2", "seed_5")}
    assert others <= {"holds", "does not hold"}
    # The ledger has it, and is compared with what is committed.
    ledger = rows(project, "claims.csv")["nearer"]["multiverse"]
    assert "of 6 universes" in ledger
    page = project.folder / "ledger.md"
    page.write_text("<!-- scoreboard -->\n<!-- end of scoreboard -->\n")
    concord(project, "expect", "results/claims.csv", "--pages", ".")
    expected = project.folder / "config/expected_multiverse.yaml"
    assert yaml.safe_load(expected.read_text())[PAPER] == {"nearer": {"published": ledger}}
    concord(project, "changes", "results/claims.csv", "--strict")
    expected.write_text(yaml.safe_dump({PAPER: {"nearer": {"published": f"{ledger} and more"}}}))
    with pytest.raises(subprocess.CalledProcessError) as told:
        concord(project, "changes", "results/claims.csv", "--strict")
    assert b"over the universes" in told.value.stderr
    # What was removed is not missed until it is needed, and comes back byte for byte, and alone.
    table = project.folder / "results" / PAPER / "multiverse" / "weights.lazy" / "metrics.csv"
    content = table.read_bytes()
    table.unlink()
    planned = make(project, "--dry-run")
    assert "rule measure:" not in planned and "rule universes:" not in planned
    done = project.snakemake(str(table.relative_to(project.folder)), config=["scale=paper"])
    assert done.stdout.count("rule measure:") == 1 and table.read_bytes() == content
    with project.edited(STUDY, "sampler.weights: lazy_metropolis", "sampler.weights: metropolis"):
        refused = project.snakemake(*TARGETS, "--dry-run", config=["scale=paper"])
    assert refused.returncode and "[0].set: it changes no run; correct it" in refused.stdout
