"""Studies: from configuration to runs, metrics, figures, tables, verdicts and pages."""

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


def __getattr__(name: str) -> object:
    """Say where a name went that users had here."""
    if name == "load_run":
        raise AttributeError("concord_studies.load_run is concord.load_run now: import concord")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
