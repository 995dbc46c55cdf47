"""entries: samplers of strangers on the arena's board, each a folder ``arena/entries/<kind>``.

It holds the sampler's file, ``scores.csv`` with the columns of the arena's own, and ``entry.json``:
the code's SHA-256, what is tuned and what stays fixed, which tasks have exact scores, versions and
commit. Whoever checks an entry computes its scores again, those of chains with the same seed: each
agrees as far as another machine's rounding allows (``verify.TOLERANCE``).

Cells are addressed by what they were made from (``cells.made``): ``fetch`` takes those of a crate,
or of another folder of results, that are what this configuration, code and data would make.
"""

import csv
import io
import json
import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import concord
from concord import markup, metrics, plugins, results
from concord.arena import board, cells
from concord.contracts import declared
from concord.errors import ConcordError
from concord.integrity import unsealed
from concord.io import check_folder, whole, write_whole
from concord.make import at
from concord.metrics import Row
from concord.progress import progress
from concord.provenance import commit, sha256
from concord.runs.run import Run
from concord.stages import verify
from concord.stages.compete import entered, entry_of
from concord.stages.crate import unpacked
from concord.studies.study import Study

PLACE = Path("arena", "entries")
# Where every entry is scored: perfect networks, faults, compression, data, posteriors, clocks.
OPEN = ("tasks", "faults", "compressed", "real_data", "sampled", "links")

T = TypeVar("T")
Key = tuple[str, ...]


def add(study: Study, kind: str, resources: Path, place: Path = PLACE) -> Iterator[str]:
    """Score a plug-in on the arena's open tasks, write its folder, and yield what was done."""
    file = plugins.own()["samplers", kind]
    scores, about = _scored(study, kind, resources)
    folder = place / kind
    check_folder(folder)
    write_whole(folder / "scores.csv", markup.table(board.COLUMNS, scores))
    write_whole(folder / "entry.json", json.dumps(about, indent=1) + "\n")
    with whole(folder / f"{kind}.py") as path:
        path.write_bytes(file.read_bytes())
    yield _told(folder, about)


def check(study: Study, folder: Path, resources: Path) -> Iterator[str]:
    """Score an entry again, and yield what is the same.

    A ConcordError if its file is another one, or a score is not what it says.
    """
    kind = folder.name
    try:
        stated = json.loads((folder / "entry.json").read_text())
        theirs = _rows((folder / "scores.csv").read_text())
        digest = stated["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConcordError(f"{folder}: it is no entry ({error}); `concord arena add`") from None
    if sha256(plugins.own()["samplers", kind]) != digest:
        raise ConcordError(f"{folder}: {kind}.py is not the file that was scored; add it again")
    scores, about = _scored(study, kind, resources)
    for name in ("name", "sampler", "arena", "exact", "scale", "seed"):
        if stated.get(name) != about[name]:
            raise ConcordError(f"{folder}/entry.json: {name} is {about[name]} here; add it again")
    ours = _rows(markup.table(board.COLUMNS, scores))
    nothing: list[str] = []
    for one, other in zip_longest(theirs, ours, fillvalue=nothing):
        if not _agree(one, other):
            stands, wanted = ",".join(one) or "nothing", ",".join(other) or "nothing"
            raise ConcordError(f"{folder}/scores.csv: {stands} there, {wanted} here")
    same = sum(map(operator.eq, theirs, ours)) - 1
    yield f"{_told(folder, about)}; {same} of {len(ours) - 1} scores are the same"


def _rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def _agree(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether rows of the table are of one score, in one state, with the same numbers to rounding.

    Those are value and ends; what is before says of which score.
    """
    if [*one[:7], *one[10:]] != [*other[:7], *other[10:]]:
        return False
    numbers = tuple(one[7:10]), tuple(other[7:10])
    return verify.verdict("", *numbers) in (verify.SAME, verify.AGREES)


def _told(folder: Path, about: Mapping[str, Any]) -> str:
    scored = about["cells"] - len(about["without scores"])
    why = "" if scored == about["cells"] else " (entry.json says why not the others)"
    exact = len(about["exact"])
    return f"{folder}: {scored} of {about['cells']} cells scored{why}, {exact} of them exactly"


def _scored(study: Study, kind: str, resources: Path) -> tuple[list[list[Any]], dict[str, Any]]:
    runs = [run for name in OPEN if name in study.arenas for run in _tasks(study, name)]
    entrants = [entered(study, run, kind, ()) for run in runs]

    def score(number: int) -> tuple[str, str | None, bool]:
        """Return a cell's metrics, why it has no scores, and whether they are exact."""
        cell = entrants[number]
        try:
            rows, choice = cells.score(cell, cells.task_of(cell, resources))
        except ConcordError as error:  # it begins, and refuses what this network does
            rows = [Row(0, "network", "applicable", 0.0, chance=False)]
            choice = {"not applicable": str(error)}
        why = choice.get("not applicable", choice.get("not run"))
        exact = any(row.metric == "exact" and row.value for row in rows)
        return metrics.to_csv(rows), None if why is None else str(why), exact

    scored = on_all_cores(score, len(entrants), "cells")
    names = [f"{cell.experiment}/{board.task_of(cell.document)}" for cell in entrants]
    found = [
        results.of_text(cell.document, text)
        for cell, (text, *_) in zip(entrants, scored, strict=True)
    ]
    sampler, arena = entry_of(kind)
    about = {
        "kind": kind,
        "name": declared(plugins.plugin("samplers", kind, "sampler"), "NAME") or kind,
        "sha256": sha256(plugins.own()["samplers", kind]),
        "sampler": sampler,
        "arena": arena,
        "scale": study.config["scale"],
        "seed": study.config["seed"],
        "cells": len(found),
        "exact": [name for name, (*_, exact) in zip(names, scored, strict=True) if exact],
        "without scores": {n: why for n, (_, why, _) in zip(names, scored, strict=True) if why},
        "concord": concord.__version__,
        **commit(),
    }
    return list(board.scores(found)), about


def on_all_cores(work: Callable[[int], T], count: int, what: str) -> list[T]:
    """Return what work makes of 0, ..., count - 1, with a bar; in a process for each core."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS does not say
        cores = 1
    pool = get_context("fork").Pool(min(cores, count), _begin, (work,))
    found: list[T] = []
    with pool, progress(count, what) as done:
        for made in pool.imap(_do, range(count)):
            found.append(made)
            done()
    return found


def _begin(work: Callable[[int], Any]) -> None:
    global _work  # of a process that was forked for it
    _work = work


def _do(number: int) -> Any:
    return _work(number)


_work: Callable[[int], Any]


def _tasks(study: Study, experiment: str) -> list[Run]:
    """Return a run of each task of an experiment, of some entry.

    Not of tasks that read data sets: an entry is the same whether they are at hand or not.
    """
    mine = (run for run in study.runs.values() if run.experiment == experiment)
    runs = [run for run in mine if not (run.data_sets or run.optional_data_sets)]
    return list({board.task_of(run.document): run for run in runs}.values())


def fetch(studies: Mapping[str, Study], where: Path, source: Path) -> Iterator[str]:
    """Copy cells that are what would be made here into the results, and yield how many.

    where: folder of the results.
    source: a crate (``concord crate``), or a folder of results.
    """
    files = dict(_files(source))
    address: dict[Key, PurePosixPath] = {}
    for name, read in files.items():
        if name.name == "metrics.json" and (made := unsealed(read())):
            address[tuple(sorted(made.values()))] = name.parent
    taken, wanted = 0, 0
    for study in studies.values():
        for run in study.runs.values():
            place = at(run, where)
            if run.arena is None or not place.lacks_metrics():
                continue
            wanted += 1
            made = cells.made(run, place.resources)
            if folder := address.get(tuple(sorted(made.values()))):
                for file in ("run.yaml", "choice.yaml", "metrics.csv", "metrics.json"):
                    if folder / file in files:
                        with whole(place.folder / file) as path:
                            path.write_bytes(files[folder / file]())
                if why := place.lacks_metrics():
                    place.table.unlink()
                    raise ConcordError(f"{source}: {folder}: it is {why}; fetch from elsewhere")
                taken += 1
    yield f"{taken} of {wanted} cells that were missing fetched from {source}"


def _files(source: Path) -> Iterator[tuple[PurePosixPath, Any]]:
    if source.is_dir():
        for path in source.rglob("*"):
            if path.name in {"run.yaml", "choice.yaml", "metrics.csv", "metrics.json"}:
                yield PurePosixPath(path), path.read_bytes
        return
    for name, read in unpacked(source).items():
        yield PurePosixPath(name), read
