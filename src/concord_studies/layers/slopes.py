"""Powers of k, a line for each curve that falls, on log axes."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
from matplotlib.axes import Axes

from concord.errors import ConcordError
from concord_studies import selection, words
from concord_studies.figures import style
from concord_studies.figures._axes import End
from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import LinePanel
from concord_studies.results import Measured


class Params(Layer):
    """Lines k^p above the curves, with their names at their ends."""

    exponents: Annotated[
        tuple[float | dict[str, float], ...],
        "exponents p of k, one beside each line in turn: numbers, or sums over settings of the "
        "line's run, {sampler.step_size.exponent: -1}",
    ]

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
                falling.append((line.run, x[[0, -1]], 1.35 * y[0]))
        powers = []
        for (run, ends, start), stated in zip(falling, self.exponents, strict=False):
            exponent = _sum_settings(run, stated) if isinstance(stated, dict) else stated
            powers.append((ends, start * (ends / ends[0]) ** exponent, exponent))
        return powers


def _sum_settings(run: Measured, factors: dict[str, float]) -> float:
    """Return the sum of settings of a run, each times its factor, by their dotted paths."""
    total = 0.0
    for path, factor in factors.items():
        setting = selection.lookup(run.run, path)
        if not words.is_number(setting):
            raise ConcordError(f"slopes: {path!r} is no number of the run {run.name}; name one")
        total += factor * setting
    return total
