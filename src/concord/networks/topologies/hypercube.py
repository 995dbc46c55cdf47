"""Agents whose numbers differ in one binary digit are neighbors: log2 N neighbors each."""

from concord.errors import ConcordError
from concord.options import Options


class Params(Options):
    """It has no options."""


def graph(params: Params, agents: int) -> list[tuple[int, int]]:
    """Return the edges, or refuse a number that is no power of two."""
    digits = agents.bit_length() - 1
    if agents != 2**digits:
        raise ConcordError(
            f"{agents} agents make no hypercube; use a power of two, such as {2**digits}"
        )
    return [(i, i ^ 2**j) for i in range(agents) for j in range(digits)]
