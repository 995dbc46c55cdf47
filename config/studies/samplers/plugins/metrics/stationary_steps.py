"""The exact stationary distribution of an affine sampler at steps up to the largest stable one."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from concord.stability import with_step
from concord_studies.metrics import Measurement, Row, stable_step, stationary, unmet_need, yields

PERCENT = (1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)


@yields(
    tuple(f"by_step.{name}" for name in ("step_size", *stationary.METRICS)),
    network="perfect",  # it speaks of networks on which nothing is lost
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield by_step.<metric> for the metrics of ``stationary``, at steps other than the run's.

    The column iteration holds the step in percent of the largest stable one, and
    by_step.step_size, of the network, the step itself.
    """
    most = stable_step.largest_stable_value(m)
    if not np.isfinite(most):
        raise unmet_need("stationary_steps", "a sampler that is stable for some steps, not for all")
    last = max(m.iterations - 1, 0)
    for percent in PERCENT:
        step = percent / 100 * most
        sampler = with_step(m.sampler, "step_size", step, last)
        yield Row(percent, "network", "by_step.step_size", step, chance=False)
        for row in stationary.rows(replace(m, sampler=sampler)):
            yield row._replace(iteration=percent, metric=f"by_step.{row.metric}")
