"""What jobs that make runs read of a study: the same runs, and nothing that shows them."""

import subprocess
import sys
from pathlib import Path

import pytest

from concord.errors import ConcordError
from concord_studies.configuration import stated
from concord_studies.configuration.config import load_config
from concord_studies.configuration.experiments import Experiments
from concord_studies.configuration.study import Study

ROOT = Path(__file__).parents[3]
PAPERS = ROOT / "config" / "papers"
OWN = """
paper: { title: own, authors: A B, year: 2026 }
experiments:
  one: { problem: { kind: gaussian, dim: 2 }, agents: 2, topology: ring,
         sampler: { kind: de_sgld, step_size: 0.1 }, chains: 2, iterations: 3 }
"""
FIGURES = "figures:\n  fig: { kind: curves, title: a curve, runs: [one] }\n"


@pytest.fixture(scope="module")
def config():
    return load_config(ROOT / "config" / "config.yaml")


@pytest.mark.parametrize("key", ["bhar2023", "parayil2020", "extra2024"])
def test_runs_are_those_of_the_whole_study(key, config):
    whole, bare = Study(PAPERS / key, config), Experiments(PAPERS / key, config)
    assert {k: run.document for k, run in bare.runs.items()} == {
        k: run.document for k, run in whole.runs.items()
    }
    assert "claims" not in bare.raw and "claims" in whole.raw


@pytest.mark.parametrize(
    ("shown", "read"),
    [
        (f"# note\n{FIGURES}\nclaims: {{}}\n", False),
        ("figures: [not, a, mapping\n", False),  # the planner says what is wrong with it
        (f"{FIGURES}names: {{ a: b }}\n", True),
        (f"---\n{FIGURES}", True),
        ('"figures": [not, a, mapping\n', True),
        (f"{FIGURES}experimets: {{}}\n", True),
    ],
)
def test_a_file_that_only_shows_is_not_read(shown, read, config, tmp_path, monkeypatch):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "study.yaml").write_text(OWN)
    (folder / "figures.yaml").write_text(shown)
    seen, load = [], stated.load_yaml
    monkeypatch.setattr(stated, "load_yaml", lambda path: (seen.append(path.name), load(path))[1])
    try:
        assert len(Experiments(folder, config).runs) == 1
    except ConcordError:
        assert read
    assert ("figures.yaml" in seen) is read


def test_a_job_imports_no_claims():
    code = "import sys, concord_cli.runs; print([m for m in sys.modules if '.claims' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
