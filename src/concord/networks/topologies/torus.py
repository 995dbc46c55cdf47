"""A grid whose ends meet: each agent has four neighbors, where there are enough agents."""

from concord.networks.formula import Formula
from concord.networks.topologies import grid

beside = grid.beside


class Params(grid.Params):
    """The shape of the grid."""


def graph(params: Params, agents: int) -> Formula:
    """Return the edges, or refuse rows that are not equally long."""
    return grid.rectangle(params.rows, agents, periodic=True)
