"""Draws of the agents at each recorded iteration, over the density of the posterior.

Drawn from the metric family ``draws``, of problems with one dimension: every chain's position is a
tick on its agent's line, with the density of the agent's exact law above it, scaled to the room
between two lines, and the posterior's as a gray area behind, scaled alike, so that widths compare.
Panels share the axis of positions, so that motion is seen, but for the last iteration, which is
shown closer.

What a researcher writes in a paper's YAML (Tzikas et al., Fig 5)::

    rows: reading
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord.options import Options
from concord_studies import selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures.panels import Names, Rows
from concord_studies.results import Measured


class Params(Options):
    """Options of a figure of draws over the posterior's density."""

    rows: Rows = None
    names: Names = None


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs of the figure must have."""
    return [*(Read(name) for name in ("draw", "posterior_mean", "posterior_sd")), "law_sd"]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw agents' draws and laws over the posterior's density, a row for each run."""
    groups = selection.split(runs, params.rows)
    iterations = _read_rows(runs[0], "draw")["iteration"].unique().tolist()
    figure = Figure(figsize=(style.FULL, 1.5 * len(groups) + 0.2), layout="constrained")
    table = figure.subplots(len(groups), len(iterations), squeeze=False, sharey=True)
    for row, (value, group) in zip(table, groups, strict=True):
        run = selection.take_single(group, f"row {params.rows} = {value}")
        for axes, k in zip(row, iterations, strict=True):
            _draw_panel(axes, run, k)
        text = style.name(params.rows, value, params.names) if params.rows else ""
        row[0].set_ylabel(f"{text}\nagent".strip(), fontsize=style.RC["axes.labelsize"])
    for columns in (table[:, :-1], table[:, -1:]):
        ends = [axes.get_xlim() for axes in columns.ravel()]
        for axes in columns.ravel():
            axes.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
            axes.tick_params(labelbottom=axes in table[-1])
    for first, last, k in zip(table[0], table[-1], iterations, strict=True):
        first.set_title(f"$k$ = {k}" + ", closer" * (len(iterations) > 1 and k == iterations[-1]))
        last.set_xlabel("$x$")
    table[0, 0].set_ylim(0, 1.05)
    tick: dict[str, Any] = {"linestyle": "", "marker": "|", "markersize": 6}
    handles = [
        style.entry("a chain", color=style.AGENTS[0], **tick),
        Patch(color=_GRAY, label="posterior density (scaled)"),
    ]
    if any(len(run.values("law_sd")) for run in runs):
        text = "exact law of an agent (scaled)"
        handles.append(style.entry(text, color=style.AGENTS[0], linewidth=0.8))
    style.legend_of(figure, handles)
    return figure


_GRAY = "#d0d0d0"


def _read_rows(run: Measured, metric: str) -> Any:
    """Return the rows of a metric of a run."""
    return run.metrics[run.metrics["metric"] == metric]


def _draw_panel(axes: Axes, run: Measured, k: int) -> None:
    """Draw the posterior's density and the agents' draws of a run at iteration k."""
    mean, sd = (_read_rows(run, f"posterior_{name}")["value"].item() for name in ("mean", "sd"))
    posterior = _compute_bell(mean, sd, 3.5)
    agents = sorted({int(agent) for agent in _read_rows(run, "draw")["agent"]})
    room = 1 / (len(agents) + 0.5)
    heights = room * (np.arange(len(agents)) + 0.6)
    axes.set_yticks(heights, [str(agent + 1) for agent in agents])
    metrics = run.metrics[run.metrics["iteration"] == k].groupby(["agent", "metric"])["value"]
    ticks: dict[str, Any] = {"marker": "|", "markersize": 5.5, "markeredgewidth": 0.35}
    for agent, height, look in zip(agents, heights, style.looks("agent", agents), strict=True):
        draws = metrics.get_group((str(agent), "draw"))
        line: dict[str, Any] = {"linestyle": "", "color": look.color, "alpha": 0.5, "zorder": 2}
        axes.plot(draws, np.full(len(draws), height), **ticks, **line)
        top = height + 0.8 * room * posterior[1]
        axes.fill_between(posterior[0], height, top, color=_GRAY, linewidth=0, zorder=1)
        if (str(agent), "law_sd") in metrics.groups:
            mean, sd = (metrics.get_group((str(agent), f"law_{m}")).item() for m in ("mean", "sd"))
            if 0 < sd < np.inf:
                x, density = _compute_bell(mean, sd, 3.5)
                above = height + 0.8 * room * density
                axes.plot(x, above, color=look.color, linewidth=0.8, zorder=1.8)
    axes.grid(visible=False)


def _compute_bell(mean: float, sd: float, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Return x and a normal density of height one, up to ``reach`` standard deviations."""
    x = np.linspace(mean - reach * sd, mean + reach * sd, 200)
    return x, np.exp(-0.5 * ((x - mean) / sd) ** 2)
