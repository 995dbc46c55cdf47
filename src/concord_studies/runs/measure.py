"""A run as the input of its metrics."""

from pathlib import Path

import numpy as np
from msgspec.structs import replace

from concord import streams
from concord.problem import Problem
from concord.sampling.trace import Trace
from concord_studies import metrics
from concord_studies.datasets.tables import Recorded
from concord_studies.runs.run import Run
from concord_studies.selection import lookup


def measurement(
    run: Run, problem: Problem, trace: Trace, resources: Path = Path("resources")
) -> metrics.Measurement:
    """Return a run's trace, problem, network and random streams as the input of its metrics."""

    def stream(what: str) -> np.random.Generator:
        """Return the generator of random numbers with this label for the run."""
        labels = run.paper, run.experiment, run.stream_name
        return streams.generator(run.seed, what, *labels)

    return metrics.Measurement(
        trace=trace,
        problem=problem,
        network=run.network_of_agents,
        sampler=run.sampler.params,
        initial=run.initial,
        iterations=run.iterations,
        stream=stream,
        burn_in=run.record.burn_in,
        recorded=None if run.recorded is None else _fill_conditions(run.recorded, run),
        resources=resources,
    )


def _fill_conditions(recorded: Recorded, run: Run) -> Recorded:
    """Return the conditions on a table's rows, with values of the run where they name its keys.

    recorded: the options of the recorded table.
    """
    values = {column: lookup(run.document, key) for column, key in recorded.like.items()}
    return replace(recorded, where={**recorded.where, **values})
