"""A run whose agents are processes, each with its own clock: what the simulation is held against.

Gradients take as long as ``compute`` says, in seconds of this machine: what a step takes to compute
counts, and the process sleeps for the rest. An iteration of the trace is a step with a barrier, and
a tick of the clock without one, of which the middle is recorded.
"""

import multiprocessing
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from multiprocessing.connection import Connection, wait
from pathlib import Path
from socket import socket
from types import SimpleNamespace
from typing import Any

import numpy as np

from concord.contracts import Divisible, Info, Problem, ReadOut
from concord.errors import ConcordError, tell
from concord.io import whole
from concord.networks.clock import Clock
from concord.networks.conditions import Bernoulli, Conditions
from concord.networks.edges import Edges
from concord.networks.loopback import Loopback, sockets
from concord.networks.shares import Share
from concord.networks.topology import Topology
from concord.runs.run import Run, read
from concord.sampling import initial, streams
from concord.sampling.loop import check_ranks
from concord.sampling.recorder import Recorder
from concord.sampling.streams import CHAINS_PER_BLOCK
from concord.sampling.trace import Trace, write_trace

MOST = 64  # processes

# What an agent tells before its positions: seconds and those waited, then what is counted.
TOLD = 2 + 4

Pipes = Sequence[tuple[Connection, Connection]]
Processes = dict[Connection, tuple[int, Any]]  # of agents, by what they are heard through


def agents(run_path: Path, output: Path, resources: Path) -> None:
    """Run a run.yaml with a process for each agent, and write the trace of all.

    An agent that is killed stays where it was. Nothing seals the trace: no other has its numbers.
    """
    run = read(run_path)
    trace = lived(run, run.build_problem(resources).from_chain(0))
    trace.attributes = {"run": run.text}
    with whole(output) as path:
        write_trace(trace, path)


def lived(run: Run, problem: Problem) -> Trace:
    """Return the trace of a run with a process for each agent.

    A ConcordError if processes cannot do what the run says.
    """
    network = run.graph
    _check(run, network, problem)
    shape = run.chains, run.agents, problem.dim
    start = streams.generator(run.seed, *run.stream_labels.stream("initial"))
    x = initial.positions(run.initial, problem, shape, start)
    recorder = Recorder(run.record, problem, shape, run.iterations)
    own, fork = sockets(run.agents), multiprocessing.get_context("fork")
    pipes = [fork.Pipe() for _ in own]
    processes = [
        fork.Process(target=_process, args=(pipes, own, agent, run, problem, x), daemon=True)
        for agent in range(run.agents)
    ]
    try:
        for process in processes:
            process.start()
        for one, (_, there) in zip(own, pipes, strict=True):
            one.close()
            there.close()
        alive = {
            here: (agent, process)
            for agent, ((here, _), process) in enumerate(zip(pipes, processes, strict=True))
        }
        for agent, said in _said(alive):
            if said != b"":
                raise ConcordError(
                    (said or b"agents: agent %d was killed before it began" % agent).decode()
                )
        numbers = ", ".join(str(process.pid) for process in processes)
        print(f"concord: agents 0 to {run.agents - 1} are processes {numbers}", file=sys.stderr)
        begin = np.float64(time.monotonic() + 0.1).tobytes()
        for pipe in alive:
            with suppress(BrokenPipeError):  # it was killed
                pipe.send_bytes(begin)
        _record(recorder, x, alive, network.conditions.barrier)
    finally:
        for process in processes:
            if process.pid is not None:
                process.kill()
                process.join()
    return recorder.trace()


def _check(run: Run, network: Topology, problem: Problem) -> None:
    """Refuse what processes do not do."""
    check_ranks(run.sampler.module, run.agents, run.agents, "agents")
    run.sampler.module.check(problem, network, run.sampler.params)
    asked = network.conditions
    kept = {key: getattr(asked, key) for key in ("loss", "on_loss", "compute", "link", "barrier")}
    told = asked == Conditions(**kept) and asked.compute is not None
    if (loss := asked.loss) is not None:
        told &= isinstance(loss, Bernoulli) and loss.direction == "one_way"
        told &= asked.on_loss == "reuse_last"
    if not told or network.directed or network.messages is not None or run.noise is not None:
        raise ConcordError(
            f"{run.where}: agents that are processes need an undirected graph and a network with "
            "compute, and else know link, barrier and loss (bernoulli, one_way, on_loss: "
            "reuse_last); leave out the rest"
        )
    if run.agents > MOST or not 0 < run.chains <= CHAINS_PER_BLOCK:
        raise ConcordError(
            f"{run.where}: {run.agents} agents and {run.chains} chains; processes of one machine "
            f"are at most {MOST}, with 1 to {CHAINS_PER_BLOCK} chains"
        )
    if not isinstance(problem, Divisible):
        raise ConcordError(
            f"{run.where}: {type(problem).__name__} cannot be divided among processes"
        )


def _said(alive: Processes) -> Iterator[tuple[int, bytes | None]]:
    """Yield what each agent says next, as it comes; None: it was killed, and is not alive.

    A ConcordError if one failed.
    """
    waiting = dict(alive)
    while waiting:
        for pipe in wait(list(waiting)):
            assert isinstance(pipe, Connection)
            agent, process = waiting.pop(pipe)
            try:
                yield agent, pipe.recv_bytes()
            except (EOFError, ConnectionResetError):
                process.join()
                if process.exitcode >= 0:
                    raise ConcordError("agents: one of them failed, as is said above") from None
                del alive[pipe]
                yield agent, None


def _record(recorder: Recorder, x: np.ndarray, alive: Processes, barrier: bool) -> None:
    """Record what agents tell, iteration by iteration; who was killed stays where it was."""
    known = np.zeros((TOLD, x.shape[1]))
    for k in recorder.due.tolist():
        before = known[2:].copy()
        for agent, said in _said(alive):
            if said is not None:
                numbers = np.frombuffer(said)
                known[:, agent] = numbers[:TOLD]
                x[:, agent] = numbers[TOLD:].reshape(x[:, agent].shape)
            elif barrier:
                raise ConcordError(
                    f"agents: agent {agent} was killed, and its neighbors wait for it; say "
                    "barrier: false if they should go on"
                )
            else:
                print(f"concord: agent {agent} was killed, the others go on", file=sys.stderr)
        seconds, waited = (np.broadcast_to(each, x.shape[:2]) for each in known[:2])
        clock: Any = SimpleNamespace(seconds=seconds, waited=waited)
        unicasts, broadcasts, *taken = (known[2:] - before).astype(np.int64)
        steps, gradients = (np.broadcast_to(each, x.shape[:2]) for each in taken)
        recorder.observe(k, x, Info(unicasts, broadcasts, steps, gradients, clock) if k else None)


def _process(pipes: Pipes, own: Sequence[socket], agent: int, *rest: Any) -> None:
    """Be an agent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends all
    for other, (here, there) in enumerate(pipes):
        here.close()
        if other != agent:
            there.close()
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            _live(pipes[agent][1], own, agent, *rest)
    except BrokenPipeError:
        sys.exit(1)  # the first process has ended
    except ConcordError as error:
        sys.exit(tell(str(error), 2))


def _live(
    pipe: Connection,
    own: Sequence[socket],
    agent: int,
    run: Run,
    problem: Any,
    x: np.ndarray,
) -> None:
    """Step until all that is recorded has been told."""
    labels, network = run.stream_labels, run.graph
    params, module = run.sampler.params, run.sampler.module
    barrier = network.conditions.barrier
    lost = streams.generator(run.seed, *labels.stream("network"), "agent", agent)
    part = Loopback(network, agent, own, lost)
    times = streams.generator(run.seed, *labels.stream("clock"))
    clock = Clock(replace(network, times=times), Edges(network), run.chains, 0.0)  # of computing
    rng: Any = Share(streams.generator(run.seed, *labels.stream("noise")), run.agents, part.own)
    perfect = replace(network, conditions=Conditions(), part=part)
    x0 = np.ascontiguousarray(x[:, part.own])
    try:
        state, step = module.init(problem.part(part.own), perfect, params, x0, rng)
    except ConcordError as error:
        pipe.send_bytes(str(error).encode())
        return
    due = deque(run.record.iterations(run.iterations))

    def told(*counts: float) -> bytes:
        seen = module.read(state, params=params) if isinstance(module, ReadOut) else state.x
        return np.concatenate([counts, seen.ravel()]).tobytes()

    def tell_all(passed: float, what: bytes) -> None:
        while due and due[0] <= passed:
            due.popleft()
            pipe.send_bytes(what)

    pipe.send_bytes(b"")
    begun = end = float(np.frombuffer(pipe.recv_bytes())[0])
    last, gradients, taken = told(*[0.0] * TOLD), 0.0, 1.0
    tell_all(0, last)
    _sleep(begun)
    for k in count():
        if not due:
            return
        part.begin()
        state, info = step(state, k, rng)
        more = 1.0 if info.gradients is None else float(np.ravel(info.gradients)[0])
        busy = float(clock.draw()[agent, 0]) * clock.tick * (more if barrier else taken)
        end = busy + (part.heard if barrier else max(end, part.heard - busy))  # what is late: once
        taken, gradients = more, gradients + more
        _sleep(end)
        now = time.monotonic() - begun
        sent = part.unicasts, part.broadcasts
        new = told(now, part.waited, *sent, k + 1, gradients)
        tell_all(*((k + 1, new) if barrier else (now / clock.tick - 0.5, last)))
        last = new


def _sleep(until: float) -> None:
    time.sleep(max(until - time.monotonic(), 0.0))
