"""Problems: target posteriors split over agents; each module of ``kinds`` builds one kind.

What a module has says ``contracts.ProblemKind`` (and, for data that are downloaded, ``NeedsData``
and ``TakesData``); what its problem has, and what more it may offer, ``concord.problem``.

In Python ``concord.problems.<kind>`` makes a problem: of one's own arrays where the kind has
``from_arrays``, ``concord.problems.linear_regression(X, y, agents=20)``, else of its options,
``concord.problems.gaussian(agents=20, condition=100.0)``; ``partition`` and ``seed`` are then as of
``linear_regression``, and all that is random follows from the seed.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from concord import plugins
from concord.contracts import TakesArrays, offers


def __getattr__(name: str) -> Callable[..., Any]:
    """Return the function that builds problems of kind ``name``, or ``quadratic``."""
    if name == "quadratic":
        return import_module("concord.problems._quadratic").quadratic
    if name.startswith("_") or not plugins.exists("problems", name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kind = plugins.plugin("problems", name, "problem")
    if offers(kind, TakesArrays):
        return kind.from_arrays
    return import_module("concord.problems._own").from_options(kind)


def __dir__() -> list[str]:
    """Return the names of all kinds of problems, and ``quadratic``."""
    return [*plugins.kinds("problems"), "quadratic"]
