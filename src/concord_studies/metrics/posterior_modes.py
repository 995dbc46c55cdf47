"""How draws divide between the two modes of a posterior of two parameters."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from concord.laws.intervals import mean_interval
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, yields
from concord_studies.metrics._references import check_grid, require_grid


@yields(
    (
        *("modes_share", "modes_share_exact", "modes_visited", "modes_crossings"),
        *("mode_negative_[01]", "mode_positive_[01]"),
    ),
    records=("draws",),
    check_problem=partial(check_grid, "posterior_modes"),
    labels={
        "modes_share": Label(
            "part of the draws in the second mode", "share in the mode with theta_2 < 0"
        ),
        "modes_share_exact": Label(head="its probability"),
        "modes_visited": Label(head="chains that visit both"),
        "modes_crossings": Label(head="crossings per chain"),
        "mode_negative_0": Label(head="theta_1 of the mode with theta_2 < 0"),
        "mode_negative_1": Label(head="its theta_2"),
        "mode_positive_0": Label(head="theta_1 of the other mode"),
        "mode_positive_1": Label(head="its theta_2 (other)"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the share of draws in each mode, and the visits, by the sign of parameter two.

    modes_share: part of an agent's draws beyond burn-in whose second parameter is negative, mean
    over chains with an interval. modes_share_exact: its exact probability.
    modes_visited: part of the chains in which the agent was in both. modes_crossings: mean number
    of changes between two recorded draws of a chain. mode_<sign>_<d>: where the exact density is
    highest on either side.
    """
    exact = require_grid(m.problem, "posterior_modes")
    second = m.trace["x"][..., 1][:, m.late]
    negative = second < 0
    unknown = np.where(np.isfinite(second).all(axis=1), 0.0, np.nan)  # a chain that diverged
    both = negative.any(axis=1) & ~negative.all(axis=1)
    crossings = np.diff(negative, axis=1).sum(axis=1)
    numbers = {
        "modes_share": mean_interval(negative.mean(axis=1) + unknown),
        "modes_visited": (both + unknown).mean(axis=0),
        "modes_crossings": mean_interval(crossings + unknown),
    }
    yield from series([m.last], m.agents, numbers)
    below = exact.centers[1] < 0
    exact_numbers = {"modes_share_exact": float(np.interp(0.0, exact.edges[1], exact.cdf(1)))}
    for sign, side in (("negative", below), ("positive", ~below)):
        density = np.where(side[None, :], exact.density, -1.0)
        for d, cell in enumerate(np.unravel_index(density.argmax(), density.shape)):
            exact_numbers[f"mode_{sign}_{d}"] = float(exact.centers[d][cell])
    yield from series([m.last], "network", exact_numbers, chance=False)
