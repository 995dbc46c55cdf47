"""Maps of true label by predicted label: numbers of images, or mean probabilities.

Drawn from the metrics ``confusion_<set>_<true>_<predicted>`` and
``probability_<set>_<true>_<label>`` at a run's last iteration. What a researcher writes in a
paper's YAML (Parayil et al., Figs S4 to S7)::

    metric: confusion_mnist
    panels:
      - { title: SGD, select: { sampler: sgd } }
      - { title: C-ULA on SVHN, select: { sampler: c_ula }, metric: confusion_svhn }
    missing: { confusion_svhn: "not run: its file is missing" }

Counts are colored on a scale of their square roots, so that a few wrong ones can be seen. A panel
whose run lacks the metric is left out, and the text of ``missing`` stands below.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from concord.errors import ConcordError
from concord.options import Options, Some
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._panels import Cell, Panels, listed
from concord_studies.results import Measured

from ..predictive import Panel, numbers, run_of


class Params(Options):
    """Options of a figure of maps; see the module's text for an example."""

    panels: Annotated[Some[Panel], "panels, in reading order"]
    metric: Annotated[str | None, "metric of panels that name none"] = None
    missing: Annotated[
        dict[str, Any] | None,
        "texts for metrics of sets that may not have been run, {metric: text}",
    ] = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    named = [(panel.metric or params.metric, panel) for panel in params.panels]
    return [
        Read(f"{metric}_0_0", panel.select, (panel.agent,))
        for metric, panel in named
        if metric and metric not in (params.missing or {})
    ]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw maps of true by predicted label, one for each panel's run and agent."""
    missing = params.missing or {}
    maps, lacking = [], []
    for panel in params.panels:
        metric = panel.metric or params.metric
        if metric is None:
            raise ConcordError(f"panel {panel.title!r} names no metric; give it one, or the figure")
        run = run_of(panel, runs)
        values = numbers(run, f"{metric}_", panel.agent, metric in missing)
        if values is None:
            lacking.append(str(missing[metric]))
        else:
            maps.append((panel.title, run, values, metric.startswith("confusion")))
    cells = listed((title, [run]) for title, run, *_ in maps) or [Cell("", [], 0, 0)]
    across = 1 + max(cell.column for cell in cells)
    panels = Panels(cells, (3.1 if across < 3 else 2.3) if maps else 0.1)
    panels.label("predicted label", "true label")
    for (_, _, values, counts), ax in zip(maps, panels.axes, strict=False):
        _map(ax, values, counts, size=6.5 - across)
    return panels.with_legend([style.entry(t, linestyle="") for t in dict.fromkeys(lacking)])


def _map(axes: Axes, values: np.ndarray, counts: bool, size: float) -> None:
    """Draw a matrix of values as a colored map with a number in each cell."""
    finite = values[np.isfinite(values)]  # none of a run that diverged
    top = float(finite.max()) if counts and finite.size else 1.0
    norm = PowerNorm(0.5 if counts else 1.0, 0, top)
    axes.grid(False)
    axes.imshow(np.ma.masked_invalid(values), cmap="Blues", norm=norm, aspect="equal")
    for (row, column), value in np.ndenumerate(values):
        text = _text(value, counts)
        dark = np.isfinite(value) and norm(value) > 0.55
        axes.text(
            *(column, row, text),
            color="white" if dark else style.BLACK,
            fontsize=size,
            ha="center",
            va="center",
        )
    axes.set_xticks(range(values.shape[1]))
    axes.set_yticks(range(values.shape[0]))
    axes.tick_params(labelleft=True)  # the panel at the left may have none


def _text(value: float, counts: bool) -> str:
    """Return the text of a map's cell; "" where the value would round to zero."""
    if np.isnan(value):
        return ""
    rounded = f"{value:.0f}" if counts else f"{value:.2f}".lstrip("0")
    return "" if rounded in ("0", ".00") else rounded
