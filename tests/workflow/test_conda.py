"""`snakemake --sdm conda`, as far as it goes without a channel.

A stand-in for conda makes environments that hold this Python: what Snakemake asks of conda, and
how jobs run in an environment, is real. tests/test_environments.py has a solver read the files.
"""

from __future__ import annotations

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
    target = f"{RESULTS}/linear_step/step_size=0.001/metrics.csv"
    done = project.snakemake(target, "--sdm", "conda", config=["conda=true"])
    assert done.returncode == 0, done.stdout
    made = project.folder / ".snakemake/conda"
    (asked,) = made.glob("*.yaml")
    assert asked.read_bytes() == (project.folder / "envs/concord.yaml").read_bytes()
    jobs = [line.split("|") for line in (base / "jobs").read_text().splitlines()]
    place = [str(asked.with_suffix("")), str(project.folder / "src")]
    assert jobs == [[*place, "make"]]
