"""The table of what jobs took."""

from __future__ import annotations

import csv

import pytest

import jobs

HEAD = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time\n"


def benchmark(path, seconds, rss, cpu):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEAD}{seconds}\t0:00:01\t{rss}\t1\t1\t1\t0\t0\t50\t{cpu}\n")


def test_jobs_are_joined_by_experiment_and_rule(tmp_path):
    folder = tmp_path / "benchmarks"
    benchmark(folder / "paper" / "linear" / "n=1" / "sample.tsv", 2.5, 100, 2)
    benchmark(folder / "paper" / "linear" / "n=2" / "sample.tsv", 1.5, 300, 1)
    benchmark(folder / "paper" / "linear" / "n=2" / "chains_0_50.tsv", 1.0, 80, 1)
    benchmark(folder / "paper" / "linear" / "batch_0" / "measure.tsv", 4.0, 120, 4)
    benchmark(folder / "paper" / "multiverse" / "seed_2" / "small-runs" / "measure.tsv", 2.0, 50, 2)
    benchmark(folder / "paper" / "figures" / "fig1.tsv", 3.0, "-", "NA")
    benchmark(folder / "paper" / "judge.tsv", 0.5, 10, 0.25)
    benchmark(folder / "fetch" / "magic" / "magic04.data.tsv", 0.7, 40, 0.1)
    benchmark(folder / "join.tsv", 0.2, 5, 0.1)
    jobs.main([str(folder), "-o", str(tmp_path / "jobs.csv")])
    with open(tmp_path / "jobs.csv") as file:
        head, *rows = csv.reader(file)
    numbers = ["jobs", "seconds", "longest_seconds", "cpu_seconds", "largest_rss_mb"]
    assert head == [*jobs.GROUP, *numbers]
    assert rows == [
        ["", "", "join", "1", "0.20", "0.2", "0.10", "5.0"],
        ["", "magic", "fetch", "1", "0.70", "0.7", "0.10", "40.0"],
        ["paper", "", "figures", "1", "3.00", "3.0", "0.00", ""],
        ["paper", "", "judge", "1", "0.50", "0.5", "0.25", "10.0"],
        ["paper", "linear", "measure", "1", "4.00", "4.0", "4.00", "120.0"],
        ["paper", "linear", "sample", "2", "4.00", "2.5", "3.00", "300.0"],
        ["paper", "linear", "sample_chains", "1", "1.00", "1.0", "1.00", "80.0"],
        ["paper", "multiverse", "measure", "1", "2.00", "2.0", "2.00", "50.0"],
    ]


@pytest.mark.parametrize(
    "text", ["", "s\tcpu_time\n1\t1\n", f"{HEAD}x\t0\t1\t1\t1\t1\t0\t0\t5\t1\n"]
)
def test_what_is_no_benchmark_is_named(text, tmp_path):
    path = tmp_path / "benchmarks" / "join.tsv"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(SystemExit, match=r"join\.tsv.*delete the file"):
        jobs.main([str(path.parent), "-o", str(tmp_path / "jobs.csv")])
    assert not (tmp_path / "jobs.csv").exists()


def test_a_folder_without_benchmarks_is_told(tmp_path):
    with pytest.raises(SystemExit, match="no benchmarks"):
        jobs.main([str(tmp_path), "-o", str(tmp_path / "jobs.csv")])
