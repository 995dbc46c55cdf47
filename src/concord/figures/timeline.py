"""What agents do when: they compute, send, and wait, in one chain of the simulated clock.

A row for each agent, with a bar for each of its steps: dark while it computes its gradients, pale
while it waits for vectors of its neighbors. A line goes from where a step has ended to where the
vector that is sent then arrives, between agents that are shown. Drawn from ``ended``, ``waited``
and ``sending`` (metric ``timeline``) of runs that record every iteration.

What a researcher writes in a study's YAML, for runs with and without barrier above each other::

    rows: barrier
    agents: [15, 0, 1, 2]
    xlim: [0, 0.5]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord import results, selection, words
from concord.contracts import Read
from concord.errors import ConcordError
from concord.figures import _panels, _prices, style
from concord.figures._options import Columns, Limits, Names, Rows, Select, Width
from concord.networks.topology import build
from concord.options import Index, Options, Some
from concord.results import Measured

KIND = "figure timeline"


class Params(Options):
    """Options of a figure of timelines."""

    agents: Annotated[Some[Index], "agents shown, from above"]
    rows: Rows = None
    columns: Columns = None
    select: Select = None
    xlim: Annotated[Limits, "[low, high] of the seconds"] = None
    width: Width = "full"
    names: Names = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs must have."""
    own = [Read(name, params.select, params.agents) for name in ("ended", "waited")]
    return [*own, Read("sending", params.select, ("network",))]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the figure.

    Raises
    ------
    ConcordError
        If a run lacks the metrics, an agent or an iteration, or if two would be in one panel.
    """
    chosen = selection.select(runs, params.select, KIND)
    cells = _panels.cross(chosen, params.rows, params.columns, params.names, KIND)
    height = 0.55 + 0.2 * len(params.agents)
    figure, axes = _panels.axes_of(cells, "all", params.width, height)
    low, high = _panels.limits(params.xlim, f"{KIND}: xlim")
    for cell, panel in zip(cells, axes, strict=True):
        if not cell.runs:
            continue
        end = _rows(panel, selection.only(cell.runs, f"panel {cell.title!r}", KIND), params)
        panel.set_xlim(low or 0.0, end if high is None else high)
        panel.set_yticks(range(len(params.agents)), [words.agent(agent) for agent in params.agents])
        panel.set_ylim(len(params.agents) - 0.5, -0.5)
        panel.tick_params(axis="y", length=0)
        panel.grid(visible=False)
    xlabel = _prices.axis(axes, "seconds", "linear")
    _panels.label(cells, axes, "all", xlabel, "")
    style.legend_of(
        figure,
        [
            Patch(facecolor=_COMPUTE, label="computes"),
            Patch(**_WAIT, label="waits"),
            style.entry("a vector on its way", **_SEND),
        ],
    )
    return figure


def _rows(axes: Axes, run: Measured, params: Params) -> float:
    """Draw the agents of one run, and return when the last of them has ended."""
    options = dict(run.run["topology"])
    graph = build(options.pop("kind"), run.run["agents"], **options)
    sending = results.series(run, "sending", "network", KIND, "timeline").value[-1]
    place = {agent: row for row, agent in enumerate(params.agents)}
    lines, last = [], 0.0
    for agent, row in place.items():
        ended = results.series(run, "ended", agent, KIND, "timeline")
        waited = results.series(run, "waited", agent, KIND, "timeline").value
        if (np.diff(ended.iteration) != 1).any():
            raise ConcordError(
                f"{KIND}: run {run.name} does not record every iteration; set record: {{every: 1}}"
            )
        steps = np.flatnonzero(np.diff(ended.value) > 0)
        begin, end = ended.value[steps], ended.value[steps + 1]
        wait = waited[steps + 1] - waited[steps]
        bars = {"zorder": 2, "edgecolor": "white", "linewidth": 0.5}
        waits = wait > 1e-12 * end
        spans = [(begin[waits], wait[waits], _WAIT), (begin + wait, end - begin - wait, _BUSY)]
        for left, length, look in spans:
            pieces = list(zip(left, length, strict=True))
            axes.broken_barh(pieces, (row - 0.27, 0.54), **{**bars, **look})
        near = [row for other, row in place.items() if agent in graph.neighbors[other]]
        sent = np.append(0.0, end)
        side = 0.27 * np.sign(np.array(near) - row)
        lines += [
            [(moment, row + edge), (moment + sending, other - edge)]
            for other, edge in zip(near, side, strict=True)
            for moment in sent
        ]
        last = max(last, end.max(initial=0.0))
    look = {"colors": _SEND["color"], "linewidths": _SEND["linewidth"]}
    axes.add_collection(LineCollection(lines, **look, alpha=0.8, zorder=1.5))
    return last


_COMPUTE = style.BLUE
_BUSY: dict[str, Any] = {"facecolor": _COMPUTE}
_WAIT: dict[str, Any] = {"facecolor": "#dddddd"}
_SEND: dict[str, Any] = {"color": style.VERMILLION, "linewidth": 0.6}
