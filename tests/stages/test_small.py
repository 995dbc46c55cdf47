"""Small runs that share a process: the bytes of runs on their own; what stands is left alone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import yaml
from concord.studies.small import MOST, SMALL, TOGETHER, cost, many_runs, small_runs

import concord
from concord.__main__ import main
from concord.stages import small as stage
from concord.studies.config import load_config
from concord.studies.paper import Paper

CONFIG = Path(concord.__file__).parents[2] / "config" / "config.yaml"
STUDY = {
    "paper": {"title": "T", "authors": "A", "year": 2021},
    "problems": {
        "linear": {"kind": "linear_regression", "points": 40},
        "digits": {"kind": "lenet", "training_images": 100},
    },
    "defaults": {
        "problem": "linear",
        "agents": 4,
        "chains": 30,
        "iterations": 25,
        "topology": "ring",
        "metrics": ["w2", "consensus_error"],
        "record": {"every": 5, "probes": ["consensus_error"]},
        "sampler": {"kind": "de_sgld", "step_size": 0.02},
    },
    "experiments": {
        "steps": {"sweep": {"step": {"key": "sampler.step_size", "values": [0.01, 0.02, 0.03]}}},
        "long": {"sweep": {"iterations": [1000, 1_000_000]}},
        "cells": {"sweep": {"step": {"key": "sampler.step_size", "values": [1, 2, 3]}}},
        "mnist": {"problem": "digits", "metrics": [], "record": {}, "initial": {"kind": "problem"}},
    },
    "figures": {
        "fig1": {
            "kind": "curves",
            "title": "W2",
            "runs": ["steps", {"experiment": "cells", "step": 2}],
            "options": {"metric": "w2", "columns": "step", "lines": "agent", "agents": [0]},
        }
    },
}
RUNS = ("step=0.01", "step=0.02", "step=0.03")
FILES = ("run.yaml", "trace.nc", "trace.json", "metrics.csv", "metrics.json")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "config" / "papers" / "x" / "study.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(STUDY, sort_keys=False))
    shutil.copy(CONFIG, tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(*runs):
    return main(["small", "config/papers/x", "steps", *runs, "-o", "results/x/steps/small_0.csv"])


def made(folder):
    results = folder / "results" / "x" / "steps"
    return {f"{run}/{name}": (results / run / name).read_bytes() for run in RUNS for name in FILES}


def times(folder):
    return {str(p): os.stat(p).st_mtime_ns for p in (folder / "results").rglob("*.[nyj]*")}


def paper(config="config/config.yaml"):
    return Paper(Path("config/papers/x"), load_config(Path(config)))


def test_they_have_the_bytes_of_commands_for_each_stage_of_each_run(folder):
    assert make(*RUNS) == 0
    together = made(folder)
    shutil.rmtree(folder / "results")
    for run in RUNS:
        place = f"results/x/steps/{run}"
        trace, metrics = ("-o", f"{place}/trace.nc"), ("-o", f"{place}/metrics.csv")
        assert main(["resolve", "config/papers/x", "steps", run, "-o", f"{place}/run.yaml"]) == 0
        assert main(["sample", f"{place}/run.yaml", *trace]) == 0
        assert main(["measure", f"{place}/run.yaml", f"{place}/trace.nc", *metrics]) == 0
    assert made(folder) == together


@pytest.mark.parametrize("damaged", [*FILES, "both seals"])
def test_only_what_does_not_stand_is_made_again(folder, damaged):
    assert make(*RUNS) == 0
    before, stamps = made(folder), times(folder)
    runs = paper().chosen("steps", RUNS)
    results = Path("results")
    table = results / "x/steps/small_0.csv"
    assert stage.stated(table) == stage.states(runs, results, Path("resources"))
    for name in (damaged,) if damaged in FILES else ("trace.json", "metrics.json"):
        path = folder / "results/x/steps" / RUNS[1] / name
        path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    states = stage.states(runs, results, Path("resources"))
    assert [run for run in RUNS if states[run] != stage.stated(table)[run]] == [RUNS[1]]
    assert make(*RUNS) == 0
    assert made(folder) == before
    touched = {p for p, time in times(folder).items() if time != stamps[p]}
    assert touched and all(RUNS[1] in path for path in touched)
    if damaged.startswith("metrics"):
        assert {Path(path).stem for path in touched} == {"metrics"}


def test_a_trace_that_was_removed_to_save_space_is_not_missed(folder):
    assert make(*RUNS) == 0
    trace = folder / "results/x/steps" / RUNS[0] / "trace.nc"
    trace.unlink()
    assert make(*RUNS) == 0
    assert not trace.exists()


@pytest.mark.parametrize("error", [concord.ConcordError("it is odd; change it"), ValueError("no")])
def test_a_run_that_fails_leaves_the_others(folder, monkeypatch, capsys, error):
    measure = stage.measure

    def failing(run, *others):
        if RUNS[0] in str(run):
            raise error
        measure(run, *others)

    monkeypatch.setattr(stage, "measure", failing)
    assert make(*RUNS) == 2
    told = capsys.readouterr().err
    results = folder / "results/x/steps"
    if isinstance(error, ValueError):
        assert "Traceback" in told and told.endswith(
            "concord: steps: step=0.01: it failed (ValueError)\n"
        )
    else:
        assert told == "concord: steps: step=0.01: it is odd; change it\n"
    assert all((results / run / "metrics.csv").exists() for run in RUNS[1:])
    assert not (results / "small_0.csv").exists()
    stamps = times(folder)
    monkeypatch.setattr(stage, "measure", measure)
    assert make(*RUNS) == 0
    assert {p: time for p, time in times(folder).items() if p in stamps} == stamps


def test_a_disk_that_is_full_ends_it(folder, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device", "trace.nc")

    monkeypatch.setattr(stage, "sample", full)
    assert make(*RUNS) == 1
    assert capsys.readouterr().err == "concord: No space left on device (trace.nc)\n"


def test_a_run_that_there_is_not_is_told(folder, capsys):
    assert make("step=0.01", "step=0.04") == 2
    assert "steps has no run 'step=0.04'; did you mean 'step=0.03'?" in capsys.readouterr().err


def test_runs_share_a_job_if_they_are_small_and_the_same_shows_them(folder):
    found = small_runs(paper())
    names = {e: [[run.name for run in runs] for runs in jobs] for e, jobs in found.items()}
    assert names == {
        "steps": [list(RUNS)],
        "long": [["iterations=1000"]],
        "cells": [["step=1", "step=3"], ["step=2"]],
    }
    assert small_runs(paper(), chains_per_job=10) == {}


def test_a_job_has_not_too_many_and_not_too_much(folder):
    count = 2 * MOST + 1
    study = yaml.safe_load(Path("config/papers/x/study.yaml").read_text())
    steps = study["experiments"]["steps"]["sweep"]["step"]
    steps["values"] = [round(0.0001 * n, 4) for n in range(1, count + 1)]
    study["figures"]["fig1"]["runs"] = ["steps"]
    Path("config/papers/x/study.yaml").write_text(yaml.safe_dump(study))
    jobs = small_runs(paper())["steps"]
    assert sum(map(len, jobs)) == count
    assert all(len(runs) <= MOST for runs in jobs)
    for runs in jobs:
        assert all(cost(run.mapping) <= SMALL for run in runs)
        assert sum(cost(run.mapping) for run in runs) <= TOGETHER
    assert [run.name for runs in jobs for run in runs] == [
        n for e, n in paper().runs if e == "steps"
    ]


def test_more_runs_than_that_which_are_not_small_are_divided_for_what_shows_them(folder):
    study = yaml.safe_load(Path("config/papers/x/study.yaml").read_text())
    study["experiments"]["steps"]["iterations"] = 100_000
    steps = study["experiments"]["steps"]["sweep"]["step"]
    study["figures"]["fig1"]["runs"] = ["steps"]
    for count, parts in ((MOST, []), (2 * MOST + 1, [MOST, MOST, 1])):
        steps["values"] = [round(0.0001 * n, 4) for n in range(1, count + 1)]
        Path("config/papers/x/study.yaml").write_text(yaml.safe_dump(study))
        found = many_runs(paper())
        assert list(map(len, found.get("steps", []))) == parts
        assert "steps" not in small_runs(paper())
