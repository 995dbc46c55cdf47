"""sample: from a run.yaml to its trace."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from concord import integrity
from concord.contracts import Problem
from concord.errors import ConcordError
from concord.integrity import Made
from concord.io import whole
from concord.plugins import provided
from concord.provenance import code, describe, digest
from concord.runs import Parts, build_problem, data_digest, kinds_of, labels, load_run, modules
from concord.sampling import loop
from concord.sampling.streams import CHAINS_PER_BLOCK
from concord.sampling.trace import Trace, join_traces, read_trace, write_trace


def modules_of(run: Mapping[str, Any]) -> tuple[str | Path, ...]:
    """Return the modules that sample a run, those that they import apart."""
    return __name__, *modules(run)


def made(run: Mapping[str, Any], resources: Path, chains: Sequence[int] = ()) -> Made:
    """Return what the trace of a run, or of some of its chains, is made from."""
    begin, end = chains or (0, run["chains"])
    return {
        "run": digest(run),
        "chains": f"{begin}:{end}",
        "code": code(*modules_of(run)),
        "data": data_digest(run, resources),
    }


def sample(
    run_path: Path,
    output: Path,
    resources: Path,
    progress: bool | None = False,
    chains: tuple[int, int] | None = None,
) -> None:
    """Sample a run, or its chains from the first to before the second number; write the trace.

    Provenance becomes the trace's attributes.
    """
    run, parts = load_run(run_path)
    chains = chains or (0, run["chains"])
    trace = simulate(run, parts, build_problem(run, parts, resources), progress, chains)
    _write(trace, output, run_path, run, chains, resources)


def join(run_path: Path, pieces: Sequence[Path], output: Path, resources: Path) -> None:
    """Join a run's chains, sampled in pieces, into its trace.

    Raises
    ------
    ConcordError
        If a piece is of another run, or they are not all the run's chains in their order.
    """
    run, _ = load_run(run_path)
    traces, begin = [], 0
    for path in pieces:
        integrity.check(path)
        traces.append(read_trace(path))
        end = begin + traces[-1].chains
        integrity.check(path, made(run, resources, (begin, end)))
        begin = end
    if begin != run["chains"]:
        raise ConcordError(
            f"{output}: the pieces hold {begin} of the {run['chains']} chains of {run_path}; "
            "name all of them"
        )
    _write(join_traces(traces), output, run_path, run, (0, begin), resources)


def simulate(
    run: Mapping[str, Any],
    parts: Parts,
    problem: Problem,
    progress: bool | None = False,
    chains: tuple[int, int] | None = None,
) -> Trace:
    """Return the trace of a run, or of its chains from ``chains[0]`` to before ``chains[1]``.

    Raises
    ------
    ConcordError
        If ``chains`` are not whole blocks of the run.
    """
    begin, end = chains or (0, run["chains"])
    if (
        not 0 <= begin < end <= run["chains"]
        or begin % CHAINS_PER_BLOCK
        or (end % CHAINS_PER_BLOCK and end != run["chains"])
    ):
        raise ConcordError(
            f"chains {begin}:{end} of {run['chains']}: only blocks of {CHAINS_PER_BLOCK} can be "
            f"sampled by themselves; name two multiples of {CHAINS_PER_BLOCK}, or the last chain"
        )
    return loop.sample(
        parts.sampler,
        parts.sampler_params,
        problem,
        parts.topology,
        law=parts.initial,
        record=parts.record,
        chains=run["chains"],
        iterations=run["iterations"],
        seed=run["seed"],
        labels=labels(run),
        span=(begin, end),
        progress=progress,
    )


def _write(
    trace: Trace,
    output: Path,
    run_path: Path,
    run: Mapping[str, Any],
    chains: tuple[int, int],
    resources: Path,
) -> None:
    # Looked at in the end: code that was imported meanwhile must not have changed before.
    source = made(run, resources, chains)
    used = provided(kinds_of(run))
    about = describe([run_path], run=run, chains=chains, made=source)
    about |= {"plugins": used} if used else {}
    trace.attributes = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in about.items()
    }
    with whole(output) as path:
        write_trace(trace, path)
    integrity.seal([output], source)
