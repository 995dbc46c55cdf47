"""How draws divide between the two modes of a posterior of two parameters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.contracts import Label
from concord.laws.intervals import mean_interval
from concord.laws.quadrature import Grid
from concord.metrics import Measurement, Row
from concord.metrics._references import grid

METRICS = (
    *("modes_share", "modes_share_exact", "modes_visited", "modes_crossings"),
    *("mode_negative_[01]", "mode_positive_[01]"),
)
RECORDS = ("draws",)
LABELS = {
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
}


def rows(m: Measurement) -> Iterator[Row]:
    """Yield shares and visits of the modes, which the sign of the second parameter tells apart.

    modes_share: part of an agent's draws beyond burn-in whose second parameter is negative, mean
    over chains with an interval. modes_share_exact: its exact probability.
    modes_visited: part of the chains in which the agent was in both. modes_crossings: mean number
    of changes between two recorded draws of a chain. mode_<sign>_<d>: where the exact density is
    highest on either side.
    """
    exact = grid(m.problem, "posterior_modes")
    last = int(m.trace.draw[-1])
    second = m.trace["x"][..., 1][:, m.late]
    negative = second < 0
    unknown = np.where(np.isfinite(second).all(axis=1), 0.0, np.nan)  # a chain that diverged
    mean, lo, hi = mean_interval(negative.mean(axis=1) + unknown)
    both = ((negative.any(axis=1) & ~negative.all(axis=1)) + unknown).mean(axis=0)
    crossings = np.diff(negative, axis=1).sum(axis=1)
    crossed, crossed_lo, crossed_hi = mean_interval(crossings + unknown)
    for column, agent in enumerate(m.agents):
        yield Row(last, agent, "modes_share", mean[column], lo[column], hi[column])
        yield Row(last, agent, "modes_visited", both[column])
        ends = crossed_lo[column], crossed_hi[column]
        yield Row(last, agent, "modes_crossings", crossed[column], *ends)
    below = exact.centers[1] < 0
    share = float(np.interp(0.0, exact.edges[1], exact.cdf(1)))
    yield Row(last, "network", "modes_share_exact", share, chance=False)
    for sign, side in (("negative", below), ("positive", ~below)):
        for d, value in enumerate(_highest(exact, side)):
            yield Row(last, "network", f"mode_{sign}_{d}", value, chance=False)


def _highest(exact: Grid, side: np.ndarray) -> tuple[float, float]:
    density = np.where(side[None, :], exact.density, -1.0)
    first, second = np.unravel_index(density.argmax(), density.shape)
    return float(exact.centers[0][first]), float(exact.centers[1][second])
