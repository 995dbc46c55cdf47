"""What metrics read, made of what a test is about."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from concord import streams
from concord.minibatches import Batches
from concord.networks.construction import network
from concord.sampling.initial import Law
from concord_studies.metrics import Measurement, Row
from variants import problem

NOTHING = dict.fromkeys(("problem", "network", "sampler", "initial"))
RING, DUE = network("ring", 5), np.array([0, 1, 20])


def measurement(trace: Any, **given: Any) -> Measurement:
    """Return the measurement of a trace, of whose run only this is known."""
    if "iterations" not in given:
        given["iterations"] = int(trace.draw[-1])
    usual = {"batches": Batches(), "stream": lambda what: streams.generator(1, what)}
    return Measurement(trace=trace, **NOTHING | usual | given)


def ring_measurement(
    sampler: Any, share: str = "split", initial: Any = None, trace: Any = None
) -> Measurement:
    """Return the measurement of a sampler on a ring of five agents with linear regression."""
    return measurement(
        trace or SimpleNamespace(agent=np.arange(5), draw=DUE),
        problem=problem(5, 2, share, points=20),
        network=RING,
        sampler=sampler,
        initial=initial or Law("normal"),
    )


def values_by_iteration(family: Any, m: Measurement) -> dict[tuple[str, int], float]:
    """Return the values of a family by metric and iteration."""
    return {(row.metric, row.iteration): row.value for row in family.rows(m)}


class Positions(dict):
    """The trace of positions x, (chains, draws, agents, dim)."""

    def __init__(self, x: np.ndarray) -> None:
        super().__init__(x=x, x_average=x.mean(axis=2))
        self.chains, self.draw = len(x), np.arange(x.shape[1])
        self.agent = np.arange(x.shape[2])


def last_rows(family: Any, trace: Any, **given: Any) -> dict[tuple[str, str], Row]:
    """Return the rows of a family by metric and agent, at the last iteration."""
    return {(row.metric, row.agent): row for row in family.rows(measurement(trace, **given))}
