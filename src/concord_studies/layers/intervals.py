"""Intervals of estimates: a band on a linear axis with at most two lines, else bars at some points.

On a log axis a bar that reaches 0 ends in a small arrow.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from concord_studies.figures import style
from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import Line, LinePanel


class Params(Layer):
    """Intervals of the estimates, as the metric has them."""

    says: ClassVar[str] = "95 % interval"

    def show_line(self, line: Line) -> Line:
        """Return the line with the intervals of its estimate."""
        return replace(line, has_interval=True)

    def draw(self, panel: LinePanel, axes: Axes) -> None:
        """Draw a band, or bars, for each line that has finite intervals."""
        low, high = axes.get_ylim()
        reach = (low / 100, high * 100) if panel.is_log else (2 * low - high, 2 * high - low)
        for index, line in enumerate(panel.lines):
            shown = line.estimate
            lo, hi = np.clip(shown.lo, *reach), np.clip(shown.hi, *reach)  # PDF cannot hold 1e300
            if not line.has_finite_interval or (line.is_muted and line.law is not None):
                continue  # such an estimate is not drawn
            if not panel.has_bars:
                look = {"color": line.look.color, **style.BAND}
                axes.fill_between(shown.iteration, lo, hi, **look, zorder=1.5)
                continue
            places = panel.choose_places(index, shown.iteration)
            at, color = shown.take(places), style.lighten(line.look.color)
            zorder = panel.place_above(index) - 0.6
            endless = panel.is_log & (at.lo < at.value / 10)
            lo = np.where(endless, at.value / 1.8, at.lo)
            axes.vlines(at.iteration, lo, hi[places], colors=color, linewidth=1.0, zorder=zorder)
            if endless.any():
                arrow: dict[str, Any] = {"marker": 11, "markersize": 3, "markeredgewidth": 0}
                arrow |= {"linestyle": "", "color": color, "label": "_to_zero", "zorder": zorder}
                axes.plot(at.iteration[endless], lo[endless], **arrow)

    def legend(self, panels: Sequence[LinePanel], labels: Collection[Any]) -> Iterator[Artist]:
        """Yield an entry for bars, and one for bands."""
        shown = [p for p in panels if any(line.has_finite_interval for line in p.lines)]
        over = all(panel.params.x.over for panel in panels)
        beneath = not over and any(line.law is not None for p in panels for line in p.lines)
        says = f"{'estimate, ' if beneath else ''}{self.says}"
        if any(panel.has_bars for panel in shown):
            bar: dict[str, Any] = {"marker": "|", "markersize": 8, "markeredgewidth": 1.0}
            bar |= {"linestyle": "-" if beneath else "", "linewidth": 0.7}
            arrow = ", arrow: to 0" if "_to_zero" in labels else ""
            yield style.entry(f"{says}{arrow}", **bar, color=style.lighten(style.GRAY))
        if not all(panel.has_bars for panel in shown):
            yield Patch(color=style.GRAY, **style.BAND, label=says)
