"""Metrics at the last recorded iteration (or another one), one row per run, agent and metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from concord.errors import ConcordError, nearest
from concord.figures.data import Measured
from concord.parameters import param
from concord.tables import Table


@dataclass(frozen=True)
class Params:
    """Options of a table of final values."""

    metrics: tuple[str, ...] = param("names of the metrics shown")
    agents: tuple[int | str, ...] | None = param(
        "agents shown: indices, average or network; none: all", default=None
    )
    iteration: int | None = param("iteration shown; none: the last", default=None, minimum=0)


def tabulate(params: Params, runs: Sequence[Measured]) -> Table:
    """Return the table; the columns before agent are the runs' labels."""
    labels = list(dict.fromkeys(label for run in runs for label in run.run["labels"]))
    wanted = None if params.agents is None else {str(agent) for agent in params.agents}
    rows = []
    for run in runs:
        table = run.metrics
        for metric in params.metrics:
            chosen = table[table["metric"] == metric]
            if chosen.empty:
                raise ConcordError(
                    f"table final_values: {run.name} has no metric {metric!r}; "
                    f"{nearest(metric, table['metric'].unique())}"
                )
            last = chosen["iteration"].max() if params.iteration is None else params.iteration
            for row in chosen[chosen["iteration"] == last].to_dict("records"):
                if wanted is None or row["agent"] in wanted:
                    cells = [run.run["labels"].get(label) for label in labels]
                    lo, hi = (None if math.isnan(end) else end for end in (row["lo"], row["hi"]))
                    rows.append(
                        [
                            run.run["experiment"],
                            *cells,
                            row["agent"],
                            metric,
                            int(last),
                            row["value"],
                            lo,
                            hi,
                        ]
                    )
    columns = ["experiment", *labels, "agent", "metric", "iteration", "value", "lo", "hi"]
    return Table(columns, rows)
