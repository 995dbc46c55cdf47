"""Problems: target posteriors split over agents, one module per kind.

Modules are found by their file name; there is no other list of them. What a module has says
``contracts.ProblemKind`` (and, for data that are downloaded, ``NeedsData`` and ``TakesData``); what
its problem has, ``contracts.Problem``, and what more a problem may offer, the protocols after it.

A kind that takes one's own arrays can be called with them:
``concord.problems.linear_regression(X, y, agents=20)``; one that takes none, with its options:
``concord.problems.gaussian(agents=20, condition=100.0)``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from concord.plugins import kinds


def __getattr__(name: str) -> Any:
    """Import a kind, or ``quadratic``, when it is asked for."""
    if name == "quadratic":
        return import_module("concord.problems._quadratic").quadratic
    if name in kinds("problems"):
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what ``__getattr__`` knows."""
    return [*kinds("problems"), "quadratic"]
