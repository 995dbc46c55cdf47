"""Plug-ins by file name: samplers, problems, metrics, figure and table kinds."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import Any

from concord.errors import ConcordError, nearest, short

NOT_KINDS = ("style",)  # of figures: what all kinds share


@cache
def kinds(package: str) -> tuple[str, ...]:
    """Return the kinds of a package of plug-ins ("samplers", ...): its modules but NOT_KINDS."""
    folder = Path(__file__).parent / package
    names = [m.name for m in pkgutil.iter_modules([str(folder)])]
    return tuple(sorted(n for n in names if not n.startswith("_") and n not in NOT_KINDS))


def plugin(package: str, kind: Any, where: str) -> Any:
    """Import the module of a kind, or raise with the nearest kind there is.

    ``concord.contracts`` has the protocol of each package's modules.
    """
    if kind not in kinds(package):
        raise ConcordError(
            f"{where}.kind: there is no {package.rstrip('s')} {short(kind)}; "
            f"{nearest(kind, kinds(package))}"
        )
    try:
        return importlib.import_module(f"concord.{package}.{kind}")
    except OSError as error:  # another user's file, for example
        raise ConcordError(f"{error.filename}: cannot be read ({error.strerror})") from error
