"""A cycle; one or two agents close none: no edge, or a single one."""

from __future__ import annotations

from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> list[tuple[int, int]]:
    """Return the edges."""
    return [(i, (i + 1) % agents) for i in range(agents if agents > 2 else agents - 1)]
