"""Short runs on which metrics, figures and tables of one's own are tried."""

from functools import partial
from typing import Any

import pandas

from concord import streams
from concord.chains import Labels, sample_chains
from concord.networks.network import Network
from concord.networks.topology import build_graph
from concord.record import Record
from concord.samplers.de_sgld import DESGLD
from concord.sampling.initial import Law
from concord.sampling.schedules import Schedule
from concord_arena.testing.variants import regression
from concord_studies.metrics import Measurement, Row, measure
from concord_studies.results import Measured


def sample_run(problem: Any = None, seed: int = 1) -> Measurement:
    """Sample four chains of six steps of DE-SGLD on a ring of five agents, to be measured.

    problem: of five agents; none: linear regression in two dimensions. seed: of the chains.
    """
    problem = regression(5, 2) if problem is None else problem
    network, start = Network(build_graph("ring", 5), None), Law("normal")
    sampler, stream = DESGLD(Schedule(0.01)), partial(streams.generator, 1)
    about: Any = {"law": start, "record": Record(), "seed": seed, "labels": Labels()}
    trace = sample_chains(sampler, problem, network, chains=4, iterations=6, **about)
    return Measurement(trace, problem, network, sampler, start, 6, stream)


def measure_run(*families: str, seed: int = 1, **labels: str) -> Measured:
    """Measure the run of ``sample_run`` by families of metrics, as figures and tables read it.

    labels: by which a figure tells it from other runs, such as ``sampler="mine"``.
    """
    run = sample_run(seed=seed)
    table = pandas.DataFrame(measure(families, run), columns=list(Row._fields))
    name = "+".join(f"{label}={value}" for label, value in labels.items())
    document = {"experiment": "short", "run": name, "labels": labels, "agents": 5}
    document |= {"chains": run.trace.chains, "iterations": run.iterations}
    numbers = {"value": float, "lo": float, "hi": float}
    return Measured(document, table.drop(columns="chance").astype(numbers))
