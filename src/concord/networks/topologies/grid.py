"""A rectangle of rows * columns agents, each the neighbor of those beside, above and below."""

import math
from typing import Annotated

import numpy as np

from concord.errors import ConcordError
from concord.networks.topology import list_edges
from concord.options import Count, Options


class Params(Options):
    """The shape of the grid."""

    rows: Annotated[Count | None, "number of rows; none: the most square grid"] = None


def graph(params: Params, agents: int) -> np.ndarray:
    """Return the edges of a grid, or refuse rows that are not equally long."""
    return rectangle(params.rows, agents, periodic=False)


def rectangle(rows: int | None, agents: int, periodic: bool) -> np.ndarray:
    """Return the edges of a grid, numbered row by row; periodic: its ends meet."""
    if rows is None:
        rows = max(r for r in range(1, math.isqrt(agents) + 1) if agents % r == 0)
    if agents % rows:
        raise ConcordError(
            f"rows: {rows} rows do not divide {agents} agents; give a divisor of the number of "
            "agents"
        )
    columns = agents // rows
    row, column = np.divmod(np.arange(agents), columns)
    if periodic:
        below, right = (row + 1) % rows, (column + 1) % columns
    else:
        below, right = np.minimum(row + 1, rows - 1), np.minimum(column + 1, columns - 1)
    return list_edges(np.column_stack([below * columns + column, row * columns + right]))
