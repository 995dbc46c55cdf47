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
from concord.resume import Checkpoint, keeping, read_back, written
from concord.sampling import initial, streams
from concord.sampling.leaps import MOST, WORTH, Leaping
from concord.sampling.recorder import Record, Recorder
from concord.sampling.streams import CHAINS_PER_BLOCK, Ahead
from concord.sampling.trace import Trace, join_traces


def simulate(
    state: Any,
    step: Step,
    iterations: int,
    recorder: Recorder,
    rng: np.random.Generator,
    advance: Callable[..., object] = lambda steps=1: None,
    read: Callable[[Any], np.ndarray] | None = None,
    first: int = 0,
    save: Callable[[int, Any], object] = lambda k, state: None,
) -> Trace:
    """Run the chain of states and return what the recorder kept.

    ``state.x`` has shape (chains, agents, dim). Step k = 0, 1, ... produces iteration k + 1;
    ``advance`` is called after each, or with the number of those of a leap (``sampling.leaps``);
    ``read`` makes of a state what is recorded in place of its x (``contracts.ReadOut``). A chain
    that diverges is noted, not stopped: the run's result is that it diverged. ``first``: the
    iteration that the state is of, which has been recorded unless it is 0; ``save`` is called with
    each and its state.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if not first:
            recorder.observe(0, state.x, None, read and partial(read, state))
        leap, k = step.leap if isinstance(step, Leaping) else None, first
        while k < iterations:
            if leap is not None and (free := recorder.free(k, iterations)) >= WORTH:
                landed = leap(state, k, min(free, MOST), rng)
                if landed is not None:
                    recorder.pass_over(k, landed)
                    state, k = landed.state, k + landed.steps
                    recorder.observe(k, state.x, None, read and partial(read, state))
                    advance(landed.steps)
                    save(k, state)
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
            save(k, state)
    return recorder.trace()


class _Saves:
    """Writes checkpoints of a run, and continues from the last: block, iteration, all arrays."""

    def __init__(self, checkpoint: Checkpoint | None, iterations: int) -> None:
        self._checkpoint, self._iterations = checkpoint, iterations
        self._found = None if checkpoint is None else checkpoint.found()

    def done(self, agents: np.ndarray, draws: np.ndarray) -> list[Trace]:
        """Return the traces of blocks of chains that were done."""
        traces: dict[str, Trace] = {}
        for key, values in self._of("trace ").items():
            number, name, *dimensions = key.split(" ")
            trace = traces.setdefault(number, Trace({}, draws, agents))
            trace.variables[name] = tuple(dimensions), values
        return list(traces.values())

    def begin(self, block: int, state: Any, kept: list[Any], recorder: Recorder) -> tuple[Any, int]:
        """Return state and iteration where the block was, if it was; others are put back, too."""
        if self._found is None or self._found["at"][0] != block:
            return state, 0
        state = type(state)(**self._of("state "))
        read_back(kept, self._of("kept "))
        recorder.read_back(self._of("recorder "))
        return state, int(self._found["at"][1])

    def _of(self, prefix: str) -> dict[str, np.ndarray]:
        found = self._found or {}
        return {key[len(prefix) :]: found[key] for key in found if key.startswith(prefix)}

    def save(
        self, block: int, ahead: Ahead, kept: list[Any], recorder: Recorder, traces: list[Trace]
    ) -> Callable[[int, Any], object]:
        """Return what writes a checkpoint after an iteration, if it is time."""
        if (checkpoint := self._checkpoint) is None:
            return lambda k, state: None

        def made(state: Any) -> dict[str, np.ndarray]:
            ahead.settle()
            parts = {
                "state": state._asdict(),
                "kept": written(kept),
                "recorder": recorder.written(),
            }
            for number, trace in enumerate(traces):
                for name, (dimensions, values) in trace.variables.items():
                    parts.setdefault("trace", {})[" ".join([str(number), name, *dimensions])] = (
                        values
                    )
            return {f"{part} {key}": v for part, some in parts.items() for key, v in some.items()}

        def save(k: int, state: Any) -> None:
            if k < self._iterations and checkpoint.due(k, self._iterations):
                checkpoint.write((block, k), partial(made, state))

        return save


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
    checkpoint: Checkpoint | None = None,
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
    checkpoint: what writes checkpoints, and may have some.
    strict: raise ``recorder.Diverged`` as soon as a chain diverges.
    """
    agents = topology.agents
    sampler.check(problem, topology, params)
    saves, recorder = _Saves(checkpoint, iterations), None
    recorded = np.arange(agents) if record.agents is None else np.array(record.agents)
    traces = saves.done(recorded, record.iterations(iterations))
    begin, end = span or (0, chains)
    firsts = range(begin, end, CHAINS_PER_BLOCK)
    each = min(end - begin, CHAINS_PER_BLOCK) * agents * problem.dim
    compiled.expect(len(firsts) * iterations, each)

    shape = chains, agents, problem.dim
    x0 = initial.positions(law, problem, shape, streams.generator(seed, *labels.stream("initial")))
    read = partial(sampler.read, params=params) if isinstance(sampler, ReadOut) else None
    try:
        with bar(len(firsts) * iterations, "sample", progress) as advance:
            for first in firsts[len(traces) :]:
                block = x0[first : min(first + CHAINS_PER_BLOCK, end)]
                later = [first][: first > 0]
                rng, *drawn = list[Any](
                    streams.generator(seed, *labels.stream(what), *later)
                    for what in ("noise", "network", "clock")
                )
                ahead, own = Ahead(rng), problem.from_chain(first)
                network = drawing(topology, *drawn)
                recorder = Recorder(record, own, block.shape, iterations, strict)
                with keeping() as kept:
                    kept.append(rng)
                    state, step = sampler.init(own, network, params, block, rng)
                check_passage(network, step)
                state, k = saves.begin(first, state, kept, recorder)
                save = saves.save(first, ahead, kept, recorder, traces)
                traces.append(
                    simulate(state, step, iterations, recorder, ahead, advance, read, k, save)
                )
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
