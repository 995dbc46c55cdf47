"""Agent 0 is the center, and the neighbor of all others."""

from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> list[tuple[int, int]]:
    """Return the edges."""
    return [(0, i) for i in range(1, agents)]
