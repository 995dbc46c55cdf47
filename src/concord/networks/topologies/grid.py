"""A rectangle of rows * columns agents, each the neighbor of those beside, above and below."""

import math
from typing import Annotated

from concord.errors import ConcordError
from concord.options import Count, Options


class Params(Options):
    """The shape of the grid."""

    rows: Annotated[Count | None, "number of rows; none: the most square grid"] = None


def graph(params: Params, agents: int) -> list[tuple[int, int]]:
    """Return the edges, or refuse rows that are not equally long."""
    return rectangle(params.rows, agents, periodic=False)


def rectangle(rows: int | None, agents: int, periodic: bool) -> list[tuple[int, int]]:
    """Return the edges of a grid, numbered row by row; periodic: ends three or more apart meet."""
    if rows is None:
        rows = max(r for r in range(1, math.isqrt(agents) + 1) if agents % r == 0)
    if agents % rows:
        raise ConcordError(
            f"rows: {rows} rows do not divide {agents} agents; give a divisor of the number of "
            "agents"
        )
    columns = agents // rows
    pairs = []
    for agent in range(agents):
        row, column = divmod(agent, columns)
        if column + 1 < columns:
            pairs.append((agent, agent + 1))
        elif periodic and columns > 2:
            pairs.append((row * columns, agent))
        if row + 1 < rows:
            pairs.append((agent, agent + columns))
        elif periodic and rows > 2:
            pairs.append((column, agent))
    return pairs
