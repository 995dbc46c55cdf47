"""Agents that are alone."""

from concord.options import Options as Params


def graph(params: Params, agents: int) -> list[tuple[int, int]]:
    """Return the edges of a graph without edges over agents 0 to N - 1."""
    return []
