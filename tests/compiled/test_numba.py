"""Results with numba, without it, and with a broken one: the same files, seals that agree.

The kernels of ``concord.compiled`` use numba where it is installed; R-hat and the like do not.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
STUDY = {
    "paper": {"title": "T", "authors": "A", "year": 2021},
    "problems": {"mixture": {"kind": "tied_mixture", "points": 20}},
    "defaults": {
        "problem": "mixture",
        "agents": 2,
        "chains": 5,
        "iterations": 3000,
        "topology": "complete",
        "sampler": {"kind": "de_sgld"},
        "metrics": ["diagnostics"],
        "record": {"every": 50},
    },
    "experiments": {
        "steps": {"sweep": {"step": {"key": "sampler.step_size", "values": [0.01, 0.02]}}}
    },
}
RUNS = ("step=0.01", "step=0.02")
CODE = """
import json, sys
{before}
from concord import compiled
compiled._awaited = 0  # as in a longer run
from concord.__main__ import main
assert main(json.load(sys.stdin)) == 0
names = "numba", "concord.problems._compiled", "concord.compiled.kernels"
print([name for name in names if sys.modules.get(name)])
"""
WITHOUT = 'sys.modules["numba"] = None'


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    (folder / "config" / "papers" / "x").mkdir(parents=True)
    (folder / "config" / "papers" / "x" / "study.yaml").write_text(yaml.safe_dump(STUDY))
    (folder / "config" / "config.yaml").write_text("seed: 1\nscale: paper\n")
    return folder


def made(study: Path, results: Path, before: str = "", path: str = "") -> tuple[str, str]:
    """Make what is missing of the runs; return what the process says on both streams."""
    batch, output = "config/papers/x", results / "x" / "steps" / "batch_0.made.json"
    words = ["make", batch, "steps/batch_0", *RUNS, "--results", results, "-o", output]
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(before=before)],
        cwd=study,
        input=json.dumps(list(map(str, words))),
        env=os.environ | {"PYTHONPATH": os.pathsep.join([path, str(ROOT / "src")])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def files(results: Path) -> dict[str, bytes | str]:
    """Return the bytes of all files, and of seals what they were made from."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        if path.suffix != ".json"
        else json.dumps([json.loads(path.read_bytes())[key] for key in ("made", "sha256")])
        for path in results.glob("x/steps/*/*")
    }


@pytest.mark.thorough
def test_the_environments_are_swapped_between_two_commands(study, tmp_path) -> None:
    told, _ = made(study, study / "results")
    assert "_compiled" in told and "kernels" in told
    everything = files(study / "results")
    names = ("trace.nc", "trace.json", "metrics.csv")
    assert all(f"x/steps/{run}/{name}" in everything for run in RUNS for name in names)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "numba.py").write_text("raise SystemError('initialization failed')\n")
    for before, path, says in ((WITHOUT, "", 0), ("", str(broken), 1)):
        for name in (f"{RUNS[0]}/metrics.csv", f"{RUNS[1]}/trace.nc", f"{RUNS[1]}/metrics.csv"):
            file = study / "results" / "x" / "steps" / name
            file.unlink()
            file.with_suffix(".json").unlink()
        left = files(study / "results")
        assert len(left) < len(everything)
        told, error = made(study, study / "results", before, path)
        assert "numba" not in told and "_compiled" not in told
        assert error.count("numba is installed, but cannot be used") == says
        assert files(study / "results") == everything
