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
from concord.networks.faults import drawing
from concord.provenance import code, describe, digest
from concord.runs import Parts, build_problem, data_digest, load_run, modules, stream_label
from concord.sampling import initial, loop, streams
from concord.sampling.recorder import Recorder
from concord.sampling.streams import CHAINS_PER_BLOCK
from concord.sampling.trace import Trace, join_traces, read_trace, write_trace


def modules_of(run: Mapping[str, Any]) -> tuple[str, ...]:
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
    progress: bool = False,
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
        end = begin + len(traces[-1]["diverged_at"])
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
    progress: bool = False,
    chains: tuple[int, int] | None = None,
) -> Trace:
    """Return the trace of a run, or of its chains from ``chains[0]`` to before ``chains[1]``.

    Initial positions share a stream across the samplers and topologies of a problem (common random
    numbers), and so does what arrives on their networks; the noise is the run's own. Chains advance
    in blocks of ``CHAINS_PER_BLOCK``, each with its own streams, so that a chain is the same,
    number for number, whichever others are sampled with it.

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
    seed, paper = run["seed"], run["paper"]
    name = run["problem"]["name"]
    common = streams.generator(seed, "initial", paper, name)
    shape = (run["chains"], run["agents"], problem.dim)
    x0 = initial.positions(parts.initial, problem, shape, common)
    parts.sampler.check(problem, parts.topology, parts.sampler_params)
    noise = ["noise", paper, run["experiment"], stream_label(run)]
    traces = []
    for first in range(begin, end, CHAINS_PER_BLOCK):
        block = x0[first : min(first + CHAINS_PER_BLOCK, end)]
        rng = streams.generator(seed, *noise, *[first][: first > 0])
        own = problem.from_chain(first)
        masks = streams.generator(seed, "network", paper, name, *[first][: first > 0])
        network = drawing(parts.topology, masks)
        state, step = parts.sampler.init(own, network, parts.sampler_params, block, rng)
        recorder = Recorder(parts.record, own, block.shape, run["iterations"])
        traces.append(loop.simulate(state, step, run["iterations"], recorder, rng, progress))
    return join_traces(traces)


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
    trace.attributes = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in describe([run_path], run=run, chains=chains, made=source).items()
    }
    with whole(output) as path:
        write_trace(trace, path)
    integrity.seal([output], source)
