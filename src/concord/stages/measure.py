"""measure: from a trace to its metrics."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from concord import chain, metrics, seals, streams
from concord.assemble import Parts, build_problem
from concord.errors import ConcordError
from concord.files import whole
from concord.stages import load_run


def measure(
    run_path: Path, trace_path: Path, output: Path, resources: Path, expected: str | None = None
) -> None:
    """Compute the metrics a run asks for and write them as one long table, and its seal.

    Raises
    ------
    ConcordError
        If the trace was not sampled from this very run.yaml.
    """
    run, parts = load_run(run_path, expected)
    trace = chain.read(trace_path)
    if _source(trace) != run:
        raise ConcordError(
            f"{trace_path} was not sampled from {run_path}; delete the trace, it is made again"
        )
    misfit = _misfit(trace, run, parts)
    if misfit:
        raise ConcordError(f"{trace_path}: {misfit}; delete the trace, it is made again")

    def stream(what: str) -> np.random.Generator:
        return streams.generator(run["seed"], what, run["paper"], run["experiment"], run["run"])

    measurement = metrics.Measurement(
        trace=trace,
        problem=build_problem(run, parts, resources),
        topology=parts.topology,
        sampler=parts.sampler,
        sampler_params=parts.sampler_params,
        initial=parts.initial,
        iterations=run["iterations"],
        stream=stream,
    )
    text = metrics.to_csv(metrics.measure(run["metrics"], measurement))
    with whole(output) as path:
        path.write_text(text, encoding="utf-8")
    seals.seal(run_path, output)


def _source(trace: chain.Trace) -> Any:
    """Return the run that a trace says it was sampled from, None if it says nothing."""
    try:
        return json.loads(trace.attributes.get("run", "null"))
    except ValueError:
        return None


def _misfit(trace: chain.Trace, run: Mapping[str, Any], parts: Parts) -> str | None:
    """Say how a trace's arrays are not those of its run; None if they are."""
    agents = parts.record.agents
    wanted = {
        "draw": parts.record.iterations(run["iterations"]),
        "agent": np.arange(run["agents"]) if agents is None else np.array(agents),
    }
    for name, found in (("draw", trace.draw), ("agent", trace.agent)):
        if not np.array_equal(found, wanted[name]):
            return f"its coordinate {name} is not that of the run"
    sizes = {"chain": run["chains"], **{name: len(values) for name, values in wanted.items()}}
    for name, (dimensions, array) in trace.variables.items():
        if any(size != sizes.get(d, size) for d, size in zip(dimensions, array.shape, strict=True)):
            return f"its variable {name} is not of the run's shape"
        if array.dtype.kind not in "iuf":
            return f"its variable {name} holds no numbers"
    return "its variable diverged_at is missing" if "diverged_at" not in trace else None
