"""measure: from a trace to its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from concord import integrity, metrics
from concord.errors import ConcordError
from concord.integrity import Made
from concord.io import whole
from concord.provenance import code, digest
from concord.runs import Parts, build_problem, data_digest, load_run, modules, stream_label
from concord.sampling import streams
from concord.sampling.trace import Trace, read_trace
from concord.stages import refuse_other_code
from concord.stages.sample import made as sampled_from


def modules_of(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the modules that measure a run, those that they import apart."""
    return __name__, *modules(run), *(f"concord.metrics.{name}" for name in run["metrics"])


def made(run: Mapping[str, Any], resources: Path) -> Made:
    """Return what a run's metrics are made from, the trace apart."""
    return {
        "run": digest(run),
        "code": code(*modules_of(run)),
        "data": data_digest(run, resources),
    }


def measure(
    run_path: Path,
    trace_path: Path,
    output: Path,
    resources: Path,
    expected: str | None = None,
    code: str | None = None,
) -> None:
    """Compute the metrics a run asks for and write them as one long table, sealed.

    What is ``expected``, of run and ``code``, is what the workflow has, if it called.

    Raises
    ------
    ConcordError
        If the trace was not sampled from this very run.yaml, by today's code, from today's data.
    """
    run, parts = load_run(run_path, expected)
    refuse_other_code(made(run, resources)["code"], code)
    trace = read_trace(trace_path)
    integrity.refuse_other(trace_path, trace.made, sampled_from(run, resources))
    problem = build_problem(run, parts, resources)
    misfit = _misfit(trace, run, parts, problem.dim)
    if misfit:
        raise ConcordError(f"{trace_path}: {misfit}; delete the trace, it is made again")

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
    )
    text = metrics.to_csv(metrics.measure(run["metrics"], measurement))
    with whole(output) as path:
        path.write_text(text, encoding="utf-8")
    integrity.seal([output], {**made(run, resources), "trace": trace.sha256})


def _misfit(trace: Trace, run: Mapping[str, Any], parts: Parts, dim: int) -> str | None:
    """Say how a trace's arrays are not those of its run; None if they are."""
    record = parts.record
    draws = record.iterations(run["iterations"])
    agents = np.arange(run["agents"]) if record.agents is None else np.array(record.agents)
    for name, found, wanted in (("draw", trace.draw, draws), ("agent", trace.agent, agents)):
        if not np.array_equal(found, wanted):
            return f"its coordinate {name} is not that of the run"
    sizes = {"chain": run["chains"], "draw": len(draws), "agent": len(agents), "dim": dim}
    wanted_dimensions: dict[str, tuple[str, ...]] = {
        "diverged_at": ("chain",),
        **({"x": ("chain", "draw", "agent", "dim")} if record.draws else {}),
        **({"x_average": ("chain", "draw", "dim")} if record.average else {}),
        **dict.fromkeys(record.probes, ("chain", "draw", "agent")),
    }
    if "consensus_error" in record.probes:
        wanted_dimensions["consensus_error"] = ("chain", "draw")
    for name in [*wanted_dimensions, *(f"{name}_mean" for name in record.averages)]:
        if name not in trace:
            return f"its variable {name} is missing"
    for name, (dimensions, array) in trace.variables.items():
        shape = tuple(sizes.get(d, size) for d, size in zip(dimensions, array.shape, strict=True))
        if dimensions != wanted_dimensions.get(name, dimensions) or array.shape != shape:
            return f"its variable {name} is not of the run's shape"
        if array.dtype.kind not in "iuf":
            return f"its variable {name} holds no numbers"
    return None
