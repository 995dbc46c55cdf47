"""The scaling figure of the bench: time per agent, chain, point and iteration, as they grow.

A line that is flat is work that grows as its size. Each legend states the exponent of the time in
the size n, over the last two sizes.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench import AXES, Timing
from concord_studies.figures import style
from concord_studies.figures._axes import label_log_axis

Curve = dict[int, float]  # seconds by size


def curves(timings: Iterable[Timing], axis: str) -> dict[str, Curve]:
    """Return the seconds of each sampler's work by its size along an axis, sizes increasing."""
    found: dict[str, Curve] = {}
    for timing in timings:
        place = timing.case.place
        if place is not None and place.axis == axis:
            curve = found.setdefault(place.sampler, {})
            curve.setdefault(place.reference, timing.reference)
            curve[place.size] = timing.step
    return {sampler: dict(sorted(curve.items())) for sampler, curve in found.items()}


def slope(curve: Curve) -> float:
    """Return the exponent of the time in the size over the last two sizes."""
    (few, short), (many, long) = list(curve.items())[-2:]
    return math.log(long / short) / math.log(many / few)


@style.styled
def draw(timings: Sequence[Timing], paths: Sequence[Path]) -> None:
    """Draw one panel per axis with a line per sampler, and write it to the paths."""
    figure = Figure(figsize=(style.FULL, 4.2), layout="constrained")
    panels = list(figure.subplots(2, 2).ravel())
    for index, (axes, (name, axis)) in enumerate(zip(panels, AXES.items(), strict=True)):
        own = curves(timings, name)
        lines = []
        for (sampler, curve), look in zip(
            own.items(), style.looks("sampler", list(own)), strict=True
        ):
            microseconds = [1e6 * seconds / size for size, seconds in curve.items()]
            label = f"{style.name('sampler', sampler)}: $n^{{{slope(curve):.2f}}}$"
            line: Any = {"color": look.color, "marker": look.marker}
            axes.plot(list(curve), microseconds, **line)
            lines.append(Line2D([], [], label=label, **line))
        axes.set_xscale("log")
        axes.set_yscale("log")
        label_log_axis(axes.yaxis)
        axes.set_title(style.panel_title(index, axis.setting, len(panels)))
        axes.set_xlabel(f"{name}, $n$")
        what = "run" if name == "iterations" else "step"
        axes.set_ylabel(f"time of a {what} per {axis.unit} (µs)")
        axes.legend(handles=lines)
    style.save(figure, paths)
