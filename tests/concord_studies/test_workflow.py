"""What the rules ask: batches, what is stale and why, what jobs take, what they are told."""

import os
import re
import shutil
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import yaml
from snakemake.iocontainers import Wildcards
from test_make import CONFIG, RUNS, STUDY

import everything
from concord_studies import integrity
from concord_studies.configuration.stated import RESERVED
from concord_studies.make import make
from concord_studies.runs import measure
from concord_studies.stages import draw
from concord_studies.workflow import PLANNED, USUAL, Workflow, sampled

STEPS, LONG, MNIST = "x/steps/batch_0", "x/long/iterations=1000000", "x/mnist/run"
LAZY = "x/multiverse/weights.lazy/small-runs"
WEIGHTS = {
    "value": "Metropolis weights",
    "rests": {"experiment": "steps"},
    "alternatives": [
        {
            **{"label": "lazy", "says": "another", "reason": "also used"},
            "set": {"sampler.weights": "lazy_metropolis"},
        }
    ],
}
CLAIM = {
    **{"where": "here", "says": "it is so", "reason": "printed"},
    "check": {
        "kind": "measurement",
        "quantity": {"experiment": ["steps", "long"], "metric": "w2", "agents": [0]},
    },
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    study = tmp_path / "config" / "papers" / "x" / "study.yaml"
    study.parent.mkdir(parents=True)
    sections = {**STUDY, "assumptions": {"weights": WEIGHTS}, "claims": {"c": CLAIM}}
    study.write_text(yaml.safe_dump(sections, sort_keys=False))
    everything.copy("parayil2020", study.parent)
    (tmp_path / ".snakemake").mkdir()
    shutil.copy(CONFIG, tmp_path / "config")
    shutil.copy(CONFIG.parent / "datasets.yaml", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CONCORD_DATA_MIRROR", raising=False)
    return tmp_path


@pytest.fixture
def flow(folder, monkeypatch):
    """Return what plans a project, with changes of its configuration."""
    monkeypatch.setenv(PLANNED, "removed, and put back as it was, after the test")

    def plan(**changes: Any) -> Workflow:
        monkeypatch.delenv(PLANNED, raising=False)
        return Workflow(changes)

    return plan


def of(batch: str = "", **wildcards: str) -> Wildcards:
    return Wildcards(fromdict={**({"batch": batch} if batch else {}), **wildcards})


def edit(old: str, new: str) -> None:
    file = Path("config/papers/x/study.yaml")
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def made(flow: Workflow, batch: str = STEPS) -> Path:
    """Make a batch, as its job does, and return its file."""
    runs = flow.batch(of(batch))
    make(runs, flow.place, Path("resources"), runs.file(flow.place))
    return runs.file(flow.place)


def reason(because: list[str], file: Path) -> str:
    """Return what the only file is named after, which must be newer than what is stale."""
    if not because:
        return ""
    (path,) = map(Path, because)
    name = re.fullmatch(r"\.(\w+)\.[0-9a-f]+\.concord-part", path.name)
    assert name and path.parent == Path(".snakemake")
    assert not file.exists() or path.stat().st_mtime > file.stat().st_mtime
    return name[1]


# Targets


def test_the_targets_that_are_no_files(flow):
    plan = flow()
    found = plan.targets
    beside = {"everything", "ledger", "made", "multiverse"}
    assert found.keys() == {*plan.studies, *beside, *(f"multiverse_{key}" for key in plan.papers)}
    assert beside <= RESERVED
    assert found["ledger"] == ["results/claims.csv"]  # no verdicts are committed there
    assert found["multiverse"] == found["multiverse_x"] == ["results/x/multiverse.csv"]
    makeable, *others = found["x"]
    assert makeable(of()) == found["everything"][0](of()) == plan.without_downloads(of())
    assert others == []


# Batches


def test_the_batch_of_a_job(flow):
    plan = flow()
    assert [run.name for run in plan.batch(of(STEPS)).runs] == list(RUNS)
    assert [run.name for run in plan.batch(of(LONG)).runs] == ["iterations=1000000"]
    assert plan.batch(of(LAZY)).variant and len(plan.batch(of(LAZY)).runs) == 3
    assert [run.name for run in plan.batch(of(f"x/steps/{RUNS[1]}")).runs] == [RUNS[1]]
    assert plan.batch(of(STEPS)) is plan.batch(of(STEPS))
    run = of(paper="x", experiment="steps", run=RUNS[1])
    assert plan.batch_of_run(run) == "results/x/steps/batch_0.made.json"
    assert plan.metrics(plan.batch(of(STEPS)).runs) == ["results/x/steps/batch_0.made.json"]


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        ("y/steps/batch_0", "config/papers: there is no 'y'"),
        ("x/steps/step=9", "steps has no run 'step=9'; did you mean 'step=0.03'?"),
        ("x/stepz/batch_0", "there is no experiment 'stepz'; did you mean 'steps'?"),
        ("x/multiverse/seed_9/small-runs", "there is no universe 'seed_9'"),
        ("x/multiverse/seed_2/other", "seed_2 computes no 'other'"),
    ],
)
def test_a_batch_that_there_is_not_is_told(batch, said, flow):
    with pytest.raises(SystemExit, match=re.escape(said)):
        flow().batch(of(batch))


def test_a_long_run_is_sampled_by_a_job_of_its_own_and_its_chains_by_several(flow):
    plan = flow()
    assert plan.traces(of(STEPS)) == plan.traces(of(LAZY)) == plan.pieces(of(LONG)) == []
    assert plan.traces(of(LONG)) == [f"results/{LONG}.sampled.json"]
    edit("chains: 30", "chains: 120")
    plan = flow(chains_per_job=50)
    pieces = [(0, 50), (50, 100), (100, 120)]
    assert plan.pieces(of(LONG)) == [f"results/{LONG}.{sampled(p)}.json" for p in pieces]
    assert plan.traces(of(f"x/steps/{RUNS[0]}")) == [f"results/x/steps/{RUNS[0]}.sampled.json"]
    assert plan.for_draws(of(LONG)) == plan.pieces(of(LONG))
    assert plan.for_metrics(of(LONG)) == plan.traces(of(LONG))


def test_data_files_are_inputs_and_optional_ones_where_they_are_at_hand(flow):
    plan = flow()
    assert plan.data(of(STEPS)) == []
    needed = plan.data(of(MNIST))
    assert plan.for_draws(of(MNIST)) == needed
    assert plan.for_metrics(of(MNIST)) == plan.traces(of(MNIST)) + needed
    assert len(needed) == 4 and all(file.startswith("resources/mnist/") for file in needed)
    folder = next(Path("resources", name) for name in plan.data_files if "svhn" in name)
    for file in plan.data_files[folder.name]:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).touch()
    assert len(plan.data(of(MNIST))) > 4
    os.mkfifo("pipe")
    Path(needed[0]).parent.mkdir(parents=True)
    Path(needed[0]).symlink_to(Path("pipe").absolute())
    with pytest.raises(SystemExit, match=f"{re.escape(needed[0])}: it is not a file; remove it"):
        plan.data(of(MNIST))


# What is stale


def test_where_nothing_stands_nothing_is_stale(flow):
    plan = flow()
    assert plan.stale_metrics(of(STEPS)) == plan.stale_draws(of(LONG)) == []
    assert plan.stale("figure")(of(paper="x", section="figures", name="fig1")) == []


def test_each_reason_has_a_batch_made_again(flow, monkeypatch):
    plan = flow()
    file = made(plan)

    def why() -> str:
        return reason(flow().stale_metrics(of(STEPS)), file)

    assert why() == ""
    edit("points: 40", "points: 41")
    assert why() == "parameters_changed"
    edit("points: 41", "points: 40")
    with monkeypatch.context() as changed:
        changed.setattr(measure, "code", lambda *_: "another")
        assert why() == "code_changed"
    with monkeypatch.context() as changed:
        changed.setattr(measure.Run, "data_digest", lambda *_: "another")
        assert why() == "data_changed"
    table, text = Path("results/x/steps", RUNS[1], "metrics.csv"), file.read_text()
    content = table.read_bytes()
    table.write_bytes(content[:-1])
    assert why() == "damaged"
    table.unlink()
    assert why() == "missing"
    table.write_bytes(content)
    assert why() == ""  # a copy, of another time, is read
    file.write_text(text.replace("steps", "stepz"))
    assert why() == "damaged"
    file.unlink()
    assert why() == "missing"
    file.symlink_to("nowhere")
    assert why() == "missing"


def test_a_trace_that_was_deleted_is_not_missed_but_a_damaged_one_is(flow):
    file = made(flow())
    trace = Path("results/x/steps", RUNS[0], "trace.nc")
    content = trace.read_bytes()
    trace.unlink()
    assert flow().stale_metrics(of(STEPS)) == []
    trace.write_bytes(content[:-1])
    assert reason(flow().stale_metrics(of(STEPS)), file) == "damaged"


def test_draws_are_stale_if_they_stand_and_their_run_is_another(flow):
    name = f"x/steps/{RUNS[0]}"
    runs = flow().batch(of(name))
    for chains in ((0, 30), None):
        file = runs.file(Path("results"), sampled(chains))
        make(runs, Path("results"), Path("resources"), file, sampled=True, chains=chains)

        wildcards = of(name, **({"first": "0", "end": "30"} if chains else {}))
        assert flow().stale_draws(wildcards) == []
        edit("points: 40", "points: 41")
        assert reason(flow().stale_draws(wildcards), file) == "parameters_changed"
        edit("points: 41", "points: 40")
    trace = Path("results", name, "trace.nc")
    trace.write_bytes(trace.read_bytes()[:-1])
    assert reason(flow().stale_draws(of(name)), file) == "damaged"
    assert reason(flow().stale_draws(of(name, first="0", end="30")), file) == "missing"


def test_each_reason_has_a_sealed_result_made_again(flow, monkeypatch):
    file = Path("results/x/figures/fig1.pdf")
    file.parent.mkdir(parents=True)
    now = {"entry": "1", "code": "2", "metrics": "3"}
    monkeypatch.setattr(draw, "made", lambda *_: now)

    def why() -> str:
        wildcards = of(paper="x", section="figures", name="fig1")
        return reason(flow().stale("figure")(wildcards), file)

    assert why() == "missing"
    file.write_text("drawn")
    assert why() == "damaged"
    integrity.seal([file], dict(now))
    assert why() == ""
    for key in now:
        was, now[key] = now[key], "another"
        assert why() == f"{key}_changed"
        now[key] = was
    os.utime(file)
    assert why() == ""
    file.write_text("other")
    assert why() == "damaged"


def test_a_job_compares_nothing(flow, monkeypatch):
    plan = flow()
    made(plan).write_text("damaged")
    assert flow().stale_metrics(of(STEPS))
    monkeypatch.setenv(PLANNED, "the process that planned it")
    job = Workflow({})
    assert job.planned and job.stale_metrics(of(STEPS)) == []


# What jobs take, and what they are told


def test_what_a_job_takes_grows_with_its_attempts(flow):
    plan = flow()
    memory, minutes = plan.taking(plan.sampling).values()
    assert [memory(of(LONG), attempt) for attempt in (1, 2)] == [USUAL["mem_mb"], 2000]
    assert memory(of(MNIST), 1) > USUAL["mem_mb"] and minutes(of(MNIST), 1) > USUAL["runtime"]
    assert plan.taking(mem_mb=600, runtime=5)["mem_mb"](of(LONG), attempt=3) == 1800
    assert plan.measuring(of(STEPS))["runtime"] == 10
    assert plan.measuring(of(LAZY))["runtime"] == 30
    assert [plan.group(of(batch)) for batch in (STEPS, LONG, MNIST)] == [
        "runs",
        "runs",
        "long_runs",
    ]
    assert plan.environment(plan.sampling)(of(MNIST)) == "../../envs/lenet.yaml"
    assert plan.environment(plan.measuring)(of(MNIST)) == "../../envs/concord.yaml"


def test_the_signature_of_what_is_asked_of_each_job_is_at_hand(flow):
    """To find it takes longer than what is asked, and Snakemake wants it again and again."""
    plan = flow()
    for asked in (
        *plan.taking(plan.sampling).values(),
        plan.environment(plan.sampling),
        *(plan.for_draws, plan.for_metrics, plan.stale_draws, plan.command, plan.group),
    ):
        function = getattr(asked, "__func__", asked)
        assert vars(function)["__signature__"] == signature(function)


def test_the_command_of_a_job_makes_its_batch(flow):
    plan = flow(scale="smoke", seed=7)
    study, options = "config/papers/x", "--scale smoke --seed 7 --results results/smoke"
    assert plan.command(of(STEPS)) == f"{study} steps/batch_0 {' '.join(RUNS)} {options}"
    assert plan.command(of(MNIST)).endswith(f" run {options} --progress")
    batch = LAZY.partition("/")[2]
    assert plan.command(of(LAZY)) == f"{study} {batch} {options}"
    assert plan.settings(of(paper="x")) == f"{study} {options}"
    wildcards = of(paper="x", experiment="steps", run=RUNS[0], file="trace.nc")
    place = f"results/smoke/x/steps/{RUNS[0]}"
    assert plan.by_hand(wildcards) == (
        f"python -m concord_cli sample {place}/run.yaml -o {place}/trace.nc"
    )
    wildcards = of(paper="x", experiment="steps", run=RUNS[0], file="metrics.csv")
    assert plan.by_hand(wildcards) == "false"


def test_jobs_find_python_and_the_package(flow, monkeypatch):
    """Unless conda has made an environment for them, where the package's source alone is added."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["mine", "with space"]))
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("CONCORD_DATA_MIRROR", "a {mirror}")
    prefix = flow().prefix.replace("{{", "{").replace("}}", "}")

    def seen(**environment: str) -> list[str]:
        script = f'{prefix} printf \'%s\\n\' "$PYTHONPATH" "$PATH" "$CONCORD_DATA_MIRROR"'
        command = ["sh", "-c", script]
        given = {"PATH": os.environ["PATH"], **environment}
        return subprocess.run(
            command, env=given, capture_output=True, text=True, check=True
        ).stdout.splitlines()

    source = str(Path(measure.__file__).parents[2])
    own = [source, *(str(Path(name).absolute()) for name in ("mine", "with space"))]
    path, programs, mirror = seen()
    assert path.split(os.pathsep) == own and mirror == "a {mirror}"
    assert programs.startswith(str(Path(sys.executable).parent))
    path, programs, _ = seen(CONDA_PREFIX="/an/environment")
    assert path == source and programs == os.environ["PATH"]


# Targets


def test_what_there_is_of_results(flow):
    plan = flow()
    files = ["results/x/figures/fig1.pdf", "results/x/figures/fig2.pdf", "results/x/claims.csv"]
    Path(files[0]).parent.mkdir(parents=True)
    Path(files[0]).touch()
    Path(files[1]).with_suffix(".json").touch()
    assert plan.standing(files)(of()) == files[:2]
    with pytest.raises(
        SystemExit, match="there is no target 'reproduec'; did you mean 'reproduce'"
    ):
        plan.unknown(of(target="reproduec"))


def test_what_is_missing_leaves_its_figures_out(flow, monkeypatch, capsys):
    study = Path("config/papers/x/study.yaml")
    sections = yaml.safe_load(study.read_text())
    sections["figures"]["fig2"] = {**sections["figures"]["fig1"], "runs": ["cells"]}
    study.write_text(yaml.safe_dump(sections, sort_keys=False))
    plan = flow()
    run = plan.studies["x"].output_runs("figures", "fig2")[0]
    kind = type(run)
    lacking = property(lambda run: "install it" if run.experiment == "cells" else None)
    monkeypatch.setattr(kind, "unavailable", lacking)
    assert plan.makeable(["x"])(of()) == []
    assert capsys.readouterr().err == "concord: left out x/fig1, x/fig2: install it\n"
    found = flow(conda=True).makeable(["x"])(of())
    assert found == [f"results/x/figures/{name}.pdf" for name in ("fig1", "fig2")]


def test_verdicts_wait_for_the_universes_where_that_is_wanted(flow):
    assert flow().surveyed_first(of(paper="x")) == []
    assert flow(multiverse=True).surveyed_first(of(paper="x")) == ["results/x/multiverse.csv"]


def test_universes_that_are_not_wanted_are_left_out(flow):
    long = [f"results/x/multiverse/seed_{seed}/long.made.json" for seed in (2, 3, 4, 5)]
    varied = flow().varied(of(paper="x"))
    assert {f"results/{LAZY}.made.json", *long} <= {*varied}
    assert {*varied} - {*flow(not_varied=["x/long"]).varied(of(paper="x"))} == {*long}


def test_a_folder_with_braces_is_refused(flow, tmp_path, monkeypatch):
    place = tmp_path / "{here}"
    shutil.copytree(tmp_path / "config", place / "config")
    monkeypatch.chdir(place)
    with pytest.raises(SystemExit, match="braces in a folder's name"):
        flow()
