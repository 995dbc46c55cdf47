"""vary: from runs of a universe to their metrics, sampled and measured in one go.

They are computed together, since most take less time than a command does to start; nothing is kept
of them but one table, the metrics of all with columns for experiment and run. What cannot be run is
a result, too: its reason is in the seal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from traceback import print_exception
from typing import Any

import numpy as np

from concord import integrity
from concord.contracts import Problem
from concord.errors import ConcordError
from concord.integrity import AGAIN, Made
from concord.io import whole
from concord.metrics import COLUMNS
from concord.plugins import provided
from concord.progress import each
from concord.provenance import code, digest
from concord.runs import Parts, assemble, build_problem, data_digest, kinds_of
from concord.sampling.recorder import Recorder
from concord.sampling.trace import Trace
from concord.stages import measure
from concord.stages.sample import modules_of as sampled_by
from concord.stages.sample import simulate

Runs = Sequence[Mapping[str, Any]]


def made(runs: Runs, resources: Path) -> Made:
    """Return what the metrics of runs are made from."""
    modules = {m for run in runs for m in (*sampled_by(run), *measure.modules_of(run))}
    return {
        "run": digest({_name(run): run for run in runs}),
        "code": code(__name__, *sorted(modules, key=str)),
        "data": digest({_name(run): data_digest(run, resources) for run in runs}),
    }


def _name(run: Mapping[str, Any]) -> str:
    return f"{run['experiment']}/{run['run']}"


def vary(runs: Runs, output: Path, resources: Path) -> None:
    """Sample and measure runs, and write the metrics of all as one table (.csv), sealed."""
    lines = [",".join(("experiment", "run", *COLUMNS))]

    def compute(run: Mapping[str, Any]) -> None:
        parts = assemble({**run, "chains": max(run["chains"], 1)}, _name(run))
        problem = build_problem(run, parts, resources)
        table = measure.measured(run, parts, problem, _trace(run, parts, problem))
        lines.extend(f"{run['experiment']},{run['run']},{row}" for row in table.splitlines()[1:])

    refused = failures({_name(run): partial(compute, run) for run in runs})
    used = provided(sorted({kind for run in runs for kind in kinds_of(run)}))
    with whole(output) as path:
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    more = {"plugins": used} if used else {}
    integrity.seal([output], made(runs, resources), refused=refused, **more)


def failures(makes: Mapping[str, Callable[[], None]]) -> dict[str, str]:
    """Do all of these; return by name why some failed."""
    failed = {}
    for name in each(list(makes), "runs"):
        try:
            makes[name]()
        except (OSError, MemoryError):  # the others would not fare better
            raise
        except ConcordError as error:
            failed[name] = str(error)
        except Exception as error:
            print_exception(error)
            failed[name] = f"it failed ({type(error).__name__})"
    return failed


def _trace(run: Mapping[str, Any], parts: Parts, problem: Problem) -> Trace:
    """Return the trace of a run; of one without chains, what is known of it beforehand."""
    if run["chains"]:
        return simulate(run, parts, problem)
    parts.sampler.check(problem, parts.topology, parts.sampler_params)
    nothing = np.empty((0, problem.agents, problem.dim))
    recorder = Recorder(parts.record, problem, nothing.shape, run["iterations"])
    for k in recorder.due:
        recorder.observe(k, nothing, None)
    return recorder.trace()


def refused(path: Path) -> dict[str, str]:
    """Return why runs of a table that ``vary`` wrote are not in it, by experiment/run."""
    try:
        found: dict[str, str] = integrity.document(path)["refused"]
    except KeyError as error:
        raise ConcordError(f"{path}: its seal says nothing of what was refused; {AGAIN}") from error
    return found
