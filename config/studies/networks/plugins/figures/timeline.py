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

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord.errors import ConcordError
from concord.networks.topology import build_graph
from concord.options import Index, Options, Some
from concord_studies import results, selection, words
from concord_studies.contracts import Read
from concord_studies.figures import _axes, style
from concord_studies.figures.panels import Names, Panels, Rows, cross_panels
from concord_studies.results import Measured


class Params(Options):
    """Options of a figure of timelines."""

    agents: Annotated[Some[Index], "agents shown, from above"]
    rows: Rows = None
    xlim: Annotated[tuple[float, float] | None, "[low, high] of the seconds; none: all"] = None
    names: Names = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    times = [Read(name, agents=params.agents) for name in ("ended", "waited")]
    return [*times, Read("sending", agents=("network",))]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw agents' steps and waits on the clock, a panel for each run, all iterations recorded."""
    cells = cross_panels(runs, params.names, rows=params.rows)
    panels = Panels(cells, 0.55 + 0.2 * len(params.agents), width="full")
    for cell, panel in panels:
        run = selection.take_single(cell.runs, f"panel {cell.title!r}")
        end = _draw_rows(panel, run, params.agents)
        panel.set_xlim(*(params.xlim or (0.0, end)))
        panel.set_yticks(range(len(params.agents)), [words.agent(agent) for agent in params.agents])
        panel.set_ylim(len(params.agents) - 0.5, -0.5)
        panel.tick_params(axis="y", length=0)
        panel.grid(visible=False)
        _axes.number_axis(panel, "seconds")
    panels.label(_axes.name_price("seconds"), "")
    bars = [Patch(**_BUSY, label="computes"), Patch(**_WAIT, label="waits")]
    return panels.with_legend([*bars, style.entry("a vector on its way", **_SEND)])


def _draw_rows(axes: Axes, run: Measured, agents: Sequence[int]) -> float:
    """Draw the agents of one run, and return the time at which the last agent ended."""
    options = dict(run.run["topology"])
    graph = build_graph(options.pop("kind"), run.run["agents"], **options)
    sending = results.series(run, "sending", "network").value[-1]
    place = {agent: row for row, agent in enumerate(agents)}
    ways, last = [], 0.0
    for agent, row in place.items():
        ended = results.series(run, "ended", agent)
        waited = results.series(run, "waited", agent).value
        if (np.diff(ended.iteration) != 1).any():
            raise ConcordError(
                f"run {run.name} does not record every iteration; set record: {{every: 1}}"
            )
        steps = np.flatnonzero(np.diff(ended.value) > 0)
        begin, end = ended.value[steps], ended.value[steps + 1]
        wait = waited[steps + 1] - waited[steps]
        waits = wait > 1e-12 * end
        spans = [(begin[waits], wait[waits], _WAIT), (begin + wait, end - begin - wait, _BUSY)]
        for left, length, look in spans:
            pieces = list(zip(left, length, strict=True))
            axes.broken_barh(pieces, (row - 0.27, 0.54), **_BAR, **look)
        receivers = [row for other, row in place.items() if agent in graph.neighbors[other]]
        sent = np.append(0.0, end)
        side = 0.27 * np.sign(np.array(receivers) - row)
        ways += [
            [(moment, row + edge), (moment + sending, other - edge)]
            for other, edge in zip(receivers, side, strict=True)
            for moment in sent
        ]
        last = max(last, end.max(initial=0.0))
    look = {"colors": _SEND["color"], "linewidths": _SEND["linewidth"]}
    axes.add_collection(LineCollection(ways, **look, alpha=0.8, zorder=1.5))
    return last


_BUSY: dict[str, Any] = {"facecolor": style.BLUE}
_BAR: dict[str, Any] = {"zorder": 2, "edgecolor": "white", "linewidth": 0.5}
_WAIT: dict[str, Any] = {"facecolor": "#dddddd"}
_SEND: dict[str, Any] = {"color": style.VERMILION, "linewidth": 0.6}
