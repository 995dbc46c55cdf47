"""How many sets of points give the mixture of tied means a posterior with two modes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from concord.problems.kinds import tied_mixture
from concord_studies.contracts import Label
from concord_studies.intervals import wilson
from concord_studies.metrics import Measurement, Row, unmet_need, yields

SETS = 200


@yields(
    "two_modes_share",
    labels={
        "two_modes_share": Label(
            "part of such data sets with two modes", "share of such data sets with two modes"
        ),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the share of simulated data sets, ``SETS`` of them, whose posterior has two modes.

    Two modes are what ``modes: two`` asks for: the marginal density of theta_2 falls by a tenth, or
    more, between them. The interval is Wilson's.
    """
    problem: Any = m.problem
    if not isinstance(problem, tied_mixture.TiedMixture):
        raise unmet_need("two_modes", "one data set of tied_mixture")
    params, rng = problem.params, m.stream("two modes")
    whole = [np.arange(params.points)]
    have_two = [
        tied_mixture.mixture(params, tied_mixture.draw_points(params, rng), whole).has_two_modes
        for _ in range(SETS)
    ]
    share = float(np.mean(have_two))
    yield Row(m.iterations, "network", "two_modes_share", share, *wilson(share, SETS), trials=SETS)
