"""measure: from a trace to its metrics."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from concord import chain, metrics, streams
from concord.assemble import build_problem
from concord.errors import ConcordError
from concord.files import whole
from concord.stages import load_run


def measure(
    run_path: Path, trace_path: Path, output: Path, resources: Path, expected: str | None = None
) -> None:
    """Compute the metrics a run asks for and write them as one long table.

    Raises
    ------
    ConcordError
        If the trace was not sampled from this very run.yaml.
    """
    run, parts = load_run(run_path, expected)
    trace = chain.read(trace_path)
    if json.loads(trace.attributes.get("run", "{}")) != run:
        raise ConcordError(
            f"{trace_path} was not sampled from {run_path}; delete the trace, it is made again"
        )

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
