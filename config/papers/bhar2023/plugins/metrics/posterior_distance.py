"""Exact W1 and W2 between thinned draws of each agent and as many exact posterior draws."""

from collections.abc import Iterator

import numpy as np

from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label
from concord_studies.intervals import mean_over_chains
from concord_studies.metrics import Measurement, Row, series, yields
from concord_studies.metrics._references import require_posterior
from concord_studies.transport import costs, distances, thin

DRAWS = 500
ORDERS = (1, 2)
FLOORS = 10


@yields(
    ("posterior_w[12]", "posterior_w[12]_floor"),
    records=("draws",),
    labels={
        "posterior_w1_floor": Label(head="floor of W1, two dimensions"),
        "posterior_w2_floor": Label(head="floor of W2, two dimensions"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield posterior_w1 and posterior_w2 per agent, and their floors.

    A chain's draws beyond burn-in, evenly thinned to at most 500, against as many exact ones,
    which all agents of the chain share: mean over chains with an interval. The floor is the
    same distance between two independent exact samples. More draws would cost more than they tell:
    the time grows as their number to the power 2.4, while intervals are those of the chains.
    """
    target = require_posterior(m.problem, "posterior_distance")
    chosen = thin(m.late, DRAWS)
    x = m.trace["x"][:, chosen]
    chains, count, agents, _ = x.shape
    rng = m.stream("reference")
    values = np.empty((len(ORDERS), chains, agents))
    for chain in range(chains):
        exact = target.sample(count, rng)
        for column in range(agents):
            values[:, chain, column] = distances(costs(x[chain, :, column], exact), ORDERS)
    pairs = target.sample(FLOORS * 2 * count, rng).reshape(FLOORS, 2, count, -1)
    floors = np.array([distances(costs(a, b), ORDERS) for a, b in pairs])
    for place, order in enumerate(ORDERS):
        numbers = {f"posterior_w{order}": mean_interval(values[place])}
        yield from series([m.last], m.agents, numbers)
        floor = mean_over_chains(floors[:, place])
        yield Row(m.last, "network", f"posterior_w{order}_floor", *floor, trials=FLOORS)
