"""Draws of one chain, in black, over the points of all shards, each of its color.

Drawn from the metric family ``shard_draws``, a panel for each run, or for ``exact`` draws of the
posterior.

What a researcher writes in a paper's YAML (el Mekkaoui et al., Fig 2)::

    by: chain
"""

from collections.abc import Sequence
from typing import Annotated, Any

from matplotlib.figure import Figure

from concord.options import Options
from concord_studies import selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures.panels import Names, Panels, arrange_panels
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured

_DOT: dict[str, Any] = {"linestyle": "", "marker": "o", "markeredgewidth": 0, "rasterized": True}


class Params(Options):
    """Options of a figure of draws over shards."""

    by: Annotated[
        str | None, NamesLabel("label with one panel per value, three in a row; none: one panel")
    ] = None
    exact: Annotated[bool, "draws of the posterior, in place of a chain's"] = False
    names: Names = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    return [Read("shard_x"), Read("exact_x" if params.exact else "chain_x")]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the shards' points, and draws over them."""
    drawn = "exact" if params.exact else "chain"
    cells = selection.split(runs, params.by)
    names = [style.name(params.by, value, params.names) if params.by else "" for value, _ in cells]
    shown = zip(names, (of for _, of in cells), strict=True)
    panels = Panels(arrange_panels(shown, 3), height=1.7)
    for cell, axes in panels:
        run = selection.take_single(cell.runs, f"panel {cell.title!r}")
        for shard in range(run.run["agents"]):
            color = f"C{shard % 10}"
            x, y = (run.values(f"shard_{axis}", shard) for axis in "xy")
            axes.plot(x, y, color=color, markersize=2.4, zorder=1.5, **_DOT)
        x, y = (run.values(f"{drawn}_{axis}") for axis in "xy")
        axes.plot(x, y, color=style.BLACK, markersize=1.6, zorder=2, **_DOT)
        axes.grid(visible=False)
    panels.label(r"$\theta_1$", r"$\theta_2$")
    text = "exact draws of the posterior" if params.exact else "draws of one chain"
    entries = [style.entry(text, color=style.BLACK, **{**_DOT, "markersize": 3})]
    entries.append(style.entry("points, a color for each shard", **{**_DOT, "markersize": 3}))
    return panels.with_legend(entries)
