"""What metrics read, made of what a test is about."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from concord import streams
from concord.laws.quadrature import Grid, from_log_density
from concord.networks.construction import network
from concord.samplers.d_ula import DULA
from concord.sampling.initial import Law
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace
from concord_studies.metrics import Measurement, Row
from variants import problem

NOTHING = dict.fromkeys(("problem", "network", "sampler", "initial"))
RING, DUE = network("ring", 5), np.array([0, 1, 20])
STEP = Schedule(0.2, b=230.0, c=1.0, exponent=0.55)
FUSION = Schedule(0.48, b=230.0, c=1.0, exponent=0.05)


def measurement(trace: Any, **parts: Any) -> Measurement:
    """Return the measurement of a trace, of whose run only these parts are stated."""
    if "iterations" not in parts:
        parts["iterations"] = int(trace.draw[-1])
    usual = {"stream": lambda what: streams.generator(1, what)}
    return Measurement(trace=trace, **NOTHING | usual | parts)


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


def law_measurement(
    sampler: Any, net: Any = RING, prob: Any = None, iterations: int = 10, **parts: Any
) -> Measurement:
    """Return the measurement of a run of which nothing but the law is looked at."""
    usual = {"problem": prob or problem(net.agents, 2, points=50), "initial": Law("normal")}
    run = {"network": net, "sampler": sampler, "iterations": iterations}
    return measurement(SimpleNamespace(agent=np.arange(net.agents)), **usual | run | parts)


def array_measurement(
    variables: dict[str, Any], draw: Any, problem: Any = None, agents: Any = (0,)
) -> Measurement:
    """Return the measurement of recorded arrays of D-ULA on a ring."""
    arrays = {name: ((), values) for name, values in variables.items()}
    trace = Trace(arrays, draw, np.array(agents))
    return measurement(
        trace,
        problem=problem,
        network=RING,
        sampler=DULA(STEP, FUSION),
        stream=lambda label: streams.generator(3, label),
    )


def values_by_iteration(family: Any, m: Measurement) -> dict[tuple[str, int], float]:
    """Return the values of a family by metric and iteration."""
    return {(row.metric, row.iteration): row.value for row in family.rows(m)}


def intervals(rows: Any) -> dict[tuple[int, str, str], tuple[Any, ...]]:
    """Return value and ends of rows by iteration, agent and metric."""
    return {tuple(row[:3]): tuple(row[3:6]) for row in rows}


class Positions(dict):
    """The trace of positions x, (chains, draws, agents, dim)."""

    def __init__(self, x: np.ndarray) -> None:
        super().__init__(x=x, x_average=x.mean(axis=2))
        self.chains, self.draw = len(x), np.arange(x.shape[1])
        self.agent = np.arange(x.shape[2])

    def require_positions(self) -> None:
        """Accept all: there are positions."""


def last_rows(family: Any, trace: Any, **parts: Any) -> dict[tuple[str, str], Row]:
    """Return the rows of a family by metric and agent, at the last iteration."""
    return {(row.metric, row.agent): row for row in family.rows(measurement(trace, **parts))}


def two_modes(weight: float = 0.25, sd: float = 0.3) -> Grid:
    """Return a grid of two round modes, at (0, 1) and, with this weight, at (1, -1)."""

    def log_density(a: Any, b: Any) -> Any:
        first = np.log(1 - weight) - ((a - 0) ** 2 + (b - 1) ** 2) / (2 * sd**2)
        return np.logaddexp(first, np.log(weight) - ((a - 1) ** 2 + (b + 1) ** 2) / (2 * sd**2))

    return from_log_density(log_density, ((-9.0, 9.0), (-9.0, 9.0)), 200)
