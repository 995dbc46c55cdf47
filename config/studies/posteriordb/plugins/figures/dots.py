"""A metric of runs as dots with intervals: a row for each value of one label, colors for another.

Open ends at the right edge are runs that diverged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from concord.options import Options, Some
from concord_studies import selection
from concord_studies.figures import style
from concord_studies.figures.panels import Names
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured, series


class Params(Options):
    """Options of dots."""

    rows: Annotated[str, NamesLabel("label of the rows")]
    lines: Annotated[str, NamesLabel("label that colors and markers tell apart")]
    shows: Annotated[Some[str], "metric/agent of each panel, from left to right"]
    titles: Annotated[Some[str], "title of each panel"]
    xlabels: Annotated[Some[str], "text of each x axis"]
    xlim: Annotated[tuple[float, float], "ends of the x axes, which are logarithmic"]
    names: Names = None


def reads(params: Params) -> list[str]:
    """Return the metrics that the runs must have."""
    return [panel.split("/")[0] for panel in params.shows]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the figure."""
    rows = selection.split(runs, params.rows)
    values = [value for value, _ in selection.split(runs, params.lines)]
    looks = style.looks(params.lines, values)
    figure = Figure(figsize=(6.5, 0.03 * len(values) * len(rows) + 1.6), layout="constrained")
    axes = figure.subplots(1, len(params.shows), sharey=True, squeeze=False)[0]
    least, most = params.xlim
    shifts = np.linspace(-0.36, 0.36, len(values))
    for ax, panel, title, text in zip(
        axes, params.shows, params.titles, params.xlabels, strict=True
    ):
        metric, agent = panel.split("/")
        for place, (_, row_runs) in enumerate(rows):
            if place % 2:
                ax.axhspan(place - 0.5, place + 0.5, color="0.95", lw=0, zorder=0)
            for shift, line, look in zip(shifts, values, looks, strict=True):
                for run in selection.select(row_runs, {params.lines: line}):
                    last = series(run, metric, agent).take(-1)
                    beyond = not last.value <= most
                    x = most if beyond else max(last.value, least)
                    ends = np.clip([last.lo, last.hi], least, most)
                    ax.plot(ends, [place + shift] * 2, color=look.color, lw=0.9)
                    marker = ">" if beyond else look.marker or "o"
                    ax.plot(x, place + shift, marker, color=look.color, ms=3.2, clip_on=False)
        ax.set_xscale("log")
        ax.set_xlim(least, most)
        ax.set_title(title, fontsize="medium")
        ax.set_xlabel(text)
    axes[0].set_yticks(
        range(len(rows)), [style.name(params.rows, v, params.names) for v, _ in rows]
    )
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    entries = [
        style.entry(style.name(params.lines, v, params.names), color=k.color, marker=k.marker, lw=0)
        for v, k in zip(values, looks, strict=True)
    ]
    style.legend_of(figure, entries)
    return figure
