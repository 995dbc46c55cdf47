"""The one loop over iterations, and what it records.

A sampler gives ``init`` and ``step`` (see ``concord.samplers``); ``simulate`` advances all chains
and agents together and hands each iterate to a ``Recorder``, which keeps only what was requested.
``sample`` does so for the chains of a run, block by block.
"""

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
from concord.progress import progress as bar
from concord.sampling import initial, streams
from concord.sampling.leaps import MOST, WORTH, Leaping
from concord.sampling.recorder import Record, Recorder
from concord.sampling.streams import CHAINS_PER_BLOCK
from concord.sampling.trace import Trace, join_traces


def simulate(
    state: Any,
    step: Step,
    iterations: int,
    recorder: Recorder,
    rng: np.random.Generator,
    advance: Callable[..., object] = lambda steps=1: None,
    read: Callable[[Any], np.ndarray] | None = None,
) -> Trace:
    """Run the chain of states and return what the recorder kept.

    ``state.x`` has shape (chains, agents, dim). Step k = 0, 1, ... produces iteration k + 1;
    ``advance`` is called after each, or with the number of those of a leap (``sampling.leaps``);
    ``read`` makes of a state what is recorded in place of its x (``contracts.ReadOut``). A chain
    that diverges is noted, not stopped: the run's result is that it diverged.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        recorder.observe(0, state.x, None, read and partial(read, state))
        leap, k = step.leap if isinstance(step, Leaping) else None, 0
        while k < iterations:
            if leap is not None and (free := recorder.free(k, iterations)) >= WORTH:
                landed = leap(state, k, min(free, MOST), rng)
                recorder.pass_over(k, landed)
                state, k = landed.state, k + landed.steps
                recorder.observe(k, state.x, None, read and partial(read, state))
                advance(landed.steps)
                continue
            made = step(state, k, rng)
            if k == 0 and not (isinstance(made, tuple) and isinstance(made[-1], Info)):
                raise ConcordError(
                    f"sampler: its step returned a {type(made).__name__}; return the new state and "
                    "what it has sent, (state, Info(unicasts, broadcasts))"
                )
            state, info = made
            k += 1
            recorder.observe(k, state.x, info, read and partial(read, state))
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

    def stream(self, what: str) -> tuple[str, ...]:
        """Return the labels of a stream: initial, noise, network (what arrives) or clock."""
        own = (self.experiment, self.run) if what == "noise" else (self.problem,)
        return what, self.paper, *own


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
    strict: bool = False,
) -> Trace:
    """Return the trace of a run, or of its chains from ``span[0]`` to before ``span[1]``.

    Chains advance in blocks of ``CHAINS_PER_BLOCK``, each with its own streams, so that a chain is
    the same, number for number, whichever others are sampled with it.

    law: of x^(0).
    span: whole blocks of chains; none: all chains.
    progress: show a bar; None: if the error stream is a terminal.
    keep: whether an interrupt (Ctrl-C) ends the run with what is there, and a line that says so:
    the blocks that are done, or what is recorded of the first.
    strict: raise ``recorder.Diverged`` as soon as a chain diverges.
    """
    agents = topology.agents
    sampler.check(problem, topology, params)
    traces: list[Trace] = []
    recorder = None
    begin, end = span or (0, chains)
    firsts = range(begin, end, CHAINS_PER_BLOCK)
    each = min(end - begin, CHAINS_PER_BLOCK) * agents * problem.dim
    compiled.expect(len(firsts) * iterations, each)

    shape = chains, agents, problem.dim
    x0 = initial.positions(law, problem, shape, streams.generator(seed, *labels.stream("initial")))
    read = partial(sampler.read, params=params) if isinstance(sampler, ReadOut) else None
    try:
        with bar(len(firsts) * iterations, "sample", progress) as advance:
            for first in firsts:
                block = x0[first : min(first + CHAINS_PER_BLOCK, end)]
                later = [first][: first > 0]
                rng, *drawn = list[Any](
                    streams.generator(seed, *labels.stream(what), *later)
                    for what in ("noise", "network", "clock")
                )
                own, network = problem.from_chain(first), drawing(topology, *drawn)
                recorder = Recorder(record, own, block.shape, iterations, strict)
                state, step = sampler.init(own, network, params, block, rng)
                check_passage(network, step)
                traces.append(simulate(state, step, iterations, recorder, rng, advance, read))
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
