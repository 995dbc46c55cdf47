"""Options of a problem's points: tables, and the order of an author's draws."""

from typing import Annotated, Any

from msgspec import Meta

from concord.sampling.partition import check_rows

LegacySeed = Annotated[
    Annotated[int, Meta(ge=0, le=2**32 - 1)] | None,
    "draw the data agent by agent from NumPy's legacy generator with this seed, as "
    "tzikas2024's authors do; none: from the paper's data stream",
]

Table = Annotated[
    str | None,
    "registered table of points and who holds which (config/datasets.yaml), with columns agent "
    "(empty: nobody), perhaps place (their order within the agent), then features and, last, the "
    "target; none: points are drawn",
]


def required_tables(params: Any) -> tuple[str, ...]:
    """Return the name of the registered table of the options, as a tuple. Empty without one."""
    return () if params.table is None else (params.table,)


def check_agents(params: Any, agents: int) -> None:
    """Raise a ConcordError if there are more agents than points."""
    check_rows(params.points, agents)
