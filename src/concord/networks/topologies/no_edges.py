"""Agents that are alone."""

from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> list[tuple[int, int]]:
    """Return the edges."""
    return []
