"""W1 between the draws of each parameter and its exact marginal posterior.

bhar2023 compares posteriors by a distance of empirical distribution functions, which is
one-dimensional; this is that distance for each parameter, from all recorded draws beyond burn-in.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from concord.laws.intervals import REPLICATES, mean_interval
from concord.laws.quadrature import Grid
from concord_studies.contracts import Label
from concord_studies.intervals import excess_interval, mean_over_chains
from concord_studies.metrics import Measurement, Row, series, yields
from concord_studies.metrics._references import check_grid, require_grid
from concord_studies.transport import marginal_w1

WINDOWS = 24
FLOORS = 50


@yields(
    (
        *("w1_marginal", "w1_marginal_[01]", "w1_marginal_floor", "w1_marginal_window"),
        *("w1_marginal_min", "w1_marginal_max", "w1_marginal_spread", "w1_marginal_pooled"),
    ),
    records=("draws",),
    check_problem=partial(check_grid, "w1_marginal"),
    labels={
        "w1_marginal_spread": Label(
            "difference of the agents' marginal W1 distances, over their mean",
            "agents' spread of W1",
        ),
        "w1_marginal": Label("W1 distance of the marginals"),
        "w1_marginal_pooled": Label(head="W1 of the marginals, all chains"),
        "w1_marginal_floor": Label(head="floor of W1 of the marginals"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield W1 of marginals at the last iteration per agent, and of the network over time.

    w1_marginal_<d>: of parameter d, w1_marginal: mean over parameters; both of the draws of one
    chain, mean over chains with an interval, and w1_marginal_min and _max the extremes.
    w1_marginal_spread: largest minus smallest over a chain's agents, as a part of their mean.
    w1_marginal_pooled: of the draws of all chains together, with a bootstrap interval over chains.
    w1_marginal_floor: what as many independent exact draws as one chain records show.
    w1_marginal_window: of the draws recorded in (k/2, k], mean over agents, parameters and chains.
    """
    exact = require_grid(m.problem, "w1_marginal")
    x = m.trace["x"].transpose(3, 0, 2, 1)  # (dim, chain, agent, draw)
    rows = m.late
    late = x[..., rows]
    each = np.stack([marginal_w1(late[d], exact, d) for d in range(2)])
    values = each.mean(axis=0)
    for name, distances in (("_0", each[0]), ("_1", each[1]), ("", values)):
        numbers = {f"w1_marginal{name}": mean_interval(distances)}
        yield from series([m.last], m.agents, numbers)
    extremes = {"w1_marginal_min": values.min(axis=0), "w1_marginal_max": values.max(axis=0)}
    yield from series([m.last], m.agents, extremes)
    with np.errstate(invalid="ignore"):  # of a chain that diverged nothing is left to compare
        spread = mean_interval(np.ptp(values, axis=1) / values.mean(axis=1))
    yield from series([m.last], "network", {"w1_marginal_spread": spread})
    yield from _pooled_rows(m, late, exact)
    yield Row(
        m.last,
        "network",
        "w1_marginal_floor",
        *_distance_of_exact_draws(m, exact, len(rows)),
        trials=FLOORS,
    )
    yield from _window_rows(m, x, exact)


def _pooled_rows(m: Measurement, late: np.ndarray, exact: Grid) -> Iterator[Row]:
    """Yield W1 of each agent's draws of all chains together, with a bootstrap interval."""
    # A bootstrap over chains of quantile differences: quantiles of a mixture have no shortcut, so
    # resampled distances use 200 draws of every chain; what that changes is taken back.
    chains, draws = late.shape[1], late.shape[3]
    some = late[..., :: max(1, draws // 200)]
    chosen = m.stream("pooled").integers(0, chains, size=(REPLICATES, chains))
    for column, agent in enumerate(m.agents):
        value, fewer = (_pooled_distance(draws[:, :, column], exact) for draws in (late, some))
        ends: tuple[float | None, float | None] = None, None
        if chains > 1:
            resampled = np.array(
                [_pooled_distance(some[:, pick, column], exact) for pick in chosen]
            )
            ends = excess_interval(value, resampled + (value - fewer if value < np.inf else 0))
        yield Row(m.last, agent, "w1_marginal_pooled", value, *ends)


def _pooled_distance(draws: np.ndarray, exact: Grid) -> float:
    """Return the mean over parameters of W1 between pooled draws (dim, ...) and the exact law."""
    return float(np.mean([marginal_w1(each.ravel(), exact, d) for d, each in enumerate(draws)]))


def _distance_of_exact_draws(
    m: Measurement, exact: Grid, count: int
) -> tuple[float, float | None, float | None]:
    """Return the mean W1 of ``count`` exact draws from the posterior, and its interval."""
    sets = exact.sample(FLOORS * count, m.stream("marginal floor")).reshape(FLOORS, count, 2)
    distances = np.mean([marginal_w1(sets[..., d], exact, d) for d in range(2)], axis=0)
    return mean_over_chains(distances)


def _window_rows(m: Measurement, x: np.ndarray, exact: Grid) -> Iterator[Row]:
    """Yield the network's mean W1 of the draws between iterations k/2 and k, for several k.

    exact: the posterior.
    """
    draw = m.trace.draw
    spaced = np.geomspace(max(draw[-1] / 100, draw[min(10, len(draw) - 1)], 1), draw[-1], WINDOWS)
    ends = np.unique(np.searchsorted(draw, spaced - 1e-6).clip(max=len(draw) - 1))
    for end in ends:
        inside = np.flatnonzero((draw > draw[end] / 2) & (draw <= draw[end]))
        values = np.mean([marginal_w1(x[d][..., inside], exact, d) for d in range(2)], axis=0).mean(
            axis=1
        )
        numbers = {"w1_marginal_window": mean_interval(values)}
        yield from series([int(draw[end])], "network", numbers)
