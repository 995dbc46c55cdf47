"""Every two agents are neighbors."""

from concord.networks.formula import Formula, everybody
from concord.networks.topology import check_pairs
from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> Formula:
    """Return the edges."""
    check_pairs(agents, "complete")
    return Formula(agents, everybody)
