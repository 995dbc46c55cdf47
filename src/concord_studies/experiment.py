"""An experiment: runs of a study that are made together, from their parameters to their metrics.

Its folder among the results has ``runs.yaml``, which the plan writes, with every parameter of every
run and the digests of code and data; ``metrics.csv``, one table of all runs; and ``metrics.json``,
its provenance. A long experiment is divided into parts, each made by a job.
"""

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from traceback import print_exception
from typing import Any, ClassVar

from concord import kinds
from concord.errors import ConcordError
from concord.progress import each
from concord.sampling.netcdf import write_traces
from concord.sampling.trace import Trace, join_traces
from concord.sampling.trace_files import read_traces
from concord.streams import CHAINS_PER_BLOCK
from concord_studies import metrics
from concord_studies.contracts import declaration_of_problem
from concord_studies.datasets.registry import files_of
from concord_studies.digests import digest, digest_code
from concord_studies.guard import Guard
from concord_studies.io import read_text, whole_file, write_whole
from concord_studies.markup import cell
from concord_studies.metrics import COLUMNS, Row
from concord_studies.provenance import AGAIN, describe, write_provenance
from concord_studies.runs.measure import measurement
from concord_studies.runs.run import Run
from concord_studies.runs.sample import sample as sample_run

SCORING = "concord_arena.jobs"  # of an arena alone

UPDATES_OF_STEP = 1000  # updates of an agent that take as long as a step does besides
# Updates that one job samples, half a minute, and that surely take less than a minute each; cells
# of an arena by laws that one scores, most of which take half a second.
UPDATES_OF_JOB, UPDATES_OF_MINUTE, CELLS_OF_JOB = 1e9, 1e8, 40
# What a job takes at most: 475 MB at paper scale. Kinds of problems that need more say so.
USUAL: Mapping[str, Any] = {"environment": "concord", "mem_mb": 1000, "runtime": 5}


def cost(run: Run) -> float:
    """Return the computing cost of a run's chains, in updates of one agent."""
    steps = run.iterations if run.chains else 0
    return float(steps * (run.chains * run.agents + UPDATES_OF_STEP))


Block = tuple[int, int]  # chains of a run, from the first to before the last
Table = dict[str, Sequence[Row]]  # rows of metrics by run


@dataclass(frozen=True)
class Experiment:
    """Runs of one study that share the files of their results; these runs are sampled.

    study: the study's folder. runs: by name.
    """

    study: Path
    runs: Mapping[str, Run]
    CODE: ClassVar[tuple[str, ...]] = (__name__,)  # modules, beside those of the runs' kinds
    PART: ClassVar[str] = "draws.{}-of-{}.nc"  # the file of a part
    OF_UNIVERSE: ClassVar[bool] = False  # as runs.yaml states it

    @property
    def axes(self) -> list[str]:
        """The axes of the sweep, whose labels are columns of the table of metrics."""
        return list(next(iter(self.runs.values())).labels)

    @property
    def part_count(self) -> int:
        """The number of parts, each made by a job; 0: one job samples and measures all runs."""
        most = len(self.blocks)
        return most if self.job["runtime"] >= 60 else min(most, int(self.cost / UPDATES_OF_JOB))

    @property
    def blocks(self) -> list[dict[str, Block]]:
        """The smallest parts: mappings from the names of runs to blocks of their chains."""
        size = CHAINS_PER_BLOCK
        return [
            {name: (first, min(first + size, run.chains))}
            for name, run in self.runs.items()
            for first in range(0, max(run.chains, 1), size)
        ]

    def measure(self, parts: Sequence[Path], resources: Path) -> tuple[Table, dict[str, Any]]:
        """Return the metrics of all runs, by run, and further fields of their provenance.

        parts: files of draws, or of scores; none: the runs are sampled here.
        A ConcordError that names the run that fails, or what the parts lack.
        """
        traces, seconds = _join_traces(self, parts) if parts else ({}, 0.0)
        rows: Table = {}
        for name, run in each(list(self.runs.items()), "runs"):
            with _name_run_in_errors(run):
                rows[name] = _measure_run(run, traces.get(name), resources)
        return rows, {"parts_seconds": seconds}

    def make_part(self, statement: Path, folder: Path, resources: Path) -> Path:
        """Make all runs of a runs.yaml as one part in a folder, and return its path."""
        sample(statement, folder / "draws.nc", resources, progress=None)
        return folder / "draws.nc"

    @property
    def cost(self) -> float:
        """Return the computing cost of all runs, in updates of one agent."""
        return sum(map(cost, self.runs.values()))

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
    def part_files(self) -> list[str]:
        """Return the names of the files of the parts."""
        count = self.part_count
        return [self.PART.format(part + 1, count) for part in range(count)]

    def select_part(self, part: int, parts: int) -> dict[str, Block]:
        """Return the chains, by run, of part number ``part`` of ``parts``, counted from 1.

        A ConcordError if there are fewer blocks than parts.
        """
        blocks = self.blocks
        if not 1 <= part <= parts <= len(blocks):
            raise ConcordError(
                f"--part {part} --of {parts}: the experiment has at most {len(blocks)} parts, "
                "numbered from 1; choose among these"
            )
        first, end = (len(blocks) * number // parts for number in (part - 1, part))
        chains: dict[str, Block] = {}
        for name, (start, stop) in (item for of in blocks[first:end] for item in of.items()):
            chains[name] = chains.get(name, (start, stop))[0], stop
        return chains

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

    def measure(self, parts: Sequence[Path], resources: Path) -> tuple[Table, dict[str, Any]]:
        """Sample and measure all runs; return their metrics, and the errors of those that fail.

        parts: none, since a universe is made by one job. resources: the folder of data.
        """
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
    PART = "scores.{}-of-{}.json"
    minutes = 20

    @property
    def part_count(self) -> int:
        """The number of parts: one for each task, or fewer where cells are scored by laws."""
        tasks, arena = len(self.blocks), next(iter(self.runs.values())).arena
        sampled = arena is not None and arena.sampled
        return tasks if sampled else min(tasks, -(-len(self.runs) // CELLS_OF_JOB))

    @property
    def blocks(self) -> list[dict[str, Block]]:
        """The smallest parts: all cells of a task, whose chains are not divided."""
        tasks: dict[Any, dict[str, Block]] = {}
        for name, run in self.runs.items():
            key = tuple(label for axis, label in run.labels.items() if axis != "entry")
            tasks.setdefault(key, {})[name] = (0, 0)
        return list(tasks.values())

    def make_part(self, statement: Path, folder: Path, resources: Path) -> Path:
        """Score all cells of a runs.yaml, and return the path of the scores."""
        import_module(SCORING).score(statement, folder / "scores.json", resources)
        return folder / "scores.json"

    def measure(self, parts: Sequence[Path], resources: Path) -> tuple[Table, dict[str, Any]]:
        """Read the scores of all parts; return rows by cell, and what the provenance says of them.

        parts: the files of scores. resources: unused, since scores have been computed.
        """
        cells: dict[str, Any] = {}
        for path in parts:
            cells |= json.loads(read_text(path))
        if absent := [name for name in self.runs if name not in cells]:
            raise ConcordError(
                f"{absent[0]}: no part has its scores; make them with `concord score`, and name all"
            )
        rows: Table = {name: [Row(*row) for row in cells[name]["rows"]] for name in self.runs}
        keys = "choice", "cpu_seconds"
        about = {key: {name: cells[name][key] for name in self.runs} for key in keys}
        return rows, {**about, "parts_seconds": sum(about["cpu_seconds"].values())}


def build_experiment(study: Path, runs: Mapping[str, Run]) -> Experiment:
    """Return the experiment of some runs of a study: an arena if they are cells, all or none."""
    in_arena = next(iter(runs.values())).arena is not None
    return (ArenaExperiment if in_arena else Experiment)(study, runs)


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


def sample(
    path: Path,
    output: Path,
    resources: Path,
    part: int = 1,
    parts: int = 1,
    progress: bool | None = False,
) -> None:
    """Sample the runs of a runs.yaml, and write their draws as one file.

    part, parts: the part to sample, from 1, and how many there are.
    progress: as of ``runs.sample.sample``.
    """
    experiment = read_runs(path)
    guard = experiment.guard(path, output, resources)
    traces: dict[str, Trace] = {}
    about = {key: str(value) for key, value in describe().items()}
    begun = time.process_time()
    for name, chains in each(list(experiment.select_part(part, parts).items()), "runs"):
        run = experiment.runs[name]
        with _name_run_in_errors(run):
            problem = run.build_problem(resources)
            trace = sample_run(run, problem, progress, chains if run.chains else None)
        begun, seconds = time.process_time(), time.process_time() - begun
        trace.attributes = {"run": json.dumps(run.document), "job_seconds": str(seconds), **about}
        traces[name] = trace
    with whole_file(output) as temporary:
        write_traces(traces, temporary)
        guard.check_again()


def measure(path: Path, parts: Sequence[Path], output: Path, resources: Path) -> None:
    """Write the table of metrics of the runs of a runs.yaml, with its provenance.

    path: the runs.yaml; a statement of the plan is copied beside the table. parts: files of draws,
    or of scores, that hold all runs in their order; none: the runs are sampled here. output: the
    metrics.csv. resources: the folder of data that problems read.
    A ConcordError that names the run that fails, or what the parts lack.
    """
    experiment = read_runs(path)
    guard = experiment.guard(path, output, resources)
    rows, about = experiment.measure(parts, resources)
    table = experiment.table(rows)
    guard.check_again()
    if guard.compares:
        write_whole(output.with_name("runs.yaml"), guard.text)
    write_whole(output, table)
    write_provenance([output], planned=guard.digest, **about)


def _measure_run(run: Run, trace: Trace | None, resources: Path) -> list[Row]:
    """Return the metrics of a run; without a trace the run is sampled first."""
    problem = run.build_problem(resources)
    # As in a file: sums of arrays that lie otherwise in memory differ by rounding.
    trace = trace or sample_run(run, problem).contiguous()
    return metrics.measure(run.metrics, measurement(run, problem, trace, resources))


def _join_traces(experiment: Experiment, parts: Sequence[Path]) -> tuple[dict[str, Trace], float]:
    """Return the joined draws of the parts by run, and the CPU seconds that they took.

    A ConcordError if they do not fit the runs.
    """
    pieces: dict[str, list[Trace]] = {}
    seconds = 0.0
    for path in parts:
        for name, trace in read_traces(path).items():
            run = experiment.runs.get(name)
            if run is None or json.loads(trace.attributes["run"]) != run.document:
                raise ConcordError(f"{path}: it has draws of other runs; {AGAIN}")
            pieces.setdefault(name, []).append(trace)
            seconds += float(trace.attributes["job_seconds"])
    joined = {name: join_traces(traces) for name, traces in pieces.items()}
    for name, run in experiment.runs.items():
        if name not in joined or joined[name].chains != run.chains:
            raise ConcordError(f"{parts[0]}: with the other parts it lacks chains of {name}")
    return joined, seconds


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
    stated = output / "runs.yaml"
    write_whole(stated, alone.text())
    part = alone.make_part(stated, output, resources)
    measure(stated, [part], output / "metrics.csv", resources)
