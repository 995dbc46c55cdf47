"""What Snakemake runs again after a change, and what it leaves alone."""

import os
import shutil
from pathlib import Path

import pytest
from smoke_project import FIGURES, PAPER, RESULTS, STUDY, Project

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]


RUN = "linear_step/step_size=0.001"
BATCH = "linear_step/batch_0.made.json"
FILES = ("run.yaml", "trace.nc", "trace.json", "metrics.csv", "metrics.json")


def times(project: Project) -> dict[str, int]:
    return {name: os.stat(path).st_mtime_ns for name, path in project.results().items()}


def test_a_step_size_reruns_its_run_and_the_figures_that_show_it(finished, tmp_path):
    project = Project(tmp_path / "project", finished.folder)
    before = times(project)
    with project.edited(STUDY, "values: [0.001, 0.006]", "values: [0.001, 0.007]"):
        assert project.jobs(*FIGURES) == {"measure": 1, "figure": 1}
        project.make(*FIGURES)
        assert project.jobs(*FIGURES) == {}
    changed = {name for name, time in times(project).items() if time != before.get(name)}
    run = "linear_step/step_size=0.007"
    endings = ("pdf", "svg", "png", "json", "caption.md")
    assert changed == {f"{run}/{file}" for file in FILES} | {BATCH} | {
        f"figures/fig4.{ending}" for ending in endings
    }


# What is edited, and the jobs that it makes run again.
TOP = "\nimport ", "\n\nimport "
EDITS = {
    "a value that no label names": (
        (STUDY, "friction: 15.0", "friction: 14.0"),
        {"measure": 1, "figure": 1},
    ),
    "a color": (("src/concord_studies/figures/style.py", "#e6e6e6", "#123456"), {"figure": 2}),
    "a caption": (
        (STUDY.replace("study", "figures"), "The logarithm of the", "A logarithm of the"),
        {"figure": 1},
    ),
    "a sampler": (("src/concord/samplers/de_sghmc.py", *TOP), {"measure": 1, "figure": 1}),
    "another sampler": (("src/concord/samplers/d_ula.py", *TOP), {}),
    # It measures again without sampling: tests/concord_studies/test_make.py
    "a metric": (("src/concord_studies/metrics/__init__.py", *TOP), {"measure": 4, "figure": 2}),
}


@pytest.mark.parametrize("what", EDITS)
def test_what_is_edited_reruns_what_is_made_from_it(what, finished):
    edit, jobs = EDITS[what]
    with finished.edited(*edit):
        assert finished.jobs(*FIGURES) == jobs


def test_a_batch_that_is_forced_keeps_what_stands(finished, tmp_path):
    """A run is made again after its folder has been deleted, and no other with it."""
    project = Project(tmp_path / "project", finished.folder)
    before = times(project)
    project.make(FIGURES[1], "--forcerun", "measure")
    after = times(project)
    assert {name for name in after if after[name] != before[name]} >= {BATCH}
    assert not any(after[name] != before[name] for name in after if name.startswith(RUN))
    shutil.rmtree(project.folder / RESULTS / RUN)
    assert project.batches(FIGURES[1]) == {f"{PAPER}/{BATCH.removesuffix('.made.json')}"}
    project.make(FIGURES[1])
    made = {name for name, time in times(project).items() if time != after.get(name)}
    assert {name for name in made if name.startswith("linear_step/step_size")} == {
        f"{RUN}/{file}" for file in FILES
    }
    assert project.jobs(*FIGURES) == {}


def test_a_run_that_is_asked_for_is_made_with_its_batch(project):
    target = f"{RESULTS}/{RUN}/metrics.csv"
    assert project.jobs(target) == {"measure": 1, "run": 1}
    project.make(target)
    assert len(project.results("metrics.csv")) == 2
    assert project.jobs(target) == project.jobs(target.replace("metrics.csv", "run.yaml")) == {}


def test_a_trace_that_was_deleted_is_sampled_again_if_it_is_asked_for(finished, tmp_path):
    project = Project(tmp_path / "project", finished.folder)
    trace = project.folder / RESULTS / RUN / "trace.nc"
    content = trace.read_bytes()
    trace.unlink()
    assert project.jobs(*FIGURES) == {}
    target = str(trace.relative_to(project.folder))
    assert project.jobs(target) == {"run": 1}
    project.make(target)
    assert len(trace.read_bytes()) == len(content)
    assert project.jobs(*FIGURES, target) == {}


def test_jobs_stay_within_their_memory(finished):
    """Peaks as Snakemake measured them, at smoke scale, so of the libraries mostly."""
    tables = list((finished.folder / "results/smoke/benchmarks").rglob("*.tsv"))
    assert len(tables) == 4 + 2
    peaks = []
    for path in map(Path, tables):
        header, row = (line.split("\t") for line in path.read_text().splitlines())
        peaks.append(dict(zip(header, row, strict=True))["max_rss"])
    measured = [float(peak) for peak in peaks if peak not in ("NA", "-")]
    # The shortest jobs may end before they are measured.
    assert len(measured) > len(peaks) / 2 and 50 < max(measured) < 1024
