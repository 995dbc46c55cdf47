"""sample: from a run.yaml to its trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concord import chain, initial, streams
from concord.assemble import Parts, build_problem
from concord.files import whole
from concord.provenance import describe
from concord.stages import load_run


def sample(
    run_path: Path,
    output: Path,
    resources: Path,
    progress: bool = False,
    expected: str | None = None,
) -> None:
    """Sample a run and write its trace, with its provenance as attributes."""
    run, parts = load_run(run_path, expected)
    trace = simulate(run, parts, build_problem(run, parts, resources), progress)
    trace.attributes = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in describe([run_path], run=run).items()
    }
    with whole(output) as path:
        chain.write(trace, path)


def simulate(
    run: Mapping[str, Any], parts: Parts, problem: Any, progress: bool = False
) -> chain.Trace:
    """Return the trace of a run.

    Initial positions share a stream across the samplers and topologies of a problem (common random
    numbers); the noise is the run's own.
    """
    seed, paper = run["seed"], run["paper"]
    shape = (run["chains"], run["agents"], problem.dim)
    common = streams.generator(seed, "initial", paper, run["problem"]["name"])
    x0 = initial.positions(parts.initial, problem, shape, common)
    rng = streams.generator(seed, "noise", paper, run["experiment"], run["run"])
    parts.sampler.check(problem, parts.topology, parts.sampler_params)
    state, step = parts.sampler.init(problem, parts.topology, parts.sampler_params, x0, rng)
    recorder = chain.Recorder(parts.record, problem, shape, run["iterations"])
    return chain.simulate(state, step, run["iterations"], recorder, rng, progress)
