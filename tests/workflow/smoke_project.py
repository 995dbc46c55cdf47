"""A project of one's own for tests of the DAG: the real rules, code and paper, at smoke scale."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PARTS = ("Snakefile", "config", "envs", "profiles", "src", "workflow")
PAPER = "gurbuzbalaban2021"
STUDY = f"config/papers/{PAPER}/study.yaml"
RESULTS = f"results/smoke/{PAPER}"
SHORTER = {  # sweeps of Figure 4
    "values: [5, 10, 25, 50, 100]": "values: [5, 100]",
    "values: [0.001, 0.003, 0.006, 0.009]": "values: [0.001, 0.009]",
}
# Imports once what every Snakemake imports, which takes longer than most of them do, but nothing of
# Concord, of which each project has its own. A fork of it is then a Snakemake.
FORKS = """
import json, os, signal, sys
import matplotlib.backends.backend_agg, matplotlib.figure, networkx, numpy, pandas, snakemake.cli
for line in sys.stdin:
    arguments, folder, environment, output = json.loads(line)
    process = os.fork()
    if process == 0:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(output, os.O_WRONLY), 1)
        os.dup2(1, 2)
        signal.alarm(240)
        sys.argv = ["snakemake", *arguments]
        sys.exit(snakemake.cli.main())
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


@cache
def forks() -> subprocess.Popen[str]:
    """Start what Snakemakes are forked from; it ends with this process."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", FORKS], **pipes)


class Project:
    """A copy of the project in which Snakemake runs."""

    def __init__(self, folder: Path, original: Path = ROOT) -> None:
        self.folder = folder
        parts = PARTS if original == ROOT else os.listdir(original)
        for part in parts:
            source = original / part
            if source.is_dir():  # with its bytecode, or each of the jobs would compile the package
                shutil.copytree(source, folder / part)
            else:
                folder.mkdir(exist_ok=True)
                shutil.copy2(source, folder / part)
        for paper in folder.glob("config/[ps]*s/*"):  # reading the others only takes time
            if paper.name != PAPER:
                shutil.rmtree(paper)
        text = (self.folder / STUDY).read_text()
        for sweep, shorter in SHORTER.items():
            assert original != ROOT or sweep in text
            text = text.replace(sweep, shorter)
        (self.folder / STUDY).write_text(text)
        notes = self.paper / "notes.yaml"
        if original == ROOT:  # alternatives of values that are no longer there
            sections = yaml.safe_load(notes.read_text())
            sections["assumptions"] = without_alternatives(sections["assumptions"])
            notes.write_text(yaml.safe_dump(sections, sort_keys=False))

    @property
    def paper(self) -> Path:
        return self.folder / "config" / "papers" / PAPER

    def sections(self) -> dict[str, Any]:
        """Return the sections of all files of the paper."""
        files = sorted(self.paper.glob("*.yaml"))
        return {k: v for file in files for k, v in yaml.safe_load(file.read_text()).items()}

    def rewrite(self, sections: dict[str, Any]) -> None:
        """Have these sections, in one file, instead of the paper's."""
        for file in self.paper.glob("*.yaml"):
            file.unlink()
        (self.folder / STUDY).write_text(yaml.safe_dump(sections, sort_keys=False))

    @staticmethod
    def command(*arguments: str, cores: int = 2, config: Sequence[str] = ()) -> list[str]:
        settings = ("--config", "scale=smoke", *config)
        end_soon = ("--max-jobs-per-timespan", "100/1s")  # not up to ten seconds later
        options = ("--cores", str(cores), *end_soon, *arguments, *settings)
        return [sys.executable, "-m", "snakemake", *options]

    def snakemake(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run Snakemake; one that does not end is stopped after four minutes."""
        command = self.command(*arguments, **options)
        with NamedTemporaryFile("r") as output:
            request = command[3:], str(self.folder), dict(os.environ), output.name
            print(json.dumps(request), file=forks().stdin, flush=True)
            code = int(forks().stdout.readline())
            return subprocess.CompletedProcess(command, code, output.read())

    def make(self, *targets: str, cores: int = 2) -> str:
        done = self.snakemake(*targets, cores=cores)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def jobs(self, *targets: str) -> dict[str, int]:
        """Return how many jobs of each rule Snakemake would run."""
        output = self.make(*targets, "--dry-run")
        if "Nothing to be done" in output:
            return {}
        lines = output.partition("Job stats:")[2].strip().splitlines()[2:]
        table = lines[: lines.index("")] if "" in lines else lines
        return {rule: int(count) for rule, count in map(str.split, table) if rule != "total"}

    @contextmanager
    def edited(self, path: str, old: str, new: str) -> Iterator[None]:
        """Replace the first ``old`` in a file for the time of a with statement."""
        file = self.folder / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))
        try:
            yield
        finally:
            file.write_text(text)

    def results(self, name: str = "*") -> dict[str, Path]:
        """Return the files of this name below the results folder, by their path there."""
        folder = self.folder / RESULTS
        files = (path for path in sorted(folder.rglob(name)) if path.is_file())
        return {str(path.relative_to(folder)): path for path in files}


def timeless(content: bytes) -> bytes:
    """Return what a file holds whenever it is made: of provenance, all but times."""
    try:
        document = json.loads(content)
    except ValueError:
        return content
    if not isinstance(document, dict) or "time" not in document:
        return content
    plain = {k: value for k, value in document.items() if k not in ("time", "job_seconds")}
    return json.dumps(plain).encode()


def without_alternatives(assumptions: dict[str, Any]) -> dict[str, Any]:
    """Return the assumptions without what else they might be."""
    return {
        name: {key: value for key, value in entry.items() if key != "alternatives"}
        for name, entry in assumptions.items()
    }


def of_all_runs(assumptions: dict[str, Any]) -> dict[str, Any]:
    """Return the assumptions that rest on no run in particular, which others may be without."""
    rest = {name: entry for name, entry in assumptions.items() if "rests" not in entry}
    return without_alternatives(rest)


FIGURES = [f"{RESULTS}/figures/{name}.pdf" for name in ("fig3", "fig4")]
