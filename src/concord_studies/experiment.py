"""An experiment: runs of a study that are made together, from their parameters to their metrics.

In its folder among the results are ``runs.yaml``, which planning writes: every parameter of every
run and what the runs are made with; ``metrics.csv``, one table of all runs; and beside that
``metrics.json``, its provenance. A long experiment is divided into parts, made by a job each.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from traceback import print_exception
from typing import Any

from concord import kinds
from concord.contracts import declaration_of_problem
from concord.errors import ConcordError
from concord.progress import each
from concord.sampling.netcdf import write_traces
from concord.sampling.trace import Trace, join_traces
from concord.sampling.trace_files import read_traces
from concord.streams import CHAINS_PER_BLOCK
from concord_studies import metrics
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
    """Return the computing cost of a run, in updates of one agent."""
    return float(run.iterations * (run.chains * run.agents + UPDATES_OF_STEP))


@dataclass(frozen=True)
class Experiment:
    """Runs by name, of one study, that one set of files holds.

    study: the study's folder.
    universe: whether the runs are those of a universe, where the error of a run is a result.
    """

    study: Path
    runs: Mapping[str, Run]
    universe: bool = False

    @property
    def is_arena(self) -> bool:
        """Return whether the runs are cells of the arena, which are scored."""
        return next(iter(self.runs.values())).arena is not None

    @property
    def cost(self) -> float:
        """Return the computing cost of all runs, in updates of one agent."""
        return sum(map(cost, self.runs.values()))

    @property
    def part_count(self) -> int:
        """Return the number of parts, a job each; 0: one job samples and measures all runs."""
        first, most = next(iter(self.runs.values())), len(blocks(self))
        if first.arena is not None:
            return most if first.arena.sampled else min(most, -(-len(self.runs) // CELLS_OF_JOB))
        if self.universe:
            return 0
        return most if self.job["runtime"] >= 60 else min(most, int(self.cost / UPDATES_OF_JOB))

    @cached_property
    def job(self) -> dict[str, Any]:
        """Return the environment, the memory and the minutes of a job of the experiment."""
        jobs = (declaration_of_problem(run.problem.module).job for run in self.runs.values())
        job = {**USUAL, **next(filter(None, jobs), {})}
        minutes = 20 if self.is_arena else min(int(self.cost / UPDATES_OF_MINUTE), 1000)
        return {**job, "runtime": job["runtime"] + minutes}

    @property
    def _roots(self) -> list[str | Path]:
        """Return the modules and files of the code that makes the metrics."""
        files = {path for run in self.runs.values() for path in run.modules}
        families = {name for run in self.runs.values() for name in run.metrics}
        files |= {kinds.location("metrics", name) for name in families}
        return [__name__, *[SCORING] * self.is_arena, *files]

    def _digest_data(self, at_hand: Callable[[str], bool]) -> str:
        return digest({name: run.data_digest(at_hand) for name, run in self.runs.items()})

    def guard(self, path: Path, output: Path, resources: Path) -> Guard:
        """Return the guard of a job of the experiment, whose statement is ``path``."""

        def at_hand(name: str) -> bool:
            return all((resources / name / file).is_file() for file in files_of(name))

        files = {file for run in self.runs.values() for file in run.files}
        return Guard(path, output, self._roots, lambda: {"data": self._digest_data(at_hand)}, files)

    def text(self, at_hand: Callable[[str], bool] = lambda name: True) -> str:
        """Return the text of runs.yaml: it is JSON, which is YAML, too, with a line for each run.

        at_hand: tells of an optional data set whether it will be read.
        """
        stated = {
            "study": str(self.study),
            "universe": self.universe,
            **digest_code(*self._roots),
            "data": self._digest_data(at_hand),
        }
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in stated.items()]
        runs = (f"{json.dumps(k)}: {json.dumps(run.document)}" for k, run in self.runs.items())
        return "{" + ",\n".join(lines) + ',\n"runs": {\n' + ",\n".join(runs) + "\n}}\n"


def read_runs(path: Path) -> Experiment:
    """Read a runs.yaml, and find the plug-ins of its study. A ConcordError if it is not whole."""
    text = read_text(path)
    try:
        stated = json.loads(text)
        study = Path(stated["study"])
        if not kinds.studies:
            kinds.use(study)
        runs = {name: _read_run(of, f"{path}: {name}") for name, of in stated["runs"].items()}
        if not runs:
            raise ValueError("it has no run")
        return Experiment(study, runs, stated["universe"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConcordError(
            f"{path}: it is not as planning writes it ({error}); delete it, and the metrics.csv "
            "beside it, to have both made again"
        ) from None


def _read_run(document: Mapping[str, Any], where: str) -> Run:
    """Return the run of a resolved document, perhaps of no chains; errors begin with ``where``."""
    chains = document["chains"]
    run = Run.from_document({**document, "chains": max(chains, 1)}, where)
    return run if chains else run.vary(chains=0)


# Division of a long experiment into parts.

Block = tuple[str, int, int]  # chains of a run: its name, from the first to before the last


def blocks(experiment: Experiment) -> list[list[Block]]:
    """Return the smallest parts of an experiment: chains of one run, or all runs of a task.

    A block is (run, first chain, end). A task is of an arena: its runs, one for each sampler that
    is entered, share data sets and posteriors, which are computed once.
    """
    if experiment.is_arena:
        tasks: dict[Any, list[Block]] = {}
        for name, run in experiment.runs.items():
            key = tuple(label for axis, label in run.labels.items() if axis != "entry")
            tasks.setdefault(key, []).append((name, 0, 0))
        return list(tasks.values())
    size = CHAINS_PER_BLOCK
    return [
        [(name, first, min(first + size, run.chains))]
        for name, run in experiment.runs.items()
        for first in range(0, max(run.chains, 1), size)
    ]


def blocks_of_part(experiment: Experiment, part: int, parts: int) -> list[Block]:
    """Return the chains of runs in part number ``part`` of ``parts``, counted from 1.

    A block is (run, first chain, end); adjacent ones of a run are joined. A
    ConcordError if there are fewer blocks than parts.
    """
    every = blocks(experiment)
    if not 1 <= part <= parts <= len(every):
        raise ConcordError(
            f"--part {part} --of {parts}: the experiment has at most {len(every)} parts, "
            "numbered from 1; choose among these"
        )
    first, end = (len(every) * number // parts for number in (part - 1, part))
    chains: list[Block] = []
    for name, start, stop in (block for group in every[first:end] for block in group):
        if chains and chains[-1][0] == name:
            chains[-1] = name, chains[-1][1], stop
        else:
            chains.append((name, start, stop))
    return chains


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
    for name, first, end in each(blocks_of_part(experiment, part, parts), "runs"):
        run = experiment.runs[name]
        with _name_run_in_errors(run):
            problem = run.build_problem(resources)
            trace = sample_run(run, problem, progress, (first, end) if run.chains else None)
        trace.attributes = {"run": json.dumps(run.document), **about}
        traces[name] = trace
    with whole_file(output) as temporary:
        write_traces(traces, temporary)
        guard.check_again()


def measure(path: Path, parts: Sequence[Path], output: Path, resources: Path) -> None:
    """Write the table of metrics of the runs of a runs.yaml, with its provenance.

    Of one as planning writes it, under another name, a copy is written beside the table.

    parts: files of draws, or of scores, that hold all runs in their order; none: the runs are
    sampled here. resources: the folder of data that problems read.
    A ConcordError that names the run that fails, or what the parts lack.
    """
    experiment = read_runs(path)
    guard = experiment.guard(path, output, resources)
    rows: dict[str, Sequence[Row]] = {}
    about: dict[str, Any] = {}
    if experiment.is_arena:
        rows, about = _join_scores(experiment, parts)
    elif experiment.universe:
        for name, run in each(list(experiment.runs.items()), "runs"):
            try:
                run.check()
                rows[name] = _measure_run(run, None, resources)
            except (OSError, MemoryError):
                raise
            except Exception as error:
                rows[name] = []
                about.setdefault("refused", {})[name] = _reason(error)
    else:
        traces = _join_traces(experiment, parts) if parts else {}
        for name, run in each(list(experiment.runs.items()), "runs"):
            with _name_run_in_errors(run):
                rows[name] = _measure_run(run, traces.get(name), resources)
    table = to_csv(experiment, rows)
    guard.check_again()
    if guard.compares:
        write_whole(output.with_name("runs.yaml"), guard.text)
    write_whole(output, table)
    write_provenance([output], planned=guard.planned, **about)


def _measure_run(run: Run, trace: Trace | None, resources: Path) -> list[Row]:
    """Return the metrics of a run, which is sampled where there is no trace of it."""
    problem = run.build_problem(resources)
    # As in a file: sums of arrays that lie otherwise in memory differ by rounding.
    trace = trace or sample_run(run, problem).contiguous()
    return metrics.measure(run.metrics, measurement(run, problem, trace, resources))


def to_csv(experiment: Experiment, rows: Mapping[str, Iterable[Row]]) -> str:
    """Return the metrics of all runs as one table: run, its labels, and the columns of metrics.

    Runs of a universe are of several experiments: its table has no columns of labels.
    """
    axes = [] if experiment.universe else list(next(iter(experiment.runs.values())).labels)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", *axes, *COLUMNS])
    for name, run_rows in rows.items():
        labels = [cell(experiment.runs[name].labels[axis]) for axis in axes]
        writer.writerows([name, *labels, *metrics.cells(row)] for row in run_rows)
    return text.getvalue()


def _join_traces(experiment: Experiment, parts: Sequence[Path]) -> dict[str, Trace]:
    """Join the files of draws of the parts. A ConcordError if they do not fit the runs."""
    pieces: dict[str, list[Trace]] = {}
    for path in parts:
        for name, trace in read_traces(path).items():
            run = experiment.runs.get(name)
            if run is None or json.loads(trace.attributes["run"]) != run.document:
                raise ConcordError(f"{path}: it has draws of other runs; {AGAIN}")
            pieces.setdefault(name, []).append(trace)
    joined = {name: join_traces(traces) for name, traces in pieces.items()}
    for name, run in experiment.runs.items():
        if name not in joined or joined[name].chains != run.chains:
            raise ConcordError(f"{parts[0]}: with the other parts it lacks chains of {name}")
    return joined


def _join_scores(
    experiment: Experiment, parts: Sequence[Path]
) -> tuple[dict[str, Sequence[Row]], dict[str, Any]]:
    """Join the files of scores of the parts: rows by cell; chosen options and CPU seconds."""
    cells: dict[str, Any] = {}
    for path in parts:
        cells |= json.loads(read_text(path))
    if absent := [name for name in experiment.runs if name not in cells]:
        raise ConcordError(
            f"{absent[0]}: no part has its scores; make them with `concord score`, and name all"
        )
    chosen = {name: cells[name] for name in experiment.runs}
    rows: dict[str, Sequence[Row]] = {
        name: [Row(*row) for row in cell["rows"]] for name, cell in chosen.items()
    }
    keys = "choice", "cpu_seconds"
    return rows, {key: {name: cell[key] for name, cell in chosen.items()} for key in keys}


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


def _reason(error: Exception) -> str:
    """Return the sentence of an error; a traceback is printed for one that is no ConcordError."""
    if isinstance(error, ConcordError):
        return str(error)
    print_exception(error)
    return f"it failed ({type(error).__name__})"


def run_alone(study: Any, experiment: str, run: str, output: Path, resources: Path) -> None:
    """Make one run of a study by itself: its runs.yaml, draws.nc and metrics.csv, in a folder."""
    alone = Experiment(study.path, {run: study.run(experiment, run)})
    stated = output / "runs.yaml"
    write_whole(stated, alone.text())
    if alone.is_arena:
        import_module(SCORING).score(stated, output / "scores.json", resources)
        measure(stated, [output / "scores.json"], output / "metrics.csv", resources)
    else:
        sample(stated, output / "draws.nc", resources, progress=None)
        measure(stated, [output / "draws.nc"], output / "metrics.csv", resources)
