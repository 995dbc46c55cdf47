"""ArviZ, whose numbers depend on nothing but its version."""

import sys
import warnings
from types import ModuleType
from typing import Any


def arviz_by_numpy() -> ModuleType:
    """Import ArviZ and return it, with numba out of use.

    Where numba is installed ArviZ imports it, broken or not, and adds variances in another order:
    R-hat and effective sample sizes differ in their last digits.
    """
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    there = {"numba": modules["numba"]} if "numba" in modules else {}
    modules["numba"] = None  # "is not installed"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", FutureWarning
            )  # once a day it tells of its next version
            import arviz
    finally:
        del modules["numba"]
        modules.update(there)
    arviz.Numba.disable_numba()  # where it was imported before
    return arviz


def dataset(values: Any, *names: str) -> Any:
    """Return values (chain, draw, ...) as ``x`` for ArviZ, which would warn of many chains."""
    import xarray

    return xarray.Dataset({"x": (("chain", "draw", *names), values)})
