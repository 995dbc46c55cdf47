"""A cycle; one or two agents close none: no edge, or a single one."""

from collections.abc import Sequence

from concord.networks.cycle import Cycle
from concord.networks.topology import MOST_LISTED
from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> Sequence[tuple[int, int]]:
    """Return the edges, of large rings by formula."""
    if agents > MOST_LISTED:
        return Cycle(agents)
    return [(i, (i + 1) % agents) for i in range(agents if agents > 2 else agents - 1)]
