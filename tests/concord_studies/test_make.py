"""Batches of runs: the bytes of commands for each stage of each run; what stands is left alone."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

import concord
import everything
from concord_cli.__main__ import main
from concord_studies import make as making
from concord_studies.configuration.batches import CELLS, MOST, SMALL, TOGETHER, batches, cost, long
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.provenance import module_files
from concord_studies.runs import measure, sample
from workflow.smoke_project import timeless

CONFIG = Path(concord.__file__).parents[2] / "config" / "config.yaml"
LOSS = {"kind": "bernoulli", "rate": 0.4, "direction": "one_way"}
STUDY = {
    "paper": {"title": "T", "authors": "A", "year": 2021},
    "problems": {
        "linear": {"kind": "linear_regression", "points": 40},
        "digits": {"kind": "lenet", "training_images": 100},
    },
    "assumptions": {
        "weights": {
            "value": "Metropolis weights",
            "rests": {"experiment": "steps"},
            "alternatives": [
                {
                    **{"label": "lossy", "says": "another", "reason": "also used"},
                    "set": {"network.loss": LOSS},
                }
            ],
        }
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
BATCH = Path("results/x/steps/batch_0.made.json")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    path = tmp_path / "config" / "papers" / "x" / "study.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(STUDY, sort_keys=False))
    everything.copy("parayil2020", path.parent)
    shutil.copy(CONFIG, tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(*runs, options=(), output=BATCH):
    batch = re.sub(r"\.(made|sampled\w*)\.json", "", str(output.relative_to("results/x")))
    return main(["make", "config/papers/x", batch, *runs, *options, "-o", str(output)])


def made(folder):
    results = folder / "results" / "x" / "steps"
    files = (f"{run}/{name}" for run in RUNS for name in FILES)
    return {name: timeless((results / name).read_bytes()) for name in files}


def times(folder):
    return {str(p): os.stat(p).st_mtime_ns for p in (folder / "results").rglob("*.[nycj]*")}


def paper(config="config/config.yaml"):
    return Study(Path("config/papers/x"), load_config(Path(config)))


def place(name):
    return making.at(paper().run("steps", name), Path("results"))


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


def test_the_file_of_a_batch_has_the_digests_of_its_tables(folder):
    assert make(*RUNS) == 0
    found = json.loads(BATCH.read_text())
    tables = {name: Path("results/x", name, "metrics.csv") for name in found}
    assert set(found) == {f"steps/{run}" for run in RUNS}
    assert found == {
        name: concord_studies.provenance.sha256(table) for name, table in tables.items()
    }
    before = BATCH.read_bytes()
    assert make(*RUNS) == 0
    assert BATCH.read_bytes() == before


@pytest.mark.parametrize("damaged", [*FILES, "both seals"])
def test_only_what_does_not_stand_is_made_again(folder, damaged):
    assert make(*RUNS) == 0
    before, stamps = made(folder), times(folder)
    assert not any(place(run).lacks_metrics() for run in RUNS)
    for name in (damaged,) if damaged in FILES else ("trace.json", "metrics.json"):
        path = folder / "results/x/steps" / RUNS[1] / name
        path.write_bytes(path.read_bytes().replace(b"1", b"2"))
    assert [run for run in RUNS if place(run).lacks_metrics()] == [RUNS[1]]
    assert make(*RUNS) == 0
    assert made(folder) == before
    touched = {p for p, time in times(folder).items() if time != stamps[p]} - {str(folder / BATCH)}
    assert touched and all(RUNS[1] in path for path in touched)
    if damaged.startswith("metrics"):
        assert {Path(path).stem for path in touched} == {"metrics"}


def test_why_a_run_is_made_again(folder, monkeypatch):
    assert place(RUNS[0]).lacks_metrics() == place(RUNS[0]).lacks_trace() == "missing"
    assert make(*RUNS) == 0
    assert place(RUNS[0]).lacks_metrics() == place(RUNS[0]).lacks_trace() == ""
    study = Path("config/papers/x/study.yaml")
    text = study.read_text()
    study.write_text(text.replace("points: 40", "points: 41"))
    assert place(RUNS[0]).lacks_metrics() == place(RUNS[0]).lacks_trace() == "parameters_changed"
    study.write_text(text)
    trace = place(RUNS[0]).trace
    (trace.parent / "trace.json").write_bytes(
        place(RUNS[1]).trace.with_suffix(".json").read_bytes()
    )
    assert place(RUNS[0]).lacks_metrics() == "draws_changed"
    assert place(RUNS[0]).lacks_trace() == "damaged"
    assert make(*RUNS) == 0
    with monkeypatch.context() as changed:
        changed.setattr(measure, "code", lambda *_: "another")
        assert place(RUNS[0]).lacks_metrics() == "code_changed"
        assert place(RUNS[0]).lacks_trace() == ""


def test_a_trace_that_was_removed_to_save_space_is_not_missed(folder):
    assert make(*RUNS) == 0
    trace = folder / "results/x/steps" / RUNS[0] / "trace.nc"
    trace.unlink()
    assert make(*RUNS) == 0
    assert not trace.exists()
    sampled = Path(f"results/x/steps/{RUNS[0]}.sampled.json")
    assert make(RUNS[0], options=["--sampled"], output=sampled) == 0
    assert not trace.exists()


@pytest.mark.parametrize("error", [concord.ConcordError("it is odd; change it"), ValueError("no")])
def test_a_run_that_fails_leaves_the_others(folder, monkeypatch, capsys, error):
    measured = measure.measured

    def failing(run, *others):
        if run.name == RUNS[0]:
            raise error
        return measured(run, *others)

    monkeypatch.setattr(measure, "measured", failing)
    assert make(*RUNS) == 2
    told = capsys.readouterr().err
    results = folder / "results/x/steps"
    if isinstance(error, ValueError):
        assert "Traceback" in told and told.endswith(
            "concord: x/steps/batch_0: step=0.01: it failed (ValueError)\n"
        )
    else:
        assert told == "concord: x/steps/batch_0: step=0.01: it is odd; change it\n"
    assert all((results / run / "metrics.csv").exists() for run in RUNS[1:])
    assert not BATCH.exists()
    stamps = times(folder)
    monkeypatch.setattr(measure, "measured", measured)
    assert make(*RUNS) == 0
    assert {p: time for p, time in times(folder).items() if p in stamps} == stamps


def test_a_disk_that_is_full_ends_it(folder, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device", "trace.nc")

    monkeypatch.setattr(making, "write_trace", full)
    assert make(*RUNS) == 1
    assert capsys.readouterr().err == "concord: No space left on device (trace.nc)\n"


def test_pieces_are_joined_and_go(folder):
    study = yaml.safe_load(Path("config/papers/x/study.yaml").read_text())
    study["defaults"]["chains"] = 120
    Path("config/papers/x/study.yaml").write_text(yaml.safe_dump(study))
    assert make(*RUNS) == 0
    whole, run = made(folder), RUNS[0]
    shutil.rmtree(folder / "results/x/steps" / run)
    for chains in ("0:50", "50:100", "100:120"):
        piece = Path(f"results/x/steps/{run}.sampled_{chains.replace(':', '_')}.json")
        assert make(run, options=["--sampled", "--chains", chains], output=piece) == 0
        before = times(folder)
        assert make(run, options=["--sampled", "--chains", chains], output=piece) == 0
        stood = {path: time for path, time in times(folder).items() if path.endswith(".nc")}
        assert stood == {path: before[path] for path in stood}
    pieces = sorted(path.name for path in (folder / "results/x/steps" / run).glob("*.nc"))
    assert pieces == ["chains_0_50.nc", "chains_100_120.nc", "chains_50_100.nc"]
    assert make(run, output=Path(f"results/x/steps/{run}.made.json")) == 0
    assert not list((folder / "results/x/steps" / run).glob("chains_*"))
    found = made(folder)
    assert found[f"{run}/metrics.csv"] == whole[f"{run}/metrics.csv"]


def test_a_universe_keeps_metrics_and_why_there_are_none(folder):
    """A run that cannot be is a result; its draws are not kept."""
    study = yaml.safe_load(Path("config/papers/x/study.yaml").read_text())
    study["experiments"]["steps"]["topology"] = "no_edges"
    read = {"experiment": "steps", "metric": "w2", "agents": [0]}
    claim = {"where": "here", "says": "it is so", "reason": "printed"}
    study["claims"] = {"c": {**claim, "check": {"kind": "measurement", "quantity": read}}}
    Path("config/papers/x/study.yaml").write_text(yaml.safe_dump(study))
    for universe in ("weights.lossy", "seed_2"):
        output = Path(f"results/x/multiverse/{universe}/small-runs.made.json")
        command = ["make", "config/papers/x", f"multiverse/{universe}/small-runs"]
        assert main([*command, "-o", str(output)]) == 0
        runs = [output.parent / "steps" / run for run in RUNS]
        seals = [json.loads((run / "metrics.json").read_text()) for run in runs]
        names = {path.name for run in runs for path in run.iterdir()}
        assert names == {"run.yaml", "metrics.csv", "metrics.json"}
        stamps = times(folder)
        assert main([*command, "-o", str(output)]) == 0
        stood = {p: time for p, time in times(folder).items() if "step=" in p}
        assert stood == {p: stamps[p] for p in stood}
        refused = ["refused" in seal for seal in seals]
        assert all(refused) if universe == "weights.lossy" else not any(refused)
    assert "has no edges" in str(
        json.loads(
            Path("results/x/multiverse/weights.lossy/steps", RUNS[0], "metrics.json").read_text()
        )["refused"]
    )


# Which runs are a batch


def names(**options):
    return {batch.name: [run.name for run in batch.runs] for batch in batches(paper(), **options)}


def test_runs_share_a_job_if_they_are_small_and_the_same_shows_them(folder):
    assert names() == {
        "steps/batch_0": list(RUNS),
        "long/batch_0": ["iterations=1000"],
        "long/iterations=1000000": ["iterations=1000000"],
        "cells/batch_0": ["step=1", "step=3"],
        "cells/batch_1": ["step=2"],
        "mnist/batch_0": ["run"],  # it may have to wait for data, or for what is not installed
    }
    assert all(len(runs) == 1 for runs in names(chains_per_job=10).values())


def test_a_job_has_not_too_many_and_not_too_much(folder):
    count = 2 * MOST + 1
    study = yaml.safe_load(Path("config/papers/x/study.yaml").read_text())
    steps = study["experiments"]["steps"]["sweep"]["step"]
    steps["values"] = [round(0.0001 * n, 4) for n in range(1, count + 1)]
    study["figures"]["fig1"]["runs"] = ["steps"]
    Path("config/papers/x/study.yaml").write_text(yaml.safe_dump(study))
    found = [batch.runs for batch in batches(paper()) if batch.name.startswith("steps/")]
    assert sum(map(len, found)) == count
    assert all(len(runs) <= MOST for runs in found)
    for runs in found:
        assert all(cost(run) <= SMALL and not long(run) for run in runs)
        assert sum(map(cost, runs)) <= TOGETHER
    assert [run.name for runs in found for run in runs] == [
        n for e, n in paper().runs if e == "steps"
    ]


def test_long_runs_of_the_same_exact_samples_are_measured_together(folder):
    study = yaml.safe_load(Path("config/papers/x/study.yaml").read_text())
    mixture = {"kind": "tied_mixture", "points": 8, "grid": 16}
    study["problems"] |= {"sets": {**mixture, "data_sets": 2}, "one": mixture}
    for problem, together in (("sets", True), ("one", False)):
        study["experiments"]["steps"] |= {"problem": problem, "iterations": 100_000}
        Path("config/papers/x/study.yaml").write_text(yaml.safe_dump(study))
        runs = {name for name in names() if name.startswith("steps/")}
        assert all(
            long(run) for (experiment, _), run in paper().runs.items() if experiment == "steps"
        )
        assert (runs == {"steps/batch_0"}) is together


def test_long_runs_have_batches_of_their_own_up_to_so_many(folder):
    study = yaml.safe_load(Path("config/papers/x/study.yaml").read_text())
    study["experiments"]["steps"]["iterations"] = 100_000
    steps = study["experiments"]["steps"]["sweep"]["step"]
    study["figures"]["fig1"]["runs"] = ["steps"]
    for count, parts in ((MOST, [1] * MOST), (2 * MOST + 1, [MOST, MOST, 1])):
        steps["values"] = [round(0.0001 * n, 4) for n in range(1, count + 1)]
        Path("config/papers/x/study.yaml").write_text(yaml.safe_dump(study))
        found = [batch.runs for batch in batches(paper()) if batch.name.startswith("steps/")]
        assert list(map(len, found)) == parts
        assert all(long(run) for runs in found for run in runs)


def test_a_job_scores_all_entries_of_a_task():
    """Whole tasks, so that data sets and posteriors are made once; sampled ones alone."""
    study = Study(PAPERS.parent / "studies" / "arena", load_config(PAPERS.parent / "config.yaml"))
    found = batches(study)
    assert sorted(run.folder for batch in found for run in batch.runs) == sorted(
        run.folder for run in study.runs.values()
    )
    assert len({batch.name for batch in found}) == len(found) < 80
    homes = {}
    for batch in found:
        tasks = {}
        for run in batch.runs:
            task = run.experiment, *(v for axis, v in run.labels.items() if axis != "entry")
            tasks.setdefault(task, []).append(run)
            assert homes.setdefault(task, batch.name) == batch.name
        assert len({run.experiment for run in batch.runs}) == 1
        assert len(tasks) == 1 or len(batch.runs) <= CELLS
        assert len(tasks) == 1 or not batch.runs[0].arena.sampled


PAPERS = Path(__file__).parents[1] / "config" / "papers"


def test_whatever_samples_a_run_counts_for_its_metrics_too():
    """Planning asks of short runs whether their metrics stand, and of no trace."""
    study = Study(PAPERS / "bhar2023", load_config(PAPERS.parent / "config.yaml"), True)
    run = next(iter(study.runs.values()))
    drawn = set(module_files(*sample.modules(run)))
    assert drawn <= set(module_files(*measure.modules(run)))
