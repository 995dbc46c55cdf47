"""Plug-ins in a folder of the user's PYTHONPATH: planning finds them, and so do jobs."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from smoke_project import RESULTS, Project

from installed_plugins import LADDER, install

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

STUDY = Path(__file__).with_name("rungs.yaml")
MADE = f"{RESULTS}/compare/metrics.csv"


def made(project: Project, *folders: object) -> str:
    """Make the run with this PYTHONPATH, and return what was said."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    python, *command = project.command(MADE)
    done = subprocess.run(
        [python, "-P", *command],
        cwd=project.folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode == 0) == (project.folder / MADE).exists()
    return done.stdout + done.stderr


def test_jobs_find_what_planning_has_found(project, tmp_path):
    project.rewrite(yaml.safe_load(STUDY.read_text()))
    assert "there is no topology 'rungs'" in made(project)
    words = LADDER.format(imports="import words_of_rungs")
    install(tmp_path / "mine", "of-rungs", {"ladder_of.py": words}, "ladder_of")
    install(tmp_path / "of words", "words-of-rungs", {"words_of_rungs.py": ""})
    (project.folder / "random.py").write_text("x = 1\n")  # no module, in jobs as in planning
    said = made(project, tmp_path / "mine", tmp_path / "of words")
    assert (project.folder / MADE).exists(), said
    said = made(project, tmp_path / "mine", tmp_path / "of words")
    assert "Nothing to be done" in said
