"""Results with numba, without it, and with a broken one: the same files, seals that agree.

ArviZ and the mixture's gradient use numba where it is installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
STUDY = {
    "paper": {"title": "T", "authors": "A", "year": 2021},
    "problems": {"mixture": {"kind": "tied_mixture", "points": 20}},
    "defaults": {
        "problem": "mixture",
        "agents": 2,
        "chains": 5,
        "iterations": 30_000,  # so many are compiled
        "topology": "complete",
        "sampler": {"kind": "de_sgld"},
        "metrics": ["diagnostics"],
        "record": {"every": 500},
    },
    "experiments": {
        "steps": {"sweep": {"step": {"key": "sampler.step_size", "values": [0.01, 0.02]}}}
    },
}
RUNS = ("step=0.01", "step=0.02")
CODE = """
import json, sys
{before}
from concord.__main__ import main
for command in json.load(sys.stdin):
    assert main(command) == 0, command
print([name for name in ("numba", "concord.problems._compiled") if sys.modules.get(name)])
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
    commands = []
    for run in RUNS:
        files = [results / run / name for name in ("run.yaml", "trace.nc", "metrics.csv")]
        wanted = (
            ["resolve", "config/papers/x", "steps", run, "-o", files[0]],
            ["sample", files[0], "-o", files[1]],
            ["measure", files[0], files[1], "-o", files[2]],
        )
        commands += [
            [str(word) for word in command]
            for file, command in zip(files, wanted, strict=True)
            if not file.exists()
        ]
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(before=before)],
        cwd=study,
        input=json.dumps(commands),
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
        for path in results.rglob("*")
        if path.is_file()
    }


def test_the_environments_are_swapped_between_two_commands(study, tmp_path) -> None:
    told, _ = made(study, study / "results")
    assert "_compiled" in told
    everything = files(study / "results")
    assert all(f"{run}/{name}" in everything for run in RUNS for name in ("trace.nc", "trace.json"))
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "numba.py").write_text("raise SystemError('initialization failed')\n")
    for before, path, says in ((WITHOUT, "", 0), ("", str(broken), 1)):
        for name in (f"{RUNS[0]}/metrics.csv", f"{RUNS[1]}/trace.nc", f"{RUNS[1]}/metrics.csv"):
            (study / "results" / name).unlink()
            (study / "results" / name).with_suffix(".json").unlink()
        left = files(study / "results")
        assert len(left) < len(everything)
        told, error = made(study, study / "results", before, path)
        assert "numba" not in told and "_compiled" not in told
        assert error.count("numba is installed, but cannot be used") == says
        assert files(study / "results") == everything
