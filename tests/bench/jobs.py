"""What the workflow's jobs took: Snakemake's benchmarks, joined by experiment and rule."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from concord.errors import ConcordError
from concord.io import read_table, whole

GROUP = ["paper", "experiment", "rule"]
NUMBERS = ("s", "cpu_time", "max_rss")  # of Snakemake's tables
# What Snakemake writes for jobs that ended before it looked at them.
UNKNOWN = ("-", "NA", "")


def summarize(folder: Path, output: Path) -> None:
    """Write a row per paper, experiment and rule: jobs, seconds in all, the largest job.

    Parameters
    ----------
    folder
        ``results/benchmarks``, laid out as ``results``.
    output
        The table (CSV). Numbers that no job has on record are left empty.

    Raises
    ------
    ConcordError
        If the folder holds no benchmarks, or one of them is not a table of numbers.
    """
    rows = [
        (*_group(path.relative_to(folder)), *(_number(row[name], path, name) for name in NUMBERS))
        for path in sorted(folder.glob("**/*.tsv"))
        for row in read_table(path, NUMBERS, delimiter="\t")
    ]
    if not rows:
        raise ConcordError(f"{folder}: it holds no benchmarks (.tsv); run snakemake first")
    taken = pd.DataFrame(rows, columns=[*GROUP, *NUMBERS]).groupby(GROUP)
    table = taken.agg(
        jobs=("s", "size"),
        seconds=("s", "sum"),
        longest_seconds=("s", "max"),
        cpu_seconds=("cpu_time", "sum"),
        largest_rss_mb=("max_rss", "max"),
    )
    for column in ("seconds", "cpu_seconds"):
        table[column] = table[column].map("{:.2f}".format)
    with whole(output) as path:
        table.to_csv(path, lineterminator="\n")


def _number(text: str, path: Path, column: str) -> float | None:
    if text in UNKNOWN:
        return None
    try:
        return float(text)
    except ValueError:
        raise ConcordError(f"{path}: {column}: {text!r} is not a number; delete the file") from None


def _group(path: Path) -> tuple[str, str, str]:
    """Return paper, experiment and rule of a benchmark.

    ``<paper>/<experiment>/<batch>/<rule>.tsv`` is that of a batch, ``chains_0_50.tsv`` there of
    some chains; figures and tables have their folder for a rule, universes are the experiment
    "multiverse", and ``fetch/<data set>/<file>.tsv`` has no paper.
    """
    *folders, name = path.with_suffix("").parts
    if folders[:1] == ["fetch"]:
        return "", folders[-1], "fetch"
    if len(folders) == 2:
        return folders[0], "", folders[1]
    rule = re.sub(r"^chains_\d+_\d+$", "sample_chains", name)
    paper, experiment = folders[:2] if len(folders) > 2 else ("".join(folders), "")
    return paper, experiment, rule


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("benchmarks", type=Path, help="results/benchmarks")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        summarize(options.benchmarks, options.output)
    except ConcordError as error:
        sys.exit(f"jobs: {error}")


if __name__ == "__main__":
    main()
