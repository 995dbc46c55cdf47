"""Maps of images by true and predicted label: their numbers, or mean probabilities.

Drawn from the metrics ``<metric>_<row>_<column>`` of one run and agent a panel, at the last
iteration. Counts are colored on a scale of their square roots, so that a few wrong ones can be
seen. A panel whose run lacks the metric is left out, and the text of ``missing`` stands below.
What a researcher writes in a paper's YAML (Parayil et al., Fig S4)::

    panels: [{ title: SGD, select: { sampler: sgd }, metric: confusion_mnist }]
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.colors import Normalize, PowerNorm, to_rgb
from matplotlib.figure import Figure

from concord.errors import ConcordError
from concord.options import Options, Some
from concord_studies import selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._maps import CellMap, draw_maps
from concord_studies.option_notes import NamesRuns
from concord_studies.results import Measured


class Panel(Options):
    """One map of values, of the run that it selects."""

    title: Annotated[str, "title of the panel"]
    metric: Annotated[str, "metric of the map"]
    select: Annotated[dict[str, Any] | None, NamesRuns("labels of its run, {label: value}")] = None


class Params(Options):
    """Options of maps by label; see the module's text for an example."""

    panels: Annotated[Some[Panel], "maps, in reading order"]
    missing: Annotated[
        dict[str, Any], "texts for metrics that may not have been run, {metric: text}"
    ] = {}  # noqa: RUF012


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    panels = [panel for panel in params.panels if panel.metric not in params.missing]
    return [Read(f"{panel.metric}_0_0", panel.select, (0,)) for panel in panels]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw a map for each panel, true labels down and predicted ones across."""
    maps, notes = _map_values(params, runs)
    panels = draw_maps(maps, runs, 3.1)
    panels.label("predicted label", "true label")
    return panels.with_legend(notes)


def _map_values(params: Params, runs: Sequence[Measured]) -> tuple[list[CellMap], list[Artist]]:
    """Return a map of values per panel, and legend entries for those without values."""
    maps, notes = [], {}
    for options in params.panels:
        metric, chosen = options.metric, selection.select(runs, options.select)
        run = selection.take_single(chosen, f"panel {options.title!r}")
        values = _read_matrix(run, metric)
        if values is None and metric in params.missing:
            text = str(params.missing[metric])
            notes[text] = style.entry(text, linestyle="")
            continue
        if values is None:
            raise ConcordError(
                f"run {run.name} has no metrics {metric}_* of agent 0; add their family "
                "to the metrics of its experiment, or choose another set"
            )
        counts = np.nanmax(values, initial=0) > 1
        finite = np.isfinite(values)
        norm = PowerNorm(0.5, 0, values[finite].max()) if counts else Normalize(0, 1)
        panel = CellMap(options.title, *([str(i) for i in range(size)] for size in values.shape))
        for place in zip(*np.nonzero(finite), strict=True):
            panel.colors[place] = to_rgb(matplotlib.colormaps["Blues"](norm(values[place])))
            text = f"{values[place]:.0f}" if counts else f"{values[place]:.2f}".lstrip("0")
            panel.texts[place] = "" if text in ("0", ".00") else text
        maps.append(panel)
    return maps, list(notes.values())


def _read_matrix(run: Measured, metric: str) -> np.ndarray | None:
    """Return agent 0's metrics ``<metric>_<row>_<column>`` as a matrix. None if it has none."""
    table = run.metrics[(run.metrics["agent"] == "0").to_numpy()]
    places = table["metric"].str.extract(rf"^{re.escape(metric)}_(\d+)_(\d+)$")
    places = places.set_axis(table["value"]).dropna().astype(int)
    if places.empty:
        return None
    rows, columns = places.to_numpy().T
    values = np.full((rows.max() + 1, columns.max() + 1), np.nan)
    values[rows, columns] = places.index
    return values
