"""Agent 0 is the center, and the neighbor of all others."""

from concord.options import Options as Params


def graph(params: Params, agents: int) -> list[tuple[int, int]]:
    """Return the edges of a star over agents 0 to N - 1."""
    return [(0, i) for i in range(1, agents)]
