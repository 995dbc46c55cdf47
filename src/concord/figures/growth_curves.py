"""How a metric grows with a number that runs differ in, with the fitted exponent.

The exponent is the least-squares slope of the logarithms over the finite values; where there are
several data sets, its mean over them, with a 95 % interval, and points are their medians. Hollow
points are estimated from chains, the others exact. What a researcher writes in a study's YAML::

    x: agents
    metric: gradients_to_0.01
    lines: entry
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from concord import scores, selection
from concord.contracts import Read
from concord.figures import _panels, style
from concord.figures._options import Names, Select
from concord.laws.intervals import mean_interval
from concord.options import NamesLabel, Options, Some
from concord.results import Measured

KIND = "figure growth_curves"


class Params(Options):
    """Options of curves of growth."""

    x: Annotated[str, NamesLabel("label with numbers along the x axis")]
    metric: Annotated[Some[str], "metrics, a panel for each"]
    lines: Annotated[str, NamesLabel("label that colors tell apart")]
    agent: Annotated[int | str, "agent whose metric it is"] = "worst"
    titles: Annotated[dict[str, str] | None, "titles of panels: {metric: text}"] = None
    xlabel: Annotated[str | None, "text of the x axis; none: the label"] = None
    select: Select = None
    names: Names = None


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs must have."""
    return list(params.metric)


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the figure; what is infinite is left out, and its line ends before."""
    shown = selection.select(runs, params.select, KIND)
    cells = _panels.by_metric(params.metric, params.titles, shown)
    figure, axes = _panels.axes_of(cells, "none", "auto", 2.5)
    groups = selection.split(shown, params.lines, KIND)
    looks = style.looks(params.lines, [value for value, _ in groups])
    labels = {i: style.name(params.lines, v, params.names) for i, (v, _) in enumerate(groups)}
    seen: set[style.Look] = set()
    numbers = sorted({float(selection.lookup(m.run, params.x)) for m in shown})
    for metric, ax in zip(params.metric, axes, strict=True):
        for place, ((_, own), look) in enumerate(zip(groups, looks, strict=True)):
            points = {
                float(selection.lookup(run.run, params.x)): (
                    scores.of_sets(run, metric, params.agent),
                    scores.estimated(run),
                )
                for run in own
            }
            x = np.array(sorted(n for n, (values, _) in points.items() if len(values)))
            y = np.array([points[n][0] for n in x]).reshape(
                len(x), -1 if len(x) else 1
            )  # (numbers, sets)
            middle = np.median(y, axis=1)
            means = np.where(np.isfinite(middle) & (middle > 0), middle, np.nan)
            ax.plot(x, means, ms=3, lw=1, **look.line)
            if np.isfinite(means).any():
                seen.add(look)
            drawn = np.array([points[n][1] for n in x], dtype=bool)
            ax.plot(x[drawn], means[drawn], "o", ms=4, mfc="w", mec=look.color)
            if len(params.metric) == 1 and (text := _exponent(x, y)):
                labels[place] += f" ({text})"
        ax.set_xscale("log", base=2)
        ax.set_yscale("log" if seen else "linear")  # a log scale needs a point
        ax.set_xticks(numbers, [f"{n:g}" for n in numbers])
        ax.minorticks_off()
    _panels.label(cells, axes, "none", params.xlabel or params.x, "")
    if len(cells) == 1:
        axes[0].set_ylabel(cells[0].title)
        axes[0].set_title("")
    lines = zip(labels.values(), looks, strict=True)
    style.legend_of(figure, style.entries_drawn(axes[0], lines, seen))
    return figure


def _exponent(x: np.ndarray, y: np.ndarray) -> str:
    """Return the slope of the logarithms, of each data set, with its interval over them."""
    slopes = []
    for own in y.T:
        sound = np.isfinite(own) & (own > 0)
        if sound.sum() >= 3:
            slopes.append(np.polyfit(np.log(x[sound]), np.log(own[sound]), 1)[0])
    if len(slopes) < 2:
        return f"{slopes[0]:.1f}" if slopes else ""
    mean, lo, _ = mean_interval(np.array(slopes))
    return f"{mean:.2f} ± {max(mean - lo, 0.01):.2f}"
