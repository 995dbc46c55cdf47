"""A rectangle of rows * columns agents, each the neighbor of those beside, above and below."""

from __future__ import annotations

import math
from typing import Annotated, Any

from concord.errors import ConcordError
from concord.options import Count, Options


class Params(Options):
    """The shape of the grid."""

    rows: Annotated[Count | None, "number of rows; none: the most square grid"] = None


def graph(params: Params, agents: int) -> Any:
    """Return the graph, or refuse rows that are not equally long."""
    return rectangle(params.rows, agents, periodic=False)


def rectangle(rows: int | None, agents: int, periodic: bool) -> Any:
    """Return a grid whose agents are numbered row by row; periodic: its ends meet."""
    import networkx as nx

    if rows is None:
        rows = max(r for r in range(1, math.isqrt(agents) + 1) if agents % r == 0)
    if agents % rows:
        raise ConcordError(
            f"rows: {rows} rows do not divide {agents} agents; give a divisor of the number of "
            "agents"
        )
    columns = agents // rows
    grid = nx.grid_2d_graph(rows, columns, periodic=periodic)
    return nx.relabel_nodes(grid, {(r, c): r * columns + c for r, c in grid})
