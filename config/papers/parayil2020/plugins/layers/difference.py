"""Each line minus the mean of all lines, at the iterations that all have, without intervals."""

import functools
from dataclasses import replace

import numpy as np

from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import LinePanel
from concord_studies.results import Series


class Params(Layer):
    """Estimates minus the mean of all, in their place."""

    def show(self, panel: LinePanel) -> LinePanel:
        """Return the panel with each line replaced by its difference from the mean of all."""
        shown = [line.estimate for line in panel.lines]
        x = functools.reduce(np.intersect1d, (series.iteration for series in shown))
        values = [series.value[np.isin(series.iteration, x)] for series in shown]
        lines = [
            replace(line, estimate=Series.without_intervals(x, apart), law=None)
            for line, apart in zip(panel.lines, values - np.mean(values, axis=0), strict=True)
        ]
        return replace(panel, lines=lines)
