"""What maps of the arena share: cells by their labels, and ratios as text."""

from collections.abc import Sequence

from concord_studies import selection
from concord_studies.results import Measured


def index_runs(runs: Sequence[Measured], *keys: str) -> dict[tuple[str, ...], Measured]:
    """Return the runs by their values of the given labels or keys, as text."""
    return {tuple(str(selection.lookup(run.run, key)) for key in keys): run for run in runs}


def format_ratio(ratio: float) -> str:
    """Return a ratio with two digits as text, ">999" from 1000 on."""
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}" if ratio < 1000 else ">999"
