"""`snakemake --sdm conda` and `--sdm apptainer`, as far as they go without channel and privileges.

A stand-in for conda makes environments that hold this Python: what Snakemake asks of conda, and
how jobs run in an environment, is real. tests/test_environments.py has a solver read the files.
"""

import os
import sys

import pytest
from smoke_project import RESULTS

pytestmark = pytest.mark.workflow

CONDA = """#!/bin/sh
case "$1 $2" in
--version*) echo conda 25.1.0 ;;
"info --json") echo '{{"conda_prefix": "{base}", "platform": "linux-64"}}' ;;
"config --get") echo '{{"get": {{"channel_priority": "strict"}}}}' ;;
"env create")
    while [ "$1" != --prefix ]; do shift; done
    mkdir -p "$2/bin"
    cp "{base}/python" "$2/bin" ;;
clean*) ;;
*) exit 1 ;;
esac
"""
ACTIVATE = 'export CONDA_PREFIX="$1" PATH="$1/bin:$PATH"\n'
INTERPRETER = """#!/bin/sh
echo "$CONDA_PREFIX|$PYTHONPATH|$3" >> "{base}/jobs"
exec "{python}" "$@"
"""


def test_jobs_run_in_the_environment_with_the_code_of_the_project(project, tmp_path, monkeypatch):
    base = tmp_path / "conda"
    (base / "bin").mkdir(parents=True)
    for path, text in (("bin/conda", CONDA), ("bin/activate", ACTIVATE), ("python", INTERPRETER)):
        (base / path).write_text(text.format(base=base, python=sys.executable))
        (base / path).chmod(0o755)
    monkeypatch.setenv("PATH", f"{base}/bin{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    target = f"{RESULTS}/linear_step/metrics.csv"
    done = project.snakemake(target, "--sdm", "conda")
    assert done.returncode == 0, done.stdout
    made = project.folder / ".snakemake/conda"
    (asked,) = made.glob("*.yaml")
    assert asked.read_bytes() == (project.folder / "envs/concord.yaml").read_bytes()
    jobs = [line.split("|") for line in (base / "jobs").read_text().splitlines()]
    place = [str(asked.with_suffix("")), str(project.folder / "src")]
    assert jobs == [[*place, "measure"]]


APPTAINER = """#!/bin/bash
if [ "$1" = --version ]; then echo apptainer version 1.3.4; exit; fi
echo "$@" >> "{base}/jobs"
while [ "${{1%.sif}}" = "$1" ]; do shift; done
shift
exec "$@"
"""


def test_jobs_run_in_the_container_that_the_configuration_names(project, tmp_path, monkeypatch):
    """A stand-in for Apptainer, which needs privileges that few build machines give."""
    base = tmp_path / "bin"
    base.mkdir()
    (base / "apptainer").write_text(APPTAINER.format(base=base))
    (base / "apptainer").chmod(0o755)
    image = tmp_path / "concord.sif"
    image.touch()
    monkeypatch.setenv("PATH", f"{base}{os.pathsep}{os.environ['PATH']}")
    target = f"{RESULTS}/linear_step/metrics.csv"
    options = ("--sdm", "apptainer")
    done = project.snakemake(target, *options, config=[f"container={image}"])
    assert done.returncode == 0, done.stdout
    jobs = (base / "jobs").read_text()
    assert f" {image} " in jobs and jobs.count("-m concord_cli measure") == 1
    made = (project.folder / target).read_bytes()
    assert project.snakemake(target).returncode == 0
    assert (project.folder / target).read_bytes() == made
