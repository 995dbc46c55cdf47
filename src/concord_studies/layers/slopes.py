"""Powers of k, a line for each curve that falls, on log axes."""

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from concord_studies.figures import style
from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import LinePanel


class Params(Layer):
    """Lines k^p above the curves."""

    exponents: Annotated[tuple[float, ...], "exponents p of k, one beside each line in turn"]

    def draw(self, panel: LinePanel, axes: Axes) -> None:
        """Draw a power above each falling curve, named at its end if there are several."""
        for line, exponent in zip(panel.lines, self.exponents, strict=False):
            x, y = line.main.iteration, line.main.value
            shown = (x > 0) & (x >= (panel.params.x.limits[0] or 0)) & (y > 0)
            x, y = x[shown], y[shown]
            if not len(x) or y[-1] > 0.7 * y[0]:
                continue  # nothing that falls
            ends = x[[0, -1]]
            along = 1.35 * y[0] * (ends / x[0]) ** exponent
            axes.plot(ends, along, **style.POINT, zorder=1.9, label="_slope")
            if len(self.exponents) > 1:  # else the legend has its name
                look: dict[str, Any] = {"fontsize": style.SMALL, "color": style.NOTE, "ha": "left"}
                look |= {"va": "center", "textcoords": "offset points", "annotation_clip": False}
                axes.annotate(f"$k^{{{exponent:g}}}$", (ends[1], along[1]), (3, 0), **look)

    def legend(self, panels: Sequence[LinePanel], labels: Collection[Any]) -> Iterator[Artist]:
        """Yield an entry for a single power."""
        if len(self.exponents) == 1:
            yield style.entry(f"$k^{{{self.exponents[0]:g}}}$", **style.POINT)
