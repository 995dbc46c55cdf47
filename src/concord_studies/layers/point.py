"""The distance of a point mass at the posterior's mean, ``<metric>_point``, as a level line."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from matplotlib.artist import Artist

from concord_studies.figures import style
from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import Level, LinePanel


class Params(Layer):
    """Gray lines at the metric of a point mass, one for each posterior shown."""

    companion: ClassVar[str] = "point"

    def show(self, panel: LinePanel) -> LinePanel:
        """Return the panel with the point masses of its posteriors."""
        metric = f"{panel.params.metric.removesuffix('_exact')}_point"
        first = (value for run in panel.cell.runs for value in run.values(metric)[:1])
        values = dict.fromkeys(float(f"{value:.6g}") for value in first)
        levels = [Level(value, "point", style.POINT) for value in values]
        return replace(panel, levels=[*panel.levels, *levels])

    def legend(self, panels: Sequence[LinePanel], labels: Collection[Any]) -> Iterator[Artist]:
        """Yield an entry if a point mass is within its panel."""
        if "_point" in labels:
            yield style.entry("a point at the posterior's mean", **style.POINT)
