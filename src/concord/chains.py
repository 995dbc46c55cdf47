"""Chains: a run's chains are sampled in blocks, each with random streams of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from concord.loop import run
from concord.minibatches import Batches, MiniBatches
from concord.networks.network import Network
from concord.problem import CountedProblem
from concord.progress import progress as bar
from concord.record import Record, Recorder
from concord.sampling import initial, streams
from concord.sampling.streams import CHAINS_PER_BLOCK
from concord.sampling.trace import Trace, join_traces


class _Bar:
    """Moves a bar of progress on to the iteration that it is called with."""

    def __init__(self, advance: Callable[..., object]) -> None:
        self._advance, self._k = advance, 0

    def __call__(self, k: int, state: Any) -> None:
        self._advance(k - self._k)
        self._k = k


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

    def stream(self, what: str) -> tuple[str, ...]:
        """Return the labels of a stream: initial, noise, network (what arrives) or clock."""
        own = (self.experiment, self.run) if what == "noise" else (self.problem,)
        return what, self.paper, *own


def sample_chains(
    sampler: Any,
    problem: Any,
    network: Network,
    *,
    batches: Batches | None = None,
    law: initial.Law,
    record: Record,
    chains: int,
    iterations: int,
    seed: int,
    labels: Labels,
    span: tuple[int, int] | None = None,
    progress: bool | None = False,
    keep: bool = False,
    strict: bool = False,
) -> Trace:
    """Return the trace of a run, or of its chains from ``span[0]`` to before ``span[1]``.

    Chains advance in blocks of ``CHAINS_PER_BLOCK``, each with its own streams, so that a chain is
    the same, number for number, whichever others are sampled with it.

    batches: of mini-batch gradients; None: full gradients.
    law: of x^(0).
    span: whole blocks of chains; None: all chains.
    progress: show a bar; None: if the error stream is a terminal.
    keep: whether an interrupt (Ctrl-C) ends the run with what is there, and a line that says so:
    the blocks that are done, or what is recorded of the first.
    strict: raise ``record.Diverged`` as soon as a chain diverges.
    """
    begin, end = span or (0, chains)
    shape = chains, network.agents, problem.dim
    start = streams.generator(seed, *labels.stream("initial"))
    x0 = initial.positions(law, problem, shape, start)
    firsts = range(begin, end, CHAINS_PER_BLOCK)
    traces: list[Trace] = []
    recorder: Recorder | None = None
    try:
        with bar(len(firsts) * iterations, "sample", progress) as advance:
            for first in firsts:
                block = x0[first : min(first + CHAINS_PER_BLOCK, end)]
                later = [first][: first > 0]
                noise, arrivals, times = (
                    streams.generator(seed, *labels.stream(what), *later)
                    for what in ("noise", "network", "clock")
                )
                own = problem.from_chain(first)
                if batches is not None and batches.batch_size is not None:
                    own = MiniBatches(own, batches, len(block), noise)
                sampler.check(own, network)
                counted = CountedProblem(own, len(block))
                running = network.start(block, arrivals, times)
                recorder = Recorder(
                    record, sampler, counted, running, block.shape, iterations, strict
                )
                callbacks: list[Any] = [recorder, _Bar(advance)]
                due = recorder.next_due
                run(sampler, counted, running, block, iterations, noise, callbacks, due)
                traces.append(recorder.trace())
    except KeyboardInterrupt:
        if not traces and recorder is not None:
            traces = [recorder.trace()]
        if not keep or not traces or not traces[0].draw.size:
            raise
    trace = join_traces(traces)
    if trace.chains < end - begin or trace.draw[-1] < record.iterations(iterations)[-1]:
        print(
            f"concord: interrupted; here are {trace.chains} of {end - begin} chains, to iteration "
            f"{trace.draw[-1]} of {iterations}",
            file=sys.stderr,
        )
    return trace
