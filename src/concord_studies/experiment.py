"""An experiment: runs of a study that are made together, from their parameters to their metrics.

Its folder among the results has ``runs.yaml``, which the plan writes, with every parameter of every
run and the digests of code and data; ``metrics.csv``, one table of all runs; and ``metrics.json``,
its provenance. A long experiment is divided into parts, each with some of its runs: a job makes
the metrics of a part, and another one joins them.
"""

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from traceback import print_exception
from typing import Any, ClassVar

from concord import kinds
from concord.errors import ConcordError
from concord.problem import Problem
from concord.progress import each
from concord.sampling.netcdf import write_traces
from concord.sampling.trace import Trace
from concord.sampling.trace_files import read_traces
from concord_studies import metrics
from concord_studies.contracts import declaration_of_problem
from concord_studies.datasets.registry import files_of
from concord_studies.digests import digest, digest_code
from concord_studies.guard import Guard
from concord_studies.io import read_text, whole_file, write_whole
from concord_studies.markup import cell
from concord_studies.metrics import COLUMNS, Row
from concord_studies.provenance import AGAIN, describe, read_provenance, write_provenance
from concord_studies.runs.measure import measurement
from concord_studies.runs.run import Run
from concord_studies.runs.sample import sample as sample_run

SCORING = "concord_arena.cells"  # of an arena alone

UPDATES_OF_STEP = 1000  # updates of an agent that take as long as a step does besides
# Updates of one job, half a minute, and that surely take less than a minute each; cells of an arena
# by laws that one scores, most of which take half a second.
UPDATES_OF_JOB, UPDATES_OF_MINUTE, CELLS_OF_JOB = 1e9, 1e8, 40
# What a job takes at most: 475 MB at paper scale. Kinds of problems that need more say so.
USUAL: Mapping[str, Any] = {"environment": "concord", "mem_mb": 1000, "runtime": 5}


def cost(run: Run) -> float:
    """Return the computing cost of a run's chains, in updates of one agent."""
    steps = run.iterations if run.chains else 0
    return float(steps * (run.chains * run.agents + UPDATES_OF_STEP))


Table = dict[str, Sequence[Row]]  # rows of metrics by run


@dataclass(frozen=True)
class Experiment:
    """Runs of one study that share the files of their results; these runs are sampled.

    study: the study's folder. runs: by name. jobs: the number of jobs that make them, if the study
    states it. draws: the file of the runs' draws; None: they are sampled when they are measured.
    """

    study: Path
    runs: Mapping[str, Run]
    jobs: int | None = None
    draws: Path | None = None
    CODE: ClassVar[tuple[str, ...]] = (__name__,)  # modules, beside those of the runs' kinds
    OF_RUNS: ClassVar[tuple[str, ...]] = ()  # fields of the provenance that have a value by run
    OF_UNIVERSE: ClassVar[bool] = False  # as runs.yaml states it

    @property
    def axes(self) -> list[str]:
        """The axes of the sweep, whose labels are columns of the table of metrics."""
        return list(next(iter(self.runs.values())).labels)

    @property
    def part_count(self) -> int:
        """The number of parts, each made by a job; 0: one job makes all runs."""
        count = min(len(self.blocks), self.jobs or self.usual_jobs)
        return count if count > 1 else 0

    @property
    def usual_jobs(self) -> int:
        """The number of jobs where the study states none: by the cost of the runs."""
        return int(self.cost / UPDATES_OF_JOB)

    @property
    def blocks(self) -> list[list[str]]:
        """Lists of names of runs that one job makes together; a single run is the smallest."""
        return [[name] for name in self.runs]

    def select_part(self, part: int, parts: int) -> "Experiment":
        """Return an experiment of the runs of part number ``part`` of ``parts``, counted from 1.

        A ConcordError if there are fewer blocks than parts.
        """
        blocks = self.blocks
        if not 1 <= part <= parts <= len(blocks):
            raise ConcordError(
                f"--part {part} --of {parts}: the experiment has at most {len(blocks)} parts, "
                "numbered from 1; choose among these"
            )
        first, end = (len(blocks) * number // parts for number in (part - 1, part))
        names = [name for block in blocks[first:end] for name in block]
        return replace(self, runs={name: self.runs[name] for name in names})

    def measure(self, resources: Path) -> tuple[Table, dict[str, Any]]:
        """Return the metrics of all runs, by run, and further fields of their provenance.

        resources: the folder of data that problems read. A ConcordError that names the run that
        fails.
        """
        traces = {} if self.draws is None else read_traces(self.draws)
        rows: Table = {}
        for name, run in each(list(self.runs.items()), "runs"):
            with _name_run_in_errors(run):
                rows[name] = _measure_run(run, traces.get(name), resources)
        return rows, {}

    @property
    def cost(self) -> float:
        """Return the computing cost of all runs, in updates of one agent."""
        return sum(map(cost, self.runs.values()))

    @property
    def priority(self) -> int:
        """The priority of its jobs: what takes longest starts first, as far as it is known."""
        return 1 + int(self.cost / 1e6) + 10_000 * bool(self.part_count)

    @property
    def minutes(self) -> int:
        """The minutes that a job takes at most, besides those that every job takes."""
        return min(int(self.cost / UPDATES_OF_MINUTE), 1000)

    @cached_property
    def job(self) -> dict[str, Any]:
        """Return the environment, the memory and the minutes of a job of the experiment."""
        jobs = (declaration_of_problem(run.problem.module).job for run in self.runs.values())
        job = {**USUAL, **next(filter(None, jobs), {})}
        return {**job, "runtime": job["runtime"] + self.minutes}

    @property
    def _roots(self) -> list[str | Path]:
        """Return the modules and files of the code that makes the metrics."""
        files = {path for run in self.runs.values() for path in run.modules}
        families = {name for run in self.runs.values() for name in run.metrics}
        files |= {kinds.location("metrics", name) for name in families}
        return [*self.CODE, *files]

    def _digest_data(self, at_hand: Callable[[str], bool]) -> str:
        return digest({name: run.data_digest(at_hand) for name, run in self.runs.items()})

    def guard(self, path: Path, output: Path, resources: Path) -> Guard:
        """Return the guard of a job of the experiment.

        path: its statement, a runs.yaml. output: the file it makes. resources: the folder of data.
        """

        def at_hand(name: str) -> bool:
            return all((resources / name / file).is_file() for file in files_of(name))

        files = {file for run in self.runs.values() for file in run.files}
        return Guard(path, output, self._roots, lambda: {"data": self._digest_data(at_hand)}, files)

    def text(self, at_hand: Callable[[str], bool] = lambda name: True) -> str:
        """Return the text of runs.yaml: it is JSON, which is YAML, too, with a line for each run.

        at_hand: returns whether an optional data set will be read.
        """
        stated = {
            "study": str(self.study),
            "universe": self.OF_UNIVERSE,
            **digest_code(*self._roots),
            "data": self._digest_data(at_hand),
        }
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in stated.items()]
        runs = (f"{json.dumps(k)}: {json.dumps(run.document)}" for k, run in self.runs.items())
        return "{" + ",\n".join(lines) + ',\n"runs": {\n' + ",\n".join(runs) + "\n}}\n"

    def table(self, rows: Mapping[str, Iterable[Row]]) -> str:
        """Return the metrics of runs as a table: run, its labels, and the columns of metrics."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["run", *self.axes, *COLUMNS])
        for name, run_rows in rows.items():
            labels = [cell(self.runs[name].labels[axis]) for axis in self.axes]
            writer.writerows([name, *labels, *metrics.cells(row)] for row in run_rows)
        return text.getvalue()


class UniverseExperiment(Experiment):
    """Runs of a universe, from several experiments, so that they share no axes.

    A run that fails does not stop the others: its error is recorded.
    """

    OF_UNIVERSE = True
    axes: ClassVar[list[str]] = []
    part_count = 0

    def measure(self, resources: Path) -> tuple[Table, dict[str, Any]]:
        """Sample and measure all runs; return their metrics, and the errors of those that fail."""
        rows: Table = {}
        refused: dict[str, str] = {}
        for name, run in each(list(self.runs.items()), "runs"):
            try:
                run.check()
                rows[name] = _measure_run(run, None, resources)
            except (OSError, MemoryError):
                raise
            except Exception as error:
                rows[name], refused[name] = [], _sentence_of(error)
        return rows, {"refused": refused} if refused else {}


class ArenaExperiment(Experiment):
    """Cells of the arena, each a task and an entry; they are scored, not sampled.

    A part is one or several tasks, each with the cells of all entries, which share data sets and
    posteriors.
    """

    CODE = (__name__, SCORING)
    OF_RUNS = ("choice", "cpu_seconds")
    minutes = 20

    @property
    def usual_jobs(self) -> int:
        """The number of jobs: one for each task, or fewer where cells are scored by laws."""
        arena = next(iter(self.runs.values())).arena
        sampled = arena is not None and arena.sampled
        return len(self.runs) if sampled else -(-len(self.runs) // CELLS_OF_JOB)

    @property
    def blocks(self) -> list[list[str]]:
        """The smallest parts: all cells of a task."""
        tasks: dict[Any, list[str]] = {}
        for name, run in self.runs.items():
            key = tuple(label for axis, label in run.labels.items() if axis != "entry")
            tasks.setdefault(key, []).append(name)
        return list(tasks.values())

    def measure(self, resources: Path) -> tuple[Table, dict[str, Any]]:
        """Score all cells; return rows by cell, and for each the choice and the CPU seconds."""
        cells, rows = import_module(SCORING), Table()
        choice: dict[str, Any] = {}
        seconds: dict[str, float] = {}
        for name, run in each(list(self.runs.items()), "cells"):
            begun = time.process_time()
            scored = cells.score(run, cells.build_task(run, resources))
            rows[name], choice[name] = scored.rows, scored.choice
            seconds[name] = round(time.process_time() - begun, 3)
        return rows, dict(zip(self.OF_RUNS, (choice, seconds), strict=True))


def build_experiment(study: Path, runs: Mapping[str, Run], jobs: int | None = None) -> Experiment:
    """Return the experiment of some runs of a study: an arena if they are cells, all or none."""
    in_arena = next(iter(runs.values())).arena is not None
    return (ArenaExperiment if in_arena else Experiment)(study, runs, jobs)


def read_runs(path: Path) -> Experiment:
    """Read a runs.yaml, and find the plug-ins of its study. A ConcordError if it is not whole."""
    text = read_text(path)
    try:
        stated = json.loads(text)
        study = Path(stated["study"])
        if not kinds.studies:
            kinds.use(study)
        documents = stated["runs"].items()
        runs = {name: Run.from_document(of, f"{path}: {name}") for name, of in documents}
        if not runs:
            raise ValueError("it has no run")
        return (UniverseExperiment if stated["universe"] else build_experiment)(study, runs)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConcordError(
            f"{path}: it is not as planning writes it ({error}); delete it, and the metrics.csv "
            "beside it, to have both made again"
        ) from None


# Jobs.


def sample(path: Path, output: Path, resources: Path, progress: bool | None = False) -> None:
    """Sample the runs of a runs.yaml, and write their draws as one file.

    progress: as of ``runs.sample.sample``.
    """
    experiment = read_runs(path)
    if isinstance(experiment, ArenaExperiment):
        raise ConcordError(f"{path}: its runs are scored and keep no draws; use `concord measure`")
    guard = experiment.guard(path, output, resources)
    traces: dict[str, Trace] = {}
    about = {key: str(value) for key, value in describe().items()}
    begun = time.process_time()
    for name, run in each(list(experiment.runs.items()), "runs"):
        with _name_run_in_errors(run):
            trace = sample_run(run, run.build_problem(resources), progress)
        begun, seconds = time.process_time(), time.process_time() - begun
        trace.attributes = {"run": json.dumps(run.document), "job_seconds": str(seconds), **about}
        traces[name] = trace
    with whole_file(output) as temporary:
        write_traces(traces, temporary)
        guard.check_again()


def measure(
    path: Path,
    output: Path,
    resources: Path,
    part: int = 1,
    parts: int = 1,
    draws: Path | None = None,
) -> None:
    """Write the table of metrics of the runs of a runs.yaml, or of a part, with its provenance.

    path: the runs.yaml; a statement of the plan is copied beside the table. output: the
    metrics.csv. resources: the folder of data that problems read. part, parts: the part, from 1,
    and how many there are. draws: as of ``Experiment``. A ConcordError that names the run that
    fails.
    """
    experiment = read_runs(path)
    guard = experiment.guard(path, output, resources)
    chosen = replace(experiment.select_part(part, parts), draws=draws)
    rows, about = chosen.measure(resources)
    guard.check_again()
    if parts > 1:
        about["part"] = _name_part(part, parts)
    _write_metrics(output, chosen.table(rows), guard, **about)


def gather(path: Path, tables: Sequence[Path], output: Path, resources: Path) -> None:
    """Join the metrics of all parts of the runs of a runs.yaml into one table, with its provenance.

    path, output, resources: as of ``measure``. tables: those of the parts, in their order.
    A ConcordError if one is missing, or of other runs.
    """
    experiment = read_runs(path)
    guard = experiment.guard(path, output, resources)
    made = [read_provenance(table) for table in tables]
    for part, (table, about) in enumerate(zip(tables, made, strict=True), start=1):
        if about.get("planned") != guard.digest:
            raise ConcordError(f"{table}: it has metrics of other runs; {AGAIN}")
        if about.get("part") != (expected := _name_part(part, len(tables))):
            raise ConcordError(
                f"{table}: it is not part {expected}; name the tables of all parts, in order"
            )
    heads, _, bodies = zip(*(read_text(table).partition("\n") for table in tables), strict=True)
    fields = {
        name: {run: value for about in made for run, value in about[name].items()}
        for name in experiment.OF_RUNS
    }
    seconds = sum(about["job_seconds"] for about in made)
    whole = f"{heads[0]}\n{''.join(bodies)}"
    _write_metrics(output, whole, guard, parts_seconds=seconds, **fields)


def _name_part(part: int, parts: int) -> str:
    """Return how a provenance names a part."""
    return f"{part} of {parts}"


def _write_metrics(output: Path, table: str, guard: Guard, **about: Any) -> None:
    """Write a table of metrics, with its provenance, and beside a whole one its statement."""
    if guard.compares and "part" not in about:
        write_whole(output.with_name("runs.yaml"), guard.text)
    write_whole(output, table)
    write_provenance([output], planned=guard.digest, **about)


def _measure_run(run: Run, trace: Trace | None, resources: Path) -> list[Row]:
    """Return the metrics of a run; without a trace the run is sampled first."""
    problem = _build_problem(_DataOfRun(run.problem_digest, run), resources)
    # As in a file: sums of arrays that lie otherwise in memory differ by rounding.
    trace = trace or sample_run(run, problem).contiguous()
    return metrics.measure(run.metrics, measurement(run, problem, trace, resources))


@dataclass(frozen=True)
class _DataOfRun:
    """A run as far as its problem goes: it equals any other run of the same data.

    digest: ``Run.problem_digest``.
    """

    digest: str
    run: Run = field(compare=False)


@lru_cache(maxsize=1)
def _build_problem(data: _DataOfRun, resources: Path) -> Problem:
    """Return the problem of a run, or of the last one if that had the same data.

    So runs of an experiment share what a problem computes of itself, such as its posterior.
    """
    return data.run.build_problem(resources)


@contextmanager
def _name_run_in_errors(run: Run) -> Iterator[None]:
    """Put a run's name in front of the sentence of an error, and add it to any other error."""
    try:
        yield
    except ConcordError as error:
        raise ConcordError(f"{run.folder}: {error}") from error
    except Exception as error:
        error.add_note(f"This was in the run {run.folder}.")
        raise


def _sentence_of(error: Exception) -> str:
    """Return an error's sentence; print the traceback of one that is no ConcordError."""
    if isinstance(error, ConcordError):
        return str(error)
    print_exception(error)
    return f"it failed ({type(error).__name__})"


def run_alone(study: Any, experiment: str, run: str, output: Path, resources: Path) -> None:
    """Make one run of a study by itself: its runs.yaml, draws.nc and metrics.csv, in a folder."""
    alone = build_experiment(study.path, {run: study.run(experiment, run)})
    stated, draws = output / "runs.yaml", None
    write_whole(stated, alone.text())
    if not isinstance(alone, ArenaExperiment):
        draws = output / "draws.nc"
        sample(stated, draws, resources, progress=None)
    measure(stated, output / "metrics.csv", resources, draws=draws)
