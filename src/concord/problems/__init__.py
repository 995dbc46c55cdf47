"""Problems: target posteriors split over agents; each module of ``kinds`` builds one kind.

``contracts.ProblemKind`` is the protocol of the modules, and ``concord.problem`` has the
protocols of the problems they build.

In Python ``concord.problems.<kind>`` builds a problem. A kind with ``from_arrays`` takes a caller's
arrays, ``concord.problems.linear_regression(X, y, agents=20)``. Other kinds take their options,
``concord.problems.gaussian(agents=20, condition=100.0)``, and ``partition`` and ``seed`` as
``linear_regression`` does; the seed determines all random numbers.
"""

from collections.abc import Callable
from importlib import import_module

from concord.errors import find_meant, nearest, suggest_names
from concord.kinds import exists, find, names
from concord.problem import Problem


def __getattr__(name: str) -> Callable[..., Problem]:
    """Return the function that builds problems of kind ``name``, or ``quadratic``."""
    if name == "quadratic":
        return import_module("concord.problems.quadratic_problem").quadratic
    if name.startswith("_") or not exists("problems", name):
        raise AttributeError(
            f"there is no problem {name!r}; {nearest(name, __dir__())}"
            + "; kinds of studies come with 'import concord_studies'"
            * (not find_meant(name, __dir__()))
        )
    kind = find("problems", name, "problem")
    if hasattr(kind, "from_arrays"):
        return suggest_names(kind.from_arrays, name)
    return import_module("concord.problems.from_options").from_options(kind)


def __dir__() -> list[str]:
    """Return the names of all kinds of problems, and ``quadratic``."""
    return [*names("problems"), "quadratic"]
