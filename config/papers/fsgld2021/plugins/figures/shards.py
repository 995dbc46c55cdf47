"""Draws of one chain, in black, over the points of all shards, each of its color.

Drawn from the metric family ``shard_draws``, a panel for each run, or for ``exact`` draws of the
posterior. Draws that are a mere dot beside the points are enlarged where the fewest points are,
together with exact draws of the posterior.

What a researcher writes in a paper's YAML (el Mekkaoui et al., Fig 2)::

    by: chain
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from concord.options import Options
from concord_studies import selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures.panels import Names, Panels, arrange_panels
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured

_DOT: dict[str, Any] = {"linestyle": "", "marker": "o", "markeredgewidth": 0, "rasterized": True}
_POSTERIOR = "#ffd92f"  # the one hue that neither shards nor draws have
SMALL = 0.15  # draws whose extent is a smaller part of the points' are enlarged
INSET = (0.2, 0.29)  # width and height, parts of the panel


class Params(Options):
    """Options of a figure of draws over shards."""

    by: Annotated[
        str | None, NamesLabel("label with one panel per value, three in a row; none: one panel")
    ] = None
    exact: Annotated[bool, "draws of the posterior, in place of a chain's"] = False
    names: Names = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    return [Read("shard_x"), Read("exact_x"), *([] if params.exact else [Read("chain_x")])]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the shards' points, and draws over them."""
    drawn = "exact" if params.exact else "chain"
    cells = selection.split(runs, params.by)
    names = [style.name(params.by, value, params.names) if params.by else "" for value, _ in cells]
    shown = zip(names, (of for _, of in cells), strict=True)
    panels = Panels(arrange_panels(shown, 3), height=1.7)
    enlarged = False
    for cell, axes in panels:
        run = selection.take_single(cell.runs, f"panel {cell.title!r}")
        shards = [_read(run, "shard", shard) for shard in range(run.run["agents"])]
        for shard, points in enumerate(shards):
            axes.plot(*points, color=f"C{shard % 10}", markersize=2.4, zorder=1.5, **_DOT)
        draws, points = _read(run, drawn), np.concatenate(shards, axis=1)
        axes.plot(*draws, color=style.BLACK, markersize=1.6, zorder=2, **_DOT)
        axes.grid(visible=False)
        if (np.ptp(draws, axis=1) < SMALL * np.ptp(points, axis=1)).all():
            _enlarge(axes, points, draws, None if params.exact else _read(run, "exact"))
            enlarged = not params.exact
    panels.label(r"$\theta_1$", r"$\theta_2$")
    text = "exact draws of the posterior" if params.exact else "draws of one chain"
    entries = [style.entry(text, color=style.BLACK, **{**_DOT, "markersize": 3})]
    if enlarged:
        text = "exact draws of the posterior, enlarged"
        entries.append(style.entry(text, color=_POSTERIOR, **{**_DOT, "markersize": 3}))
    entries.append(style.entry("points, a color for each shard", **{**_DOT, "markersize": 3}))
    return panels.with_legend(entries)


def _read(run: Measured, what: str, agent: Any = None) -> np.ndarray:
    """Return the two coordinates of points or draws, (2, count)."""
    return np.stack([run.values(f"{what}_{axis}", agent) for axis in "xy"])


def _enlarge(axes: Axes, points: np.ndarray, draws: np.ndarray, exact: np.ndarray | None) -> None:
    """Enlarge the draws where the panel has the fewest points, with exact ones over them."""
    axes.autoscale_view()
    sides = np.array([axes.get_xlim(), axes.get_ylim()])
    low, room = sides[:, :1], np.ptp(sides, axis=1)
    at = (np.hstack([points, draws]) - low) / room[:, None]

    def count(place: tuple[float, float]) -> int:
        """Return how many points and draws an inset at a place would hide."""
        inside = (at.T - place) / INSET
        return int(((inside > 0) & (inside < 1)).all(axis=1).sum())

    places = [(float(x), y) for y in (0.01, 0.69) for x in np.linspace(0.01, 0.77, 20)]
    inset = axes.inset_axes((*min(places, key=count), *INSET), zorder=3)
    inset.plot(*draws, color=style.BLACK, markersize=1.2, **_DOT)
    if exact is not None:
        inset.plot(*exact, color=_POSTERIOR, markersize=1.2, **_DOT)
    times = float((room * INSET / (1.3 * np.ptp(draws, axis=1))).min())
    middle, half = (draws.min(axis=1) + draws.max(axis=1)) / 2, room * INSET / times / 2
    (left, bottom), (right, top) = middle - half, middle + half
    inset.set(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[])
    inset.spines[["top", "right"]].set_visible(True)
    inset.text(0.04, 0.96, f"× {times:.0f}", va="top", fontsize=6, transform=inset.transAxes)
    axes.indicate_inset_zoom(inset, edgecolor=style.BLACK, alpha=0.6)
