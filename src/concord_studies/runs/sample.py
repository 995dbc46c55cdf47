"""The draws of a run."""

import numpy as np

from concord.chains import sample_chains
from concord.problem import Problem
from concord.sampling.trace import Trace
from concord_studies.runs.run import Run


def sample(
    run: Run,
    problem: Problem,
    progress: bool | None = False,
) -> Trace:
    """Return the trace of a run.

    Of a run without chains, all of whose metrics are exact, it has what is known beforehand.
    """
    network = run.network_of_agents
    if run.chains:
        return sample_chains(
            run.sampler.params,
            problem,
            network,
            law=run.initial,
            record=run.record,
            chains=run.chains,
            iterations=run.iterations,
            seed=run.seed,
            labels=run.stream_labels,
            progress=progress,
        )
    run.sampler.params.check(problem, network)
    due = run.record.iterations(run.iterations)
    agents = np.array(run.record.agents or range(network.agents))
    axes: dict[str, tuple[str, ...]] = {"diverged_at": ("chain",)}
    if run.record.draws:
        axes["x"] = "chain", "draw", "agent", "dim"
    if run.record.average:
        axes["x_average"] = "chain", "draw", "dim"
    sizes = {"chain": 0, "draw": len(due), "agent": len(agents), "dim": problem.dim}
    empty = {name: (dims, np.empty([sizes[axis] for axis in dims])) for name, dims in axes.items()}
    return Trace(empty, due, agents)
