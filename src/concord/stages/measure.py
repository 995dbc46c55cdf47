"""measure: from a trace to its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from concord import integrity, metrics
from concord.contracts import Problem
from concord.integrity import Made
from concord.io import whole
from concord.plugins import location, provided
from concord.provenance import code, digest
from concord.runs import (
    Parts,
    build_problem,
    data_digest,
    kinds_of,
    load_run,
    modules,
    stream_label,
)
from concord.sampling import streams
from concord.sampling.trace import Trace, read_trace
from concord.stages.sample import made as sampled_from


def modules_of(run: Mapping[str, Any]) -> tuple[str | Path, ...]:
    """Return the modules that measure a run, those that they import apart."""
    return __name__, *modules(run), *(location("metrics", name) for name in run["metrics"])


def made(run: Mapping[str, Any], resources: Path, trace: Path | None = None) -> Made:
    """Return what a run's metrics are made from; without a trace, the trace apart."""
    return {
        "run": digest(run),
        "code": code(*modules_of(run)),
        "data": data_digest(run, resources),
        **({} if trace is None else {"trace": integrity.sealed(trace)[1]}),
    }


def measured(run: Mapping[str, Any], parts: Parts, problem: Problem, trace: Trace) -> str:
    """Return the metrics that a run asks for, of its trace, as the text of a table."""

    def stream(what: str) -> np.random.Generator:
        labels = run["paper"], run["experiment"], stream_label(run)
        return streams.generator(run["seed"], what, *labels)

    measurement = metrics.Measurement(
        trace=trace,
        problem=problem,
        topology=parts.topology,
        sampler=parts.sampler,
        sampler_params=parts.sampler_params,
        initial=parts.initial,
        iterations=run["iterations"],
        stream=stream,
        burn_in=parts.record.burn_in,
    )
    return metrics.to_csv(metrics.measure(run["metrics"], measurement))


def measure(run_path: Path, trace_path: Path, output: Path, resources: Path) -> None:
    """Compute the metrics a run asks for and write them as one long table, sealed.

    Raises
    ------
    ConcordError
        If the trace was not sampled from this very run.yaml, by today's code, from today's data.
    """
    run, parts = load_run(run_path)
    integrity.check(trace_path, sampled_from(run, resources))
    text = measured(run, parts, build_problem(run, parts, resources), read_trace(trace_path))
    with whole(output) as path:
        path.write_text(text, encoding="utf-8")
    used = provided([*kinds_of(run), *(("metrics", name) for name in run["metrics"])])
    integrity.seal(
        [output], made(run, resources, trace_path), **({"plugins": used} if used else {})
    )
