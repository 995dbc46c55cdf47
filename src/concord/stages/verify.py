"""verify: runs of a crate are made again here, and every number is compared with the crate's.

A number is the *same* (all its digits), *agrees* (within ``TOLERANCE``, a Sinkhorn distance within
``LOOSE``), or *differs*. Of runs that amplify rounding errors (``runs.amplifies``) intervals are
compared: other chains, whose intervals overlap. A crate whose files are not those that it lists is
refused, and a run counts as different whose parameters are not those of the configuration here.
"""

import csv
import hashlib
import io
import json
import math
import random
import secrets
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from concord import markup
from concord.datasets.registry import load_registry
from concord.errors import ConcordError
from concord.io import write_whole
from concord.make import Batch, make
from concord.provenance import commit
from concord.runs.run import Run, amplifies
from concord.runs.run import read as read_run
from concord.stages.certify import provide
from concord.stages.crate import METADATA, unpacked
from concord.studies.config import FOLDERS, load_config
from concord.studies.study import Study

# Absolute and relative: what other kernels and libraries differ by at most.
TOLERANCE, LOOSE = (1e-12, 1e-9), (1e-12, 1e-6)
SAME, AGREES, OTHER, DIFFERS = "the same", "agrees", "other chains, intervals overlap", "differs"
SHOWN = 10  # numbers that differ, of a run

Key = tuple[str, ...]  # iteration, agent, metric
Numbers = tuple[str, ...]  # value, lo, hi, trials


def verify(
    crate: Path,
    resources: Path,
    share: float,
    seconds: float,
    seed: int | None,
    output: Path | None,
) -> Iterator[str]:
    """Yield lines about the runs that are made again, and write all their numbers.

    share: of the runs of each experiment, of which one at least is made.
    seconds: no run begins after so many.
    seed: chooses the runs; none: chance does, so that who made the crate cannot know them.
    A ConcordError if the file is no crate, a file in it is not the one that it lists, or a number
    differs.
    """
    if not 0 < share <= 1:
        raise ConcordError(f"--share: {share:g} is no share of the runs; give one above 0, up to 1")
    files = _files(crate)
    yield from _where(files)
    if not any(Path("config", folder).is_dir() for folder in FOLDERS):
        raise ConcordError("there is no configuration here; verify in a clone of that commit")
    seed = secrets.randbelow(2**31) if seed is None else seed
    names, by = _chosen(files, share, seed), Counter[str]()
    count = sum(name.endswith("/metrics.csv") for name in files)
    yield f"{len(names)} of {count} runs are made again, chosen by --seed {seed}."
    begun, rows, left = time.monotonic(), list[tuple[str, ...]](), dict[str, str]()
    for number, name in enumerate(names):
        if time.monotonic() - begun > seconds:
            yield f"{len(names) - number} of them were not begun within {seconds:g} s."
            break
        try:
            run = _read(files.get(f"{name}/run.yaml", b""))
            if unlike := _unlike(run):
                by[DIFFERS] += 1
                yield f"{name}: {unlike}"
                continue
            again = _again(run, resources)
        except ConcordError as error:
            left[name] = str(error)
            continue
        found = list(_compared(files[f"{name}/metrics.csv"], again, amplifies(run.document)))
        judged = Counter(row[-1] for row in found)
        by += judged
        rows += [(name, *row) for row in found]
        yield f"{name}: {_counted(judged)}"
        worst = [row for row in found if row[-1] == DIFFERS][:SHOWN]
        yield from (
            f"  {' '.join(key)}: {theirs} there, {ours} here" for *key, theirs, ours, _ in worst
        )
    yield from (f"{name}: not made: {why}" for name, why in left.items())
    yield f"All numbers: {_counted(by) or 'none was compared'}."
    if output:
        columns = ("run", "iteration", "agent", "metric", "crate", "here", "verdict")
        write_whole(output, markup.table(columns, rows))
    if by[DIFFERS]:
        raise ConcordError(f"{crate}: {by[DIFFERS]} numbers differ from what is computed here")
    if not by:
        raise ConcordError(f"{crate}: no number was compared; raise --share or --seconds")


def _counted(judged: Counter[str]) -> str:
    return ", ".join(f"{judged[v]} {v}" for v in (SAME, AGREES, OTHER, DIFFERS) if judged[v])


def _files(crate: Path) -> dict[str, bytes]:
    """Return the files of a crate, each of which is the one that its metadata list."""
    content = {name: read() for name, read in unpacked(crate).items()}
    try:
        graph = json.loads(content[METADATA])["@graph"]
        listed = {unquote(e["@id"]): e["sha256"] for e in graph if "sha256" in e}
        json.loads(next(e["description"] for e in graph if e["@id"] == "#made"))["commit"]
    except (LookupError, StopIteration, TypeError, ValueError) as error:
        raise ConcordError(f"{crate}: it is no crate of Concord ({error})") from None
    for name, body in content.items():
        if name != METADATA and listed.get(name) != hashlib.sha256(body).hexdigest():
            why = "it is not as it was packed" if name in listed else "the crate does not list it"
            raise ConcordError(f"{crate}: {name}: {why}; get the crate from its author again")
    lost = [n for n in listed if n not in content and not n.startswith("#")]
    if lost:
        raise ConcordError(f"{crate}: {lost[0]} is listed, and missing; get the crate again")
    return content


def _where(files: Mapping[str, bytes]) -> Iterator[str]:
    graph = json.loads(files[METADATA])["@graph"]
    (made,) = (json.loads(e["description"]) for e in graph if e["@id"] == "#made")
    here = commit()["commit"]
    yield f"The crate was made at commit {made['commit']}; here is {here}."
    if made.get("dirty"):
        yield "Files were changed there that its commit does not have."


def _chosen(files: Mapping[str, bytes], share: float, seed: int) -> list[str]:
    """Return runs of every experiment, in turn, so that a limit of time leaves some of each."""
    experiments: dict[str, list[str]] = defaultdict(list)
    for name in sorted(files):
        folder, _, file = name.rpartition("/")
        if file == "metrics.csv":
            experiments[str(PurePosixPath(folder).parent)].append(folder)
    rng, turns = random.Random(seed), list[tuple[int, float, str]]()
    for runs in experiments.values():
        picked = rng.sample(runs, math.ceil(share * len(runs)))
        turns += [(turn, rng.random(), name) for turn, name in enumerate(picked)]
    return [name for _, _, name in sorted(turns)]


def _read(stated: bytes) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.yaml")
        path.write_bytes(stated)
        return read_run(path)


def _unlike(run: Run) -> str | None:
    """Say where a run is not the one that the configuration here has under its name."""
    try:
        wanted = _study(run.paper, run.scale, run.seed).run(run.experiment, run.name)
    except ConcordError as error:
        return f"the configuration here has no such run ({error})"
    return None if wanted.text == run.text else "the configuration here has other parameters"


@cache
def _study(key: str, scale: str, seed: int) -> Study:
    for folder in FOLDERS:
        path = Path("config", folder, key)
        if path.is_dir():
            return Study(path, load_config(changes={"scale": scale, "seed": seed}))
    raise ConcordError(f"there is no study {key}; verify in a clone of the project")


def _again(run: Run, resources: Path) -> str:
    """Make a run in a folder of its own; return its metrics."""
    if missing := run.unavailable:
        raise ConcordError(missing)
    for name in run.data_sets:
        for file in load_registry()[name].files:
            if (path := resources / name / file).exists():
                continue
            if name in run.downloads:
                raise ConcordError(f"{path} is not there; `concord fetch {name}/{file} -o {path}`")
            provide(f"{name}/{file}", path)
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch("verified", run.paper, (run,))
        make(batch, Path(folder), resources, Path(folder, "made.json"))
        return batch.place(run, Path(folder)).table.read_text()


def _compared(theirs: bytes, ours: str, amplified: bool) -> Iterator[tuple[str, ...]]:
    """Yield iteration, agent, metric, both values, and the verdict on each number."""
    one, other = _table(theirs.decode(errors="replace")), _table(ours)
    for key in {**one, **other}:
        a, b = one.get(key), other.get(key)
        if key[0] == "iteration" and a == b:
            continue
        if a is None or b is None:
            yield (*key, *("missing" if n is None else n[0] for n in (a, b)), DIFFERS)
        else:
            yield (*key, a[0], b[0], verdict(key[-1], a, b, amplified))


def _table(text: str) -> dict[Key, Numbers]:
    """Return the rows by their keys, the head among them; what stands twice is no number."""
    table: dict[Key, Numbers] = {}
    for row in csv.reader(io.StringIO(text)):
        key = tuple(row[:3])
        table[key] = ("twice",) if key in table else tuple(row[3:]) or ("",)
    return table


def verdict(metric: str, a: Numbers, b: Numbers, amplified: bool = False) -> str:
    """Return what is to be said of two numbers, each with its interval."""
    if a == b:
        return SAME
    absolute, relative = LOOSE if metric.startswith("sinkhorn") else TOLERANCE

    def close(x: str, y: str) -> bool:
        p, q = _number(x), _number(y)
        near = abs(p - q) <= absolute + relative * max(abs(p), abs(q))
        return x == y or p == q or (near and math.isfinite(p - q))

    if len(a) == len(b) and all(map(close, a, b)):
        return AGREES
    ends = [*map(_number, (*a[1:3], *b[1:3]))]
    if amplified and len(ends) == 4 and ends[0] <= ends[3] and ends[2] <= ends[1]:
        return OTHER
    return DIFFERS


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
