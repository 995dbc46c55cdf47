"""What metrics read of recorded variables, and a posterior of two modes."""

import numpy as np

from concord import streams
from concord.laws.quadrature import from_log_density
from concord.networks.construction import network
from concord.samplers.d_ula import DULA
from concord.sampling.schedules import Schedule
from concord.sampling.trace import Trace
from measurements import measurement

STEP = Schedule(0.2, b=230.0, c=1.0, exponent=0.55)
FUSION = Schedule(0.48, b=230.0, c=1.0, exponent=0.05)


def measured(variables, draw, problem=None, agents=(0,)):
    """What a metric reads, with a stream of its own for each label."""
    trace = Trace(
        {name: ((), values) for name, values in variables.items()}, draw, np.array(agents)
    )
    return measurement(
        trace,
        problem=problem,
        network=network("ring", 5),
        sampler=DULA(STEP, FUSION),
        stream=lambda label: streams.generator(3, label),
    )


def table(rows):
    return {(k, agent, name): (value, lo, hi) for k, agent, name, value, lo, hi, *_ in rows}


def two_modes(weight=0.25, sd=0.3):
    """A grid of two round modes, at (0, 1) and, with this weight, at (1, -1)."""

    def log_density(a, b):
        first = np.log(1 - weight) - ((a - 0) ** 2 + (b - 1) ** 2) / (2 * sd**2)
        return np.logaddexp(first, np.log(weight) - ((a - 1) ** 2 + (b + 1) ** 2) / (2 * sd**2))

    return from_log_density(log_density, ((-9.0, 9.0), (-9.0, 9.0)), 200)
