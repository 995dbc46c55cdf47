"""Sampling of a run's chains, in blocks that each have their own random streams."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

from concord import streams
from concord.loop import Callback, run
from concord.minibatches import batches_of
from concord.networks.network import Network
from concord.problem import CountedProblem, Problem, local_of
from concord.progress import progress as bar
from concord.record import Record, Recorder
from concord.sampler import Algorithm, ChainState
from concord.sampling import initial
from concord.sampling.trace import Trace, join_traces
from concord.streams import CHAINS_PER_BLOCK


class _Bar:
    """A callback of the loop that advances a progress bar to the iteration it is called with."""

    def __init__(self, advance: Callable[..., object]) -> None:
        self._advance, self._k = advance, 0

    def __call__(self, k: int, state: ChainState) -> None:
        """Advance the bar to iteration k."""
        self._advance(k - self._k)
        self._k = k


class Labels(NamedTuple):
    """The names from which a run's random streams are seeded.

    Runs that share paper and problem share initial positions, whatever their samplers and
    topologies (common random numbers); they also share what arrives on their networks, and how long
    gradients take there. Only the noise differs between experiments and runs.
    """

    paper: str = ""
    problem: str = ""
    experiment: str = ""
    run: str = ""

    def stream(self, what: str) -> tuple[str, ...]:
        """Return the labels of the random stream of a purpose.

        what: "initial" (positions), "noise" (of the sampler), "network" (which vectors arrive) or
        "clock" (how long gradients take).
        """
        scope = (self.experiment, self.run) if what == "noise" else (self.problem,)
        return what, self.paper, *scope


def sample_chains(
    sampler: Algorithm,
    problem: Problem,
    network: Network,
    *,
    law: initial.Law,
    record: Record,
    chains: int,
    iterations: int,
    seed: int,
    labels: Labels,
    progress: bool | None = False,
    keep: bool = False,
    strict: bool = False,
    compiled: bool = True,
) -> Trace:
    """Sample the chains of a run.

    Chains advance in blocks of ``CHAINS_PER_BLOCK``, each with its own streams, so that a chain is
    the same, number for number, whichever others are sampled with it. Returns the trace of what
    ``record`` asks for.

    law: law of the initial positions x^(0).
    progress: whether to show a progress bar; None: if the error stream is a terminal.
    keep: whether an interrupt (Ctrl-C) returns the trace of the blocks that are done, or of the
    first block so far, and prints a line that says so; otherwise it is raised.
    strict: raise ``record.ChainDivergence`` as soon as a chain diverges.
    compiled: whether a long run may take compiled steps (``concord.fast``); the trace's attribute
    ``steps`` says whether it did.
    """
    shape = chains, network.agents, problem.dim
    steps = None
    if compiled:
        from concord.fast import compile_steps  # the core's only import of what may need numba

        steps = compile_steps(sampler, iterations, shape)
    start = streams.generator(seed, *labels.stream("initial"))
    x0 = initial.positions(law, problem, shape, start)
    firsts = range(0, chains, CHAINS_PER_BLOCK)
    traces: list[Trace] = []
    recorder: Recorder | None = None
    try:
        with bar(len(firsts) * iterations, "sample", progress) as advance:
            for first in firsts:
                block = x0[first : first + CHAINS_PER_BLOCK]
                later = [first][: first > 0]
                noise, arrivals, times = (
                    streams.generator(seed, *labels.stream(what), *later)
                    for what in ("noise", "network", "clock")
                )
                noise = noise if steps is None else steps.speed_up(noise)
                block_problem = problem.from_chain(first)
                if (batches := batches_of(sampler)) is not None:
                    from concord.batch_gradients import MiniBatches  # of such runs alone

                    block_problem = MiniBatches(block_problem, batches, len(block), noise)
                sampler.check(block_problem, network)
                counted = CountedProblem(block_problem, len(block))
                running = network.start(block, arrivals, times, local_of(problem))
                recorder = Recorder(
                    record, sampler, counted, running, block.shape, iterations, strict
                )
                callbacks: list[Callback] = [recorder, _Bar(advance)]
                due = recorder.next_due
                run(sampler, counted, running, block, iterations, noise, callbacks, due, steps)
                traces.append(recorder.trace())
    except KeyboardInterrupt:
        if not traces and recorder is not None:
            traces = [recorder.trace()]
        if not keep or not traces or not traces[0].draw.size:
            raise
    trace = join_traces(traces)
    trace.attributes["steps"] = "compiled" if steps and steps.used else "plain"
    if trace.chains < chains or trace.draw[-1] < record.iterations(iterations)[-1]:
        print(
            f"concord: interrupted; here are {trace.chains} of {chains} chains, to iteration "
            f"{trace.draw[-1]} of {iterations}",
            file=sys.stderr,
        )
    return trace
