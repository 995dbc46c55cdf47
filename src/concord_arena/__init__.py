"""The arena: every sampler on the same tasks, at the same price.

A *task* is a problem on a network, an *entry* a sampler with the way its options are chosen; a cell
of both is a run with the key ``arena``. ``cells`` scores a cell: by the exact law where the sampler
states one (``laws``), by chains otherwise (``chains``). ``prices`` says what an iteration costs and
``tuning`` which settings are tried.

``recommendation`` answers a ``question``: ``screen`` and ``refine`` try settings on ``lattices``,
``predict`` scores them by laws, ``trials`` by chains, and ``describe`` says what was found.
"""

from importlib import import_module
from typing import Any

_PUBLIC = {
    "bias_map": "biases",
    "compare": "compete",
    "recommend": "recommendation",
}
__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
