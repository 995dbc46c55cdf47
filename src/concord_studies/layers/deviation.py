"""What authors recorded over ours, minus one, in the band in which another run would lie.

The band is our interval about 0, times sqrt(1 + n/m): n our and m the authors' number of chains;
and wider by half of the last digit that they wrote, if the run says which that is.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from concord_studies.figures import style
from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import NOTHING, Line, LinePanel
from concord_studies.results import Series


class Params(Layer):
    """The relative deviation of what authors recorded, in place of the estimate."""

    def show_line(self, line: Line) -> Line:
        """Return the line with the deviation, circles without a line, as its estimate."""
        ours, record, run = line.estimate, line.read("recorded"), line.run.run
        apart = NOTHING
        if record is not None:
            chains = run["chains"]
            stated = run.get("recorded") or {}
            factor = math.sqrt(1 + chains / (stated.get("chains") or chains))
            digits = stated.get("digits")
            rounding = 0 if digits is None else 0.5 / 10**digits  # of the record
            at = ours.take(np.searchsorted(ours.iteration, record.iteration))
            lo, hi = (
                factor * (end / at.value - 1) + side * rounding / at.value
                for side, end in ((-1, at.lo), (1, at.hi))
            )
            lo = np.maximum(lo, -1)  # no record is below zero
            apart = Series(record.iteration, record.value / at.value - 1, lo, hi)
        circles = {**style.CIRCLE, "markeredgecolor": line.look.color, "markersize": 2}
        circles |= {"markevery": None, "zorder": 2}
        return replace(line, estimate=apart, law=None, has_interval=True, drawn_as=circles)

    def draw(self, panel: LinePanel, axes: Axes) -> None:
        """Draw a line at 0 and the bands."""
        axes.axhline(0, **style.POINT, zorder=1.6)
        for line in panel.lines:
            band, look = line.estimate, {"color": line.look.color, **style.BAND, "zorder": 1.5}
            axes.fill_between(band.iteration, band.lo, band.hi, **look)

    def legend(self, panels: Sequence[LinePanel], labels: Collection[Any]) -> Iterator[Artist]:
        """Yield entries for the circles and the bands."""
        circle = {**style.CIRCLE, "markersize": 2, "markeredgecolor": style.GRAY}
        yield style.entry("recorded by the authors", **circle)
        yield Patch(color=style.GRAY, **style.BAND, label="95 % interval for another run")
