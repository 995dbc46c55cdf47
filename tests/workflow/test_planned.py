"""What runs is what was planned, whatever is planned or edited meanwhile."""

import os
import shutil
from pathlib import Path

import pytest
from smoke_project import PAPER, RESULTS, STUDY, Project, timeless
from snakemake.iocontainers import Wildcards
from test_scenarios import ALL, EXPERIMENT, FIGURE, TABLE, WHOLE, copy, made, reduce, remade

from concord import kinds
from concord_studies.configuration import project
from concord_studies.plan import Plan
from concord_studies.targets import Targets

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
__all__ = ["copy", "made"]  # fixtures

# Bash reads this before each job: the first of a kind is disturbed before it starts.
MEANWHILE = """
case "$BASH_EXECUTION_STRING" in
*"concord_cli {job}"*)
    if mkdir {folder}/disturbed 2> /dev/null; then
        cd {folder}/project
        {disturb}
        trap '{mend}' EXIT
    fi
esac
"""
SMOKE = {"scale": "smoke"}
SNAKEMAKE = " ".join(Project.command(*ALL))


@pytest.fixture
def meanwhile(tmp_path: Path, monkeypatch):
    """Return a function that has bash commands run before a job, and others after it."""

    def disturb(job: str, first: str, then: str = "true") -> None:
        script = tmp_path / "meanwhile.sh"
        words = {"job": job, "folder": tmp_path, "disturb": first, "mend": then}
        script.write_text(MEANWHILE.format(**words))
        monkeypatch.setenv("BASH_ENV", str(script))

    return disturb


@pytest.fixture
def fresh(tmp_path: Path) -> Project:
    """A project of one experiment of which nothing has been made."""
    project = Project(tmp_path / "project")
    reduce(project)
    return project


def contents(project: Project) -> dict[str, bytes]:
    """Return what is in all results."""
    return {name: timeless(path.read_bytes()) for name, path in project.results().items()}


ANOTHER = {
    "another seed": ("draw", "true", " seed=2"),
    "an edited study": (
        "measure",
        f"sed -i 's/- 0.009/- 0.007/; s/w2 is small/w2 is tiny/' {STUDY}",
        "",
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("what", ANOTHER)
def test_what_others_plan_meanwhile_changes_nothing(what, made, fresh, meanwhile):
    """By a dry run, and by a call that the lock refuses."""
    (job, edit, setting), study = ANOTHER[what], fresh.folder / STUDY
    before = study.read_text()
    call = f"{SNAKEMAKE}{setting}"
    meanwhile(job, f"({edit}; {call} -n; {call}) > ../said.txt 2>&1")
    fresh.make(*ALL)
    said = (fresh.folder.parent / "said.txt").read_text()
    assert said.count("This was a dry-run") == 1 and said.count("cannot be locked") == 2
    study.write_text(before)
    assert remade(fresh) == set()
    assert contents(fresh) == contents(made)


# Jobs, and the code that is edited while they wait, and put back before the next plan.
SOURCE = "src/concord_studies"
HELPERS = {
    "a metric's": ("measure", f"{SOURCE}/metrics/_references.py"),
    "a figure's": ("draw", f"{SOURCE}/figures/style.py"),
    "a verdict's": ("judge", f"{SOURCE}/claims/ledger.py"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("whose", HELPERS)
def test_a_helper_edited_while_a_job_waits_and_put_back_leaves_nothing_stale(
    whose, copy, meanwhile
):
    job, helper = HELPERS[whose]
    for file in (TABLE, FIGURE, f"{RESULTS}/claims.csv"):
        (copy.folder / file).unlink()
    meanwhile(job, f"cp {helper} ../kept; echo X = 1 >> {helper}", f"cp ../kept {helper}")
    done = copy.snakemake(*ALL)
    assert done.returncode != 0
    assert "its code changed after it was planned; type the same command again" in done.stdout
    stem = {"measure": f"{EXPERIMENT}/metrics", "draw": "figures/fig4", "judge": "claims"}[job]
    assert [name for name in copy.results() if name.startswith(f"{stem}.")] == []
    assert "X = 1" not in (copy.folder / helper).read_text()
    copy.make(*ALL)


def test_a_job_on_another_machine_has_the_statement_of_the_call_that_submitted_it(
    copy, monkeypatch
):
    """Though it is planned there once more, after the study was edited."""
    monkeypatch.chdir(copy.folder)
    monkeypatch.setenv("CONCORD_PLANNED", "")
    job, kept = Wildcards(fromdict={"study": PAPER, "experiment": EXPERIMENT}), kinds.studies[:]
    try:
        planned = Plan("config", SMOKE, submits=lambda: True).write("runs", job)
        with copy.edited(STUDY, "- 0.009", "- 0.007"):
            assert Plan("config", SMOKE, writes=False).write("runs", job) == planned
            assert Plan("config", SMOKE).write("runs", job) != planned
    finally:
        kinds.use(*kept)


def test_studies_are_checked_once_until_a_file_changes(fresh, monkeypatch):
    monkeypatch.chdir(fresh.folder)
    checked, kept = [], kinds.studies[:]
    monkeypatch.setattr(project, "check_study", lambda study: checked.append(study.key))
    try:
        for plans in (1, 2):
            Plan("config", SMOKE)
            assert checked == [PAPER], plans
        Plan("config", {**SMOKE, "seed": 2})
        with fresh.edited(STUDY, "- 0.009", "- 0.007"):
            Plan("config", SMOKE)
    finally:
        kinds.use(*kept)
    assert checked == [PAPER] * 3


def test_a_dry_run_leaves_no_result(fresh):
    before = set(fresh.folder.iterdir())
    assert fresh.jobs(*ALL)["measure"] == 1
    assert set(fresh.folder.iterdir()) - before == {fresh.folder / ".snakemake"}


def test_metrics_copied_without_snakemakes_records_are_not_made_again(copy):
    """Whichever file was copied last; of those copied over others Snakemake says so."""
    shutil.rmtree(copy.folder / ".snakemake")
    assert remade(copy) == set()
    for second, path in enumerate(reversed(copy.results().values()), start=1):
        os.utime(path, (second, second))
    assert "measure" not in remade(copy)
    with copy.edited(STUDY, "- 0.009", "- 0.007"):
        assert remade(copy) == WHOLE


def test_what_was_deleted_of_an_output_is_made_again(copy, monkeypatch):
    (copy.folder / FIGURE).with_suffix(".svg").unlink()
    assert remade(copy, "made") == {"figure"}
    copy.make("made")
    monkeypatch.chdir(copy.folder)
    kept = kinds.studies[:]
    try:
        asked = Targets(Plan("config", SMOKE, writes=False)).list_existing(Wildcards())
    finally:
        kinds.use(*kept)
    files = {name for name in copy.results() if name.startswith(("figures/", "claims."))}
    assert len(files) == 10 and {f"{RESULTS}/{name}" for name in files} == set(asked)
