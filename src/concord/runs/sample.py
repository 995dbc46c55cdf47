"""The draws of a run."""

from pathlib import Path
from typing import Any

import numpy as np

from concord.contracts import Problem
from concord.errors import ConcordError
from concord.integrity import Made
from concord.provenance import code
from concord.resume import Checkpoint
from concord.runs.run import Run
from concord.sampling import loop
from concord.sampling.recorder import Recorder
from concord.sampling.streams import CHAINS_PER_BLOCK
from concord.sampling.trace import Trace


def modules(run: Run) -> tuple[str | Path, ...]:
    """Return the modules that sample a run, those that they import apart."""
    return __name__, *run.modules


def made(run: Run, resources: Path, chains: tuple[int, int] | None = None) -> Made:
    """Return what the trace of a run, or of some of its chains, is made from."""
    begin, end = chains or (0, run.chains)
    return {
        "run": run.digest,
        "chains": f"{begin}:{end}",
        "code": code(*modules(run)),
        "data": run.data_digest(resources),
    }


def sample(
    run: Run,
    problem: Problem,
    progress: bool | None = False,
    chains: tuple[int, int] | None = None,
    comm: Any = None,
    checkpoint: Checkpoint | None = None,
) -> Trace:
    """Return the trace of a run, or of its chains from ``chains[0]`` to before ``chains[1]``.

    Of a run without chains, all of whose metrics are exact, it has what is known beforehand.
    ``comm``: of the processes that divide it; ``checkpoint``: as of ``loop.sample``.

    A ConcordError if ``chains`` are not whole blocks of the run.
    """
    if not run.chains:
        return _without_chains(run, problem)
    begin, end = chains or (0, run.chains)
    if (
        not 0 <= begin < end <= run.chains
        or begin % CHAINS_PER_BLOCK
        or (end % CHAINS_PER_BLOCK and end != run.chains)
    ):
        raise ConcordError(
            f"chains {begin}:{end} of {run.chains}: only blocks of {CHAINS_PER_BLOCK} can be "
            f"sampled by themselves; name two multiples of {CHAINS_PER_BLOCK}, or the last chain"
        )
    return loop.sample(
        run.sampler.module,
        run.sampler.params,
        problem,
        run.graph,
        law=run.initial,
        record=run.record,
        chains=run.chains,
        iterations=run.iterations,
        seed=run.seed,
        labels=run.stream_labels,
        span=(begin, end),
        progress=progress,
        comm=comm,
        checkpoint=checkpoint,
        counter=run.noise is not None,
    )


def _without_chains(run: Run, problem: Problem) -> Trace:
    run.sampler.module.check(problem, run.graph, run.sampler.params)
    nothing = np.empty((0, problem.agents, problem.dim))
    recorder = Recorder(run.record, problem, nothing.shape, run.iterations)
    for k in recorder.due:
        recorder.observe(k, nothing, None)
    return recorder.trace()
