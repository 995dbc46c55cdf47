"""How much farther apart agents are where links fail."""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import mean_interval
from concord.laws.read_off import StepReader
from concord.networks.network import Network
from concord.problem import Quadratic
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields


@yields(
    "failure_cost",
    records=("consensus_error",),
    labels={"failure_cost": Label("consensus error over that without failures")},
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield failure_cost, the consensus error over what it settles at where no link fails.

    The error is the mean over the second half of the iterations, over chains with an interval; that
    without failures is exact.
    """
    agents, dim = m.problem.agents, m.problem.dim
    if not isinstance(m.problem, Quadratic):
        raise unmet_need("link_failure", "a Gaussian problem")
    plain = StepReader(m.sampler, m.problem, Network(m.network.graph)).read_step(0).choices
    limit = plain.stationary()
    if limit is None:
        raise unmet_need("link_failure", "steps for which the second moments settle")
    center = np.kron(np.eye(agents) - 1 / agents, np.eye(dim))
    positions = slice(0, agents * dim)  # with which the state begins
    mean, cov = limit[0][positions], limit[1][positions, positions]
    apart = ((center @ cov * center).sum() + ((center @ mean) ** 2).sum()) / agents
    late = m.trace["consensus_error"][:, m.trace.draw > m.last / 2].mean(axis=1)
    yield from series([m.last], "network", {"failure_cost": mean_interval(late / apart)})
