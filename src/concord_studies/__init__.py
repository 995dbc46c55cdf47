"""Studies: from configuration to runs, metrics, figures, tables, verdicts and pages."""

from importlib import import_module
from typing import Any

from concord import kinds
from concord.kinds import Room

kinds.add_rooms(
    {
        "problems": Room("problem", ("concord_studies.problems",), "Params check build"),
        "metrics": Room("metric", ("concord_studies.metrics",), "rows"),
        "figures": Room("figure", ("concord_studies.figures",), "Params reads draw"),
        "layers": Room("layer", ("concord_studies.layers",), "Params"),
        "tables": Room("table", ("concord_studies.tables",), "Params reads tabulate"),
    }
)

_PUBLIC = {"load_run": "concord_studies.repeat"}
__all__ = [*_PUBLIC]


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
