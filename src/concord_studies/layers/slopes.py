"""Powers of k, a line for each curve that falls, on log axes."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from matplotlib.axes import Axes

from concord_studies.figures import style
from concord_studies.figures._axes import End
from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import LinePanel


class Params(Layer):
    """Lines k^p above the curves, with their names at their ends."""

    exponents: Annotated[tuple[float, ...], "exponents p of k, one beside each line in turn"]

    def draw(self, panel: LinePanel, axes: Axes) -> None:
        """Draw a power above each falling curve."""
        for ends, along, _ in self._list_powers(panel):
            axes.plot(ends, along, **style.POINT, zorder=1.9, label="_slope")

    def list_ends(self, panel: LinePanel) -> Iterator[End]:
        """Yield the name of each power."""
        for ends, along, exponent in self._list_powers(panel):
            yield End(f"$k^{{{exponent:g}}}$", style.NOTE, float(ends[1]), float(along[1]))

    def _list_powers(self, panel: LinePanel) -> list[tuple[np.ndarray, np.ndarray, float]]:
        """Return the ends of the line of each power, x and y, and its exponent."""
        falling = []
        for line in panel.lines:
            x, y = line.main.iteration, line.main.value
            shown = (x > 0) & (x >= (panel.params.x.limits[0] or 0)) & (y > 0)
            x, y = x[shown], y[shown]
            if len(x) and y[-1] <= 0.7 * y[0]:
                falling.append((x[[0, -1]], 1.35 * y[0]))
        return [
            (ends, start * (ends / ends[0]) ** exponent, exponent)
            for (ends, start), exponent in zip(falling, self.exponents, strict=False)
        ]
