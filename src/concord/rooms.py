"""The rooms of kinds: samplers, problems, topologies and so on, and what a kind of each defines."""

import sys
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from concord.errors import ConcordError


class Room(NamedTuple):
    """A group of plug-ins: the word for one, their packages, and the names that each defines."""

    one: str
    packages: tuple[str, ...]
    defines: str


ROOMS = {  # packages above the library add theirs
    "samplers": Room("sampler", ("concord.samplers",), ""),
    "problems": Room("problem", ("concord.problems.kinds",), "Params check build"),
    "topologies": Room("topology", ("concord.networks.topologies",), "Params graph"),
    "partitions": Room("partition", ("concord.sampling.partitions",), "Params split"),
    "schedules": Room("schedule", ("concord.sampling.schedules",), "Params schedule"),
    "initial": Room("initial law", ("concord.sampling.initial",), "Params draw moments"),
    "compressions": Room("compression", ("concord.networks.compressions",), "Params compress bits"),
}


@cache
def object_of(room: str, module: ModuleType) -> Any:
    """Return the module of a kind, or a sampler's one class; refuse one that lacks a definition."""
    if missing := [name for name in ROOMS[room].defines.split() if not hasattr(module, name)]:
        lacking = " and ".join(missing)
        raise ConcordError(f"it lacks {lacking}, which a {ROOMS[room].one} defines; add it")
    if room != "samplers":
        return module
    own = [c for c in vars(module).values() if getattr(c, "__module__", "") == module.__name__]
    samplers = [c for c in own if hasattr(c, "step") and hasattr(c, "options")]
    if len(samplers) != 1:
        which = " and ".join(each.__name__ for each in samplers) or "no class of concord.Sampler"
        raise ConcordError(f"it defines {which}; make it one sampler a file")
    return samplers[0]


def options_of(kind: Any) -> Any:
    """Return the class of a kind's options: its ``Params``, or a sampler's ``options``."""
    return kind.Params if hasattr(kind, "Params") else kind.options()


def display_name(kind: Any) -> str:
    """Return a kind's name for readers, such as "DE-SGLD". "" if it declares none."""
    return str(getattr(kind, "name" if isinstance(kind, type) else "NAME", ""))


def docstring_of(kind: Any) -> str:
    """Return the docstring of a kind's module."""
    module = sys.modules[kind.__module__] if isinstance(kind, type) else kind
    return module.__doc__ or ""
