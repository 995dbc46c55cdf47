"""Maps of cells with numbers, one or several side by side."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from concord_studies.figures import style
from concord_studies.figures.panels import SMALL_PER_INCH, Panels, arrange_panels
from concord_studies.results import Measured

_HATCH: dict[str, Any] = {"facecolor": "white", "edgecolor": "#cccccc", "hatch": "////", "lw": 0}


class CellMap:
    """One panel: its cells, (rows, columns), white and empty at first, and the names beside them.

    colors: RGB, (rows, columns, 3); texts: str objects.
    hatched, italic: masks of cells that have no number, and of numbers that are estimated.
    """

    def __init__(self, title: str, rows: Sequence[str], columns: Sequence[str]) -> None:
        shape = len(rows), len(columns)
        self.title, self.rows, self.columns = title, rows, columns
        self.colors, self.texts = np.ones((*shape, 3)), np.full(shape, "", object)
        self.hatched, self.italic = np.zeros((2, *shape), bool)


def draw_maps(
    maps: Sequence[CellMap], runs: Sequence[Measured], height: float, upwards: bool = False
) -> Panels:
    """Draw maps of cells side by side, each ``height`` inches high.

    runs: those that the maps show. upwards: the first row is the lowest, as on an axis.
    """
    cells = arrange_panels((panel.title, runs) for panel in maps)
    across, columns = 1 + max(cell.column for cell in cells), len(maps[0].columns)
    # The most characters of a cell set its width: a column of the page, or all of it.
    full = columns * across * max(len(str(text)) for m in maps for text in m.texts.flat) > 24
    panels = Panels(cells, height, width="full" if full or across > 1 else "column")
    for panel, ax in zip(maps, panels.axes, strict=True):
        ax.imshow(panel.colors, aspect="auto", origin="lower" if upwards else "upper")
        for (r, c), text in np.ndenumerate(panel.texts):
            if panel.hatched[r, c]:
                ax.add_patch(Rectangle((c - 0.5, r - 0.5), 1, 1, **_HATCH))
            ink = style.choose_ink(panel.colors[r, c])
            slant = "italic" if panel.italic[r, c] else "normal"
            look: dict[str, Any] = {"fontsize": style.SMALL, "color": ink, "style": slant}
            ax.text(c, r, text, ha="center", va="center", linespacing=0.95, **look)
        _name_cells(ax, panel.columns, panel.rows)
    return panels


def explain_hatches(maps: Sequence[CellMap], text: str) -> list[Patch]:
    """Return the legend's entry for hatched cells of the maps, if there are any."""
    return [Patch(label=text, **_HATCH)] if any(panel.hatched.any() for panel in maps) else []


def _name_cells(axes: Axes, columns: Sequence[str], rows: Sequence[str]) -> None:
    """Write the names of a map's columns and rows beside it, without ticks; long ones aslant."""
    figure, grid = axes.get_figure(root=True), axes.get_subplotspec()
    assert figure is not None and grid is not None
    axes.grid(False)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    room = SMALL_PER_INCH * figure.get_figwidth() / grid.get_gridspec().ncols - max(map(len, rows))
    if max(map(len, columns)) > room / len(columns):
        for label in axes.get_xticklabels():
            label.set(rotation=35, ha="right", rotation_mode="anchor")
