"""A rectangle of rows * columns agents, each the neighbor of those beside, above and below."""

import math
from typing import Annotated

import numpy as np

from concord.errors import ConcordError
from concord.networks.formula import Formula
from concord.options import Count, Options


class Params(Options):
    """The shape of the grid."""

    rows: Annotated[Count | None, "number of rows; none: the most square grid"] = None


def graph(params: Params, agents: int) -> Formula:
    """Return the edges, or refuse rows that are not equally long."""
    return rectangle(params.rows, agents, periodic=False)


def rectangle(rows: int | None, agents: int, periodic: bool) -> Formula:
    """Return the edges of a grid, numbered row by row; periodic: its ends meet."""
    if rows is None:
        rows = max(r for r in range(1, math.isqrt(agents) + 1) if agents % r == 0)
    if agents % rows:
        raise ConcordError(
            f"rows: {rows} rows do not divide {agents} agents; give a divisor of the number of "
            "agents"
        )
    return Formula(agents, beside, (rows, periodic), alike=periodic)


def beside(agents: int, who: np.ndarray, rows: int, periodic: bool) -> np.ndarray:
    """Return the neighbors of these agents, as a ``Formula`` wants them."""
    columns = agents // rows
    row, column = (part[:, None] for part in np.divmod(who, columns))
    across, along = row + np.array([-1, 1]), column + np.array([-1, 1])
    if periodic:
        across, along = across % rows, along % columns
    else:
        across, along = across.clip(0, rows - 1), along.clip(0, columns - 1)
    return np.hstack([across * columns + column, row * columns + along])
