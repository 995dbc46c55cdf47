"""The folder `.test`, in which catalogs of workflows try one: everything, at smoke scale."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.workflow
def test_the_test_folder_plans_a_paper(tmp_path):
    for name in ("workflow", "config", "profiles", "envs", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "Snakefile", tmp_path)
    shutil.copytree(ROOT / ".test" / "config", tmp_path / ".test" / "config", symlinks=True)
    command = [sys.executable, "-m", "snakemake", "-d", ".test", "-n", "-c1", "gurbuzbalaban2021"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "measure" in done.stdout
    assert "results/smoke/gurbuzbalaban2021/linear_step/metrics.csv" in done.stdout
