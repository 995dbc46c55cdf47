"""The one loop over iterations, and what it records.

A sampler gives ``init`` and ``step`` (see ``concord.samplers``); ``simulate`` advances all chains
and agents together and hands each iterate to a ``Recorder``, which keeps only what was requested.
``sample`` does so for the chains of a run, block by block.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from concord import compiled
from concord.contracts import Info, Problem, ReadOut, Sampler, Step
from concord.errors import ConcordError
from concord.networks.channel import check_passage
from concord.networks.network import drawing
from concord.networks.topology import Topology
from concord.progress import PATIENCE
from concord.sampling import initial, streams
from concord.sampling.recorder import Record, Recorder
from concord.sampling.streams import CHAINS_PER_BLOCK, Ahead
from concord.sampling.trace import Trace, join_traces


def simulate(
    state: Any,
    step: Step,
    iterations: int,
    recorder: Recorder,
    rng: np.random.Generator,
    advance: Callable[[], object] = lambda: None,
    read: Callable[[Any], np.ndarray] | None = None,
) -> Trace:
    """Run the chain of states and return what the recorder kept.

    ``state.x`` has shape (chains, agents, dim). Step k = 0, 1, ... produces iteration k + 1;
    ``advance`` is called after each, ``read`` makes of a state what is recorded in place of its x
    (``contracts.ReadOut``). A chain that diverges is noted, not stopped: the run's result is that
    it diverged.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        recorder.observe(0, state.x, None, read and partial(read, state))
        for k in range(iterations):
            made = step(state, k, rng)
            if k == 0 and not (isinstance(made, tuple) and isinstance(made[-1], Info)):
                raise ConcordError(
                    f"sampler: its step returned a {type(made).__name__}; return the new state and "
                    "what it has sent, (state, Info(unicasts, broadcasts))"
                )
            state, info = made
            recorder.observe(k + 1, state.x, info, read and partial(read, state))
            advance()
    return recorder.trace()


class Labels(NamedTuple):
    """What the random streams of a run are called by.

    Runs that share paper and problem share initial positions, whatever their samplers and
    topologies (common random numbers), what arrives on their networks and how long gradients take
    there; the noise is the run's own.
    """

    paper: str = ""
    problem: str = ""
    experiment: str = ""
    run: str = ""


def sample(
    sampler: Sampler,
    params: Any,
    problem: Problem,
    topology: Topology,
    *,
    law: initial.Law,
    record: Record,
    chains: int,
    iterations: int,
    seed: int,
    labels: Labels,
    span: tuple[int, int] | None = None,
    progress: bool | None = False,
    keep: bool = False,
) -> Trace:
    """Return the trace of a run, or of its chains from ``span[0]`` to before ``span[1]``.

    Chains advance in blocks of ``CHAINS_PER_BLOCK``, each with its own streams, so that a chain is
    the same, number for number, whichever others are sampled with it.

    law: of x^(0).
    span: whole blocks of chains; none: all chains.
    progress: show a bar; None: if the error stream is a terminal.
    keep: whether an interrupt (Ctrl-C) ends the run with what is there, and a line that says so:
    the blocks that are done, or what is recorded of the first.
    """
    sampler.check(problem, topology, params)
    begin, end = span or (0, chains)
    common = streams.generator(seed, "initial", labels.paper, labels.problem)
    x0 = initial.positions(law, problem, (chains, problem.agents, problem.dim), common)
    read = partial(sampler.read, params=params) if isinstance(sampler, ReadOut) else None
    noise = ["noise", labels.paper, labels.experiment, labels.run]
    masks = ["network", labels.paper, labels.problem]
    times = ["clock", labels.paper, labels.problem]
    firsts = range(begin, end, CHAINS_PER_BLOCK)
    each = x0[: min(end - begin, CHAINS_PER_BLOCK)].size
    compiled.expect(len(firsts) * iterations, each)
    advance, done = _bar(progress, len(firsts) * iterations)
    traces: list[Trace] = []
    recorder = None
    try:
        for first in firsts:
            block = x0[first : min(first + CHAINS_PER_BLOCK, end)]
            later = [first][: first > 0]
            rng = streams.generator(seed, *noise, *later)
            own = problem.from_chain(first)
            recorder = Recorder(record, own, block.shape, iterations)
            drawn = [streams.generator(seed, *stream, *later) for stream in (masks, times)]
            network = drawing(topology, *drawn)
            state, step = sampler.init(own, network, params, block, rng)
            check_passage(network, step)
            numbers: Any = Ahead(rng)  # a generator, to samplers
            traces.append(simulate(state, step, iterations, recorder, numbers, advance, read))
    except KeyboardInterrupt:
        if not traces and recorder is not None:
            traces = [recorder.trace()]
        if not keep or not traces or not traces[0].draw.size:
            raise
    finally:
        done()
    trace = join_traces(traces)
    if trace.chains < end - begin or trace.draw[-1] < record.iterations(iterations)[-1]:
        print(
            f"concord: interrupted; here are {trace.chains} of {end - begin} chains, to iteration "
            f"{trace.draw[-1]} of {iterations}",
            file=sys.stderr,
        )
    return trace


def _bar(progress: bool | None, steps: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return what moves a progress bar by one step, and what closes it."""
    if not (sys.stderr.isatty() if progress is None else progress):
        return (lambda: None), (lambda: None)
    from tqdm import tqdm

    bar = tqdm(total=steps, desc="sample", delay=0 if progress else PATIENCE)
    return bar.update, bar.close
