"""Agents that are alone."""

from concord.options import Options as Params


def graph(params: Params, agents: int) -> list[tuple[int, int]]:
    """Return an empty list of edges: every agent is alone."""
    return []
