"""A line of agents."""

from concord.options import Options as Params


def graph(params: Params, agents: int) -> list[tuple[int, int]]:
    """Return the edges of a path over agents 0 to N - 1."""
    return [(i, i + 1) for i in range(agents - 1)]
