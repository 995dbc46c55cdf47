"""Agents 1, 2, 4, 8, ... apart around a circle are neighbors: about 2 log2 N neighbors each.

Source: Ying, Yuan, Chen, Hu, Pan and Yin, "Exponential graph is provably efficient for
decentralized deep training" (2021, arXiv:2110.13363), where edges have a direction; not here.
"""

from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> list[tuple[int, int]]:
    """Return the edges."""
    apart = [2**j for j in range((agents - 1).bit_length())]
    return [(i, (i + hop) % agents) for i in range(agents) for hop in apart]
