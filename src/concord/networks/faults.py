"""Names of what has moved, until all that import them follow."""

from __future__ import annotations

from typing import Any

from concord.networks.conditions import Conditions, Static
from concord.networks.edges import Edges
from concord.networks.moments import chances
from concord.networks.network import drawing, turns
from concord.networks.topology import Topology

__all__ = ["Conditions", "Edges", "Network", "Static", "Timed", "chances", "drawing", "turns"]


class _Eventful(type):
    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Topology) and other.conditions.eventful


class _Imperfect(type):
    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Topology) and not other.conditions.perfect


class Timed(Topology, metaclass=_Eventful):
    """A network on which something happens, time that passes included."""


class Network(Topology, metaclass=_Imperfect):
    """A network on which vectors may not arrive, or not at once, or not as they are."""
