"""What Snakemake runs again after a change, and what it leaves alone."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from smoke_project import FIGURES, RESULTS, STUDY, Project

pytestmark = pytest.mark.workflow


def test_a_finished_project_has_nothing_to_do_even_if_its_files_look_newer(finished):
    assert finished.jobs(*FIGURES) == {}
    files = [
        p for part in ("src", "config", "workflow") for p in (finished.folder / part).rglob("*")
    ]
    for path in files:
        os.utime(path)
    assert finished.jobs(*FIGURES) == {}


def test_a_step_size_reruns_its_run_and_the_figures_that_show_it(finished, tmp_path):
    project = Project(tmp_path / "project", finished.folder)
    before = {path: os.stat(path).st_mtime_ns for path in project.results().values()}
    with project.edited(STUDY, "values: [0.001, 0.006]", "values: [0.001, 0.007]"):
        assert project.jobs(*FIGURES) == {"small": 1, "figure": 1}
        project.make(*FIGURES)
        assert project.jobs(*FIGURES) == {}
    changed = {
        name
        for name, path in project.results().items()
        if os.stat(path).st_mtime_ns != before.get(path)
    }
    run = "linear_step/step_size=0.007"
    endings = ("pdf", "svg", "png", "json", "caption.md")
    assert changed == {
        f"{run}/{file}"
        for file in ("run.yaml", "trace.nc", "trace.json", "metrics.csv", "metrics.json")
    } | {"linear_step/small_0.csv"} | {f"figures/fig4.{ending}" for ending in endings}


def test_a_value_that_no_label_names_reruns_the_runs_that_have_it(finished):
    with finished.edited(STUDY, "friction: 15.0", "friction: 14.0"):
        assert finished.jobs(*FIGURES) == {"small": 1, "figure": 1}


def test_a_color_redraws_and_samples_nothing(finished):
    text = (finished.folder / "src/concord/figures/style.py").read_text()
    color = re.search(r"#[0-9a-fA-F]{6}", text).group()
    with finished.edited("src/concord/figures/style.py", color, "#123456"):
        assert finished.jobs(*FIGURES) == {"figure": 2}


def test_a_caption_redraws_its_figure(finished):
    with finished.edited(
        STUDY.replace("study", "figures"), "The logarithm of the", "A logarithm of the"
    ):
        assert finished.jobs(*FIGURES) == {"figure": 1}


def test_a_sampler_reruns_its_own_runs(finished):
    with finished.edited(
        "src/concord/samplers/de_sghmc.py", "from __future__", "\nfrom __future__"
    ):
        assert finished.jobs(*FIGURES) == {"small": 1, "figure": 1}
    with finished.edited("src/concord/samplers/d_ula.py", "from __future__", "\nfrom __future__"):
        assert finished.jobs(*FIGURES) == {}


def test_a_metric_makes_what_it_measures_again(finished):
    file = "src/concord/metrics/__init__.py"  # without sampling: tests/stages/test_small.py
    with finished.edited(file, "from __future__", "\nfrom __future__"):
        assert finished.jobs(*FIGURES) == {"small": 4, "figure": 2}


def test_small_runs_that_are_forced_are_sampled_again(finished, tmp_path):
    """In the same call one of them is asked for itself: its own jobs make it, before the others."""
    project = Project(tmp_path / "project", finished.folder)
    folder = project.folder / RESULTS / "linear_step"
    table, traces = folder / "small_0.csv", sorted(folder.rglob("trace.nc"))
    own = traces[0].with_name("metrics.csv")
    targets = FIGURES[1], str(own.relative_to(project.folder))
    assert project.jobs(*targets) == {}
    before = [os.stat(path).st_mtime_ns for path in traces]
    project.make(*targets, "--forcerun", "small", "sample")
    after = [os.stat(path).st_mtime_ns for path in traces]
    assert len(after) == 2 and all(a > b for a, b in zip(after, before, strict=True))
    assert after[0] < os.stat(own).st_mtime_ns < after[1] < os.stat(table).st_mtime_ns
    assert project.jobs(*targets) == {}


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
