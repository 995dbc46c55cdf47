"""make: runs, each from its configuration to its metrics. What stands is left alone.

One process makes a batch of runs, since most take less time than a command takes to start. A long
run is a batch of one, and so is one that is made by hand. Beside the results of each run are their
seals (``concord_studies.integrity``), so that after an interruption, or for one changed run, only
what is missing is made.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import print_exception
from types import ModuleType
from typing import Any

from concord.errors import ConcordError
from concord.progress import each
from concord.sampling.trace import Trace, join_traces, read_trace, write_trace
from concord_studies import integrity, metrics
from concord_studies.integrity import Made
from concord_studies.io import dump_yaml, whole, write_whole
from concord_studies.provenance import describe
from concord_studies.runs import measure as measuring
from concord_studies.runs import sample as sampling
from concord_studies.runs.run import Run
from concord_studies.runs.run import read as read_run

Chains = tuple[int, int]  # from the first to before the second


@dataclass(frozen=True)
class Place:
    """The folder of a run among the results, with checks of the files that lie in it.

    Each check returns a word that says why a file is made again; "" if all is well.

    variant: whether the run is one of a universe: its trace is not kept, and what cannot be run is
    a result, too.
    """

    run: Run
    folder: Path
    resources: Path
    variant: bool = False

    @property
    def stated(self) -> Path:
        """Return the file of the run's parameters, run.yaml."""
        return self.folder / "run.yaml"

    @property
    def trace(self) -> Path:
        """Return the file of the run's draws, trace.nc."""
        return self.folder / "trace.nc"

    @property
    def table(self) -> Path:
        """Return the file of the run's metrics, metrics.csv."""
        return self.folder / "metrics.csv"

    def piece(self, chains: Chains) -> Path:
        """Return the file of the draws of some chains."""
        return self.folder / f"chains_{chains[0]}_{chains[1]}.nc"

    def lacks_metrics(self) -> str:
        """Return why a run's metrics, or its trace, must be made again; "" if they stand."""
        if why := _lacks(self.table, made(self.run, self.resources, self.trace, self.variant)):
            return why
        kept = self.run.arena is None and not self.variant and self.trace.exists()
        return "damaged" if kept and not integrity.intact(self.trace) else ""

    def lacks_trace(self) -> str:
        """Return why the run must be sampled again; "" if its trace stands."""
        if not self.trace.exists() and not self.lacks_metrics():
            return ""
        return _lacks(self.trace, sampling.made(self.run, self.resources))

    def lacks_piece(self, chains: Chains) -> str:
        """Return why some chains must be sampled; "" if they stand in a piece or the trace."""
        if not self.lacks_trace():
            return ""
        return _lacks(self.piece(chains), sampling.made(self.run, self.resources, chains))

    def pieces(self) -> list[Path]:
        """Return the files of the draws of all chains, sampled in pieces; none if one lacks."""
        found, end = [], 0
        for path in sorted(self.folder.glob("chains_*_*.nc"), key=_first):
            chains = _first(path), int(path.stem.split("_")[2])
            if chains[0] == end and not _lacks(
                path, sampling.made(self.run, self.resources, chains)
            ):
                found.append(path)
                end = chains[1]
        return found if end == self.run.chains else []


def at(run: Run, results: Path) -> Place:
    """Return the place of a study's run among the results."""
    return Place(run, results / run.folder, Path("resources"))


def _first(path: Path) -> int:
    """Return the number of the first chain in a piece's file, from the file's name."""
    return int(path.stem.split("_")[1])


def made(run: Run, resources: Path, trace: Path | None = None, variant: bool = False) -> Made:
    """Return the digests of code, data, options and trace from which a run's metrics are made."""
    if run.arena is not None:
        return _arena().made(run, resources)
    return measuring.made(run, resources, None if variant else trace)


def _arena() -> ModuleType:
    """Import and return the module that scores cells, which other jobs need not load."""
    from concord_arena import cells  # as it says

    return cells


def _lacks(path: Path, wanted: Made) -> str:
    """Return the reason why a file must be made again with the wanted digests; "" if it stands."""
    if not path.is_file():
        return "missing"
    there = integrity.intact(path)
    if not there:
        return "damaged"
    return next((_WHY[key] for key in wanted if there.get(key) != wanted[key]), "")


_WHY = {
    "run": "parameters_changed",
    "chains": "parameters_changed",
    "code": "code_changed",
    "data": "data_changed",
    "trace": "draws_changed",
}


@dataclass(frozen=True)
class Batch:
    """Runs of one study that a single job makes, one after another.

    name: what it is called among those of its folder.
    folder: below the folder of results, of the batch and of its runs' experiments.
    """

    name: str
    folder: str
    runs: tuple[Run, ...]
    variant: bool = False

    def file(self, results: Path, ending: str = "made") -> Path:
        """Return the file that marks the batch as made, which other rules take as input."""
        return results / self.folder / f"{self.name}.{ending}.json"

    def place(self, run: Run, results: Path, resources: Path = Path("resources")) -> Place:
        """Return the place of one of the batch's runs among the results."""
        folder = results / self.folder / run.experiment / run.name
        return Place(run, folder, resources, self.variant)


def make(
    batch: Batch,
    results: Path,
    resources: Path,
    output: Path,
    sampled: bool = False,
    chains: Chains | None = None,
    progress: bool = False,
) -> None:
    """Make the metrics of a batch's runs, and write the digests of all results.

    sampled: make no more than the draws.
    chains: sample only these chains.
    A ConcordError if a run fails, after the others have been made.
    """
    places = [batch.place(run, results, resources) for run in batch.runs]
    failed = {}
    for place in each(places, "runs"):
        try:
            resolve(place.run, place.stated)
            if chains is not None:
                _sample_piece(place, chains, progress)
            elif sampled:
                _make_trace(place, progress)
            elif place.lacks_metrics():
                _make_metrics(place)
        except (OSError, MemoryError):  # the others would not fare better
            raise
        except Exception as error:
            failed[place.run.name] = _why(error)
    if failed:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        raise ConcordError(f"{batch.folder}/{batch.name}: {reasons}")
    write_whole(output, listed(places, sampled, chains))


def listed(places: Sequence[Place], sampled: bool = False, chains: Chains | None = None) -> str:
    """Return the text of a batch's file: the digest of each run's result."""

    def result(place: Place) -> Path:
        """Return the file of a run's result: its metrics, its trace, or a piece of the trace."""
        if chains is not None:
            return place.piece(chains)
        return place.trace if sampled else place.table

    digests = {
        f"{place.run.experiment}/{place.run.name}": integrity.sealed(result(place))[1]
        for place in places
    }
    return json.dumps(digests, indent=1) + "\n"


def _why(error: Exception) -> str:
    """Return the sentence of an error; a traceback is printed for one that is no ConcordError."""
    if isinstance(error, ConcordError):
        return str(error)
    print_exception(error)
    return f"it failed ({type(error).__name__})"


def _make_metrics(place: Place) -> None:
    """Make the metrics of a run: score a cell, vary a universe's run, or sample and measure."""
    if place.run.arena is not None:
        _score(place)
    elif place.variant:
        _vary(place)
    else:
        _make_trace(place)
        if place.lacks_metrics():  # else the trace alone was damaged
            _measure(place.run, place.trace, place.table, place.resources, place.stated)


def _make_trace(place: Place, progress: bool = False) -> None:
    """Sample a run, or join its pieces, unless its trace stands."""
    if not place.lacks_trace():
        return
    pieces = place.pieces()
    if pieces:
        trace = join_traces([read_trace(piece) for piece in pieces])
    else:
        trace = _drawn(place.run, place.resources, progress)
    _write_trace(place.run, place.stated, trace, place.trace, place.resources)
    for piece in pieces:
        piece.unlink()
        piece.with_suffix(".json").unlink()


def _sample_piece(place: Place, chains: Chains, progress: bool) -> None:
    """Sample some chains of a run into a piece, unless the piece stands."""
    if place.lacks_piece(chains):
        piece = place.piece(chains)
        trace = _drawn(place.run, place.resources, progress, chains)
        _write_trace(place.run, place.stated, trace, piece, place.resources, chains)


def _drawn(
    run: Run, resources: Path, progress: bool | None = False, chains: Chains | None = None
) -> Trace:
    """Build a run's problem and return the trace of all, or some, of its chains."""
    return sampling.sample(run, run.build_problem(resources), progress, chains)


def _vary(place: Place) -> None:
    """Sample and measure a universe's run; keep its metrics, or the reason why there are none."""
    run, more = place.run, {}
    text = metrics.to_csv(())
    try:
        run.check()
        problem = run.build_problem(place.resources)
        text = measuring.measured(run, problem, sampling.sample(run, problem), place.resources)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        more["refused"] = _why(error)
    source = made(run, place.resources, variant=True)
    _write_table(run, text, place.table, source, place.stated, **more)


def _score(place: Place) -> None:
    """Score a cell of the arena, and write its metrics and its choice of settings."""
    run, begun = place.run, time.process_time()
    cells = _arena()
    scored = cells.score(run, cells.task_of(run, place.resources))
    seconds = round(time.process_time() - begun, 3)
    choice = place.folder / "choice.yaml"
    write_whole(choice, dump_yaml(scored.choice))
    source, outputs = cells.made(run, place.resources), (choice, place.stated)
    table = metrics.to_csv(scored.rows)
    _write_table(run, table, place.table, source, *outputs, cpu_seconds=seconds)


# The steps, which commands take by hand, too.


def resolve(run: Run, output: Path) -> None:
    """Write a run's parameters to run.yaml, unless the same ones stand there."""
    if not output.is_file() or output.read_bytes() != run.text.encode():
        write_whole(output, run.text)


def sample(
    run_path: Path,
    output: Path,
    resources: Path,
    progress: bool | None = False,
    chains: Chains | None = None,
    pieces: Sequence[Path] = (),
) -> None:
    """Sample the chains of a run.yaml, all or some, or join pieces, and write the trace.

    A ConcordError if a piece is of another run, or they are not all the run's chains in their
    order.
    """
    run = read_run(run_path)
    if pieces:
        trace = _joined(run, pieces, run_path, output, resources)
    else:
        trace = _drawn(run, resources, progress, chains)
    _write_trace(run, run_path, trace, output, resources, chains)


def _joined(
    run: Run, pieces: Sequence[Path], run_path: Path, output: Path, resources: Path
) -> Trace:
    """Return the trace joined from checked pieces, which must hold all of the run's chains."""
    traces, begin = [], 0
    for path in pieces:
        integrity.check(path)
        traces.append(read_trace(path))
        end = begin + traces[-1].chains
        integrity.check(path, sampling.made(run, resources, (begin, end)))
        begin = end
    if begin != run.chains:
        raise ConcordError(
            f"{output}: the pieces hold {begin} of the {run.chains} chains of {run_path}; "
            "name all of them"
        )
    return join_traces(traces)


def measure(run_path: Path, trace_path: Path, output: Path, resources: Path) -> None:
    """Compute the metrics that a run.yaml asks for and write them as one long table, sealed.

    A ConcordError if the trace was not sampled from this very run.yaml, by today's code, from
    today's data.
    """
    beside = [run_path] if run_path.parent == output.parent else []
    _measure(read_run(run_path), trace_path, output, resources, *beside)


def _measure(run: Run, trace_path: Path, output: Path, resources: Path, *others: Path) -> None:
    """Measure a run's checked trace, and write the table of metrics, sealed."""
    integrity.check(trace_path, sampling.made(run, resources))
    problem = run.build_problem(resources)
    text = measuring.measured(run, problem, read_trace(trace_path), resources)
    _write_table(run, text, output, measuring.made(run, resources, trace_path), *others)


def _write_trace(
    run: Run,
    run_path: Path,
    trace: Trace,
    output: Path,
    resources: Path,
    chains: Chains | None = None,
) -> None:
    """Write the trace of a run, or of some chains, and seal it with its sources."""
    # Looked at in the end: code that was imported meanwhile must not have changed before.
    source = sampling.made(run, resources, chains)
    about = describe([run_path], run=run.document, chains=chains or (0, run.chains), made=source)
    trace.attributes = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in about.items()
    }
    with whole(output) as path:
        write_trace(trace, path)
    integrity.seal([output], source)


def _write_table(
    run: Run, text: str, output: Path, source: Made, *others: Path, **more: Any
) -> None:
    """Write a run's table of metrics, and seal it and other files with what made it."""
    write_whole(output, text)
    integrity.seal([output, *others], source, **more)
