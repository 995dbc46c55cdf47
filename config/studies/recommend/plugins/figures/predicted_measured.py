"""Points of two metrics of each case against each other, with the diagonal and a factor of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from concord.options import Options
from concord_studies.contracts import Read
from concord_studies.results import Measured

ROUNDING = 1e-12  # b2 of what has hardly a bias is not shown


class Params(Options):
    """Nothing is left open."""


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that some of the runs must have."""
    return []


def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw both panels."""
    figure = Figure(figsize=(3.4, 6.0), layout="constrained")
    axes = figure.subplots(2, 1)
    panels = (("least", "score", "least $b^2$ by brute force", "$b^2$ of the answer"),
              ("predicted", "measured", "predicted $b^2$", "measured $b^2$"))  # fmt: skip
    for ax, (x_name, y_name, x_label, y_label) in zip(axes, panels, strict=True):
        ends = []
        for place, run in enumerate(run for run in runs if len(_read_cases(run, y_name))):
            x, y = _read_cases(run, x_name), _read_cases(run, y_name)
            doubted = _read_cases(run, "doubted")
            keys = [key for key in x if key in y]
            hollow = np.array([bool(doubted.get((*key[:2], "network"), 0)) for key in keys])
            points = np.array([(x[key], y[key]) for key in keys])
            points = np.where(np.isfinite(points) & (points > ROUNDING), points, np.nan)
            color, marker = f"C{place % 10}", "os"[place // 10]
            look = {"linestyle": "", "markersize": 3, "markeredgecolor": color, "mew": 0.7}
            network = str(run.run["labels"]["network"]).replace("_", " ")
            ax.plot(*points[~hollow].T, marker, mfc=color, label=network, **look)
            ax.plot(*points[hollow].T, marker, mfc="none", **look)
            ends.append(points[np.isfinite(points).all(axis=1)])
        whole = np.concatenate([end.ravel() for end in ends]) if ends else np.empty(0)
        if len(whole):
            line = np.array([whole.min() / 2, whole.max() * 2])
            ax.plot(line, line, color="0.4", lw=0.8)
            for factor in (0.5, 2):
                ax.plot(line, factor * line, color="0.4", lw=0.8, ls=":")
            ax.set(xscale="log", yscale="log", xlim=line, ylim=line)
            ax.xaxis.set_minor_formatter(NullFormatter())
            ax.yaxis.set_minor_formatter(NullFormatter())
            ax.legend(fontsize=6, frameon=False)
        ax.set(xlabel=x_label, ylabel=y_label)
    return figure


def _read_cases(run: Measured, name: str) -> dict[Any, float]:
    """Return a metric's values by case, name and agent."""
    table = run.metrics[run.metrics["metric"].str.startswith(f"{name}.")]
    columns = (table[column] for column in ("iteration", "metric", "agent", "value"))
    return {
        (int(iteration), metric.partition(".")[2], agent): value
        for iteration, metric, agent, value in zip(*columns, strict=True)
    }
