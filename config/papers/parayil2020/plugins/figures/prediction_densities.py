"""Densities of the probability of the predicted label, one line per test set.

Drawn from the metrics ``confidence_density_<set>_<bin>`` at a run's last iteration. What a
researcher writes in a paper's YAML (Parayil et al., Fig S3)::

    panels:
      - { title: SGD, select: { sampler: sgd } }
      - { title: agent 1, select: { sampler: d_ula }, agent: 0 }
    sets: { mnist: MNIST, svhn: SVHN }
    ylim: [0.003, 60]
    missing: { svhn: "SVHN was not run: its file is missing" }

A set that no panel has is named below with its text in ``missing``; without one it is an error.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.figure import Figure

from concord.errors import ConcordError
from concord.options import Index, Options, Some
from concord_studies import selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._axes import label_log_axis
from concord_studies.figures.panels import Panels, arrange_panels
from concord_studies.option_notes import NamesRuns
from concord_studies.results import Measured


class Panel(Options):
    """One panel, with the run that it selects."""

    title: Annotated[str, "title of the panel"]
    select: Annotated[dict[str, Any] | None, NamesRuns("labels of its run, {label: value}")] = None
    agent: Annotated[Index, "agent whose predictions are shown"] = 0


class Params(Options):
    """Options of a figure of densities; see the module's text for an example."""

    panels: Annotated[Some[Panel], "panels, in reading order"]
    sets: Annotated[dict[str, Any], "test sets shown, {name: text in the legend}"]
    ylim: Annotated[tuple[float, float], "[low, high] of the density"]
    missing: Annotated[
        dict[str, Any], "texts for sets that may not have been run, {name: text}"
    ] = {}  # noqa: RUF012


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    names = [name for name in params.sets if name not in params.missing]
    return [
        Read(f"confidence_density_{name}_0", panel.select, (panel.agent,))
        for panel in params.panels
        for name in names
    ]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw densities of predictive probabilities, a panel for each run."""
    cells = []
    for p in params.panels:
        run = selection.take_single(selection.select(runs, p.select), f"panel {p.title!r}")
        cells.append((p.title, [run]))
    panels = Panels(arrange_panels(cells), 1.45, width="full")
    colors = [look.color for look in style.looks("set", list(params.sets))]
    looks: dict[str, dict[str, Any]] = {
        name: {"color": color, "linestyle": pattern}
        for name, color, pattern in zip(params.sets, colors, _PATTERNS, strict=False)
    }
    drawn = set()
    for panel, (cell, ax) in zip(params.panels, panels, strict=True):
        for name, look in looks.items():
            density = _read_density(cell.runs[0], name, panel.agent)
            if len(density):
                bins = np.linspace(0, 1, len(density) + 1)
                ax.stairs(density, bins, baseline=None, linewidth=1.1, **look)
                drawn.add(name)
            elif name not in params.missing:
                raise ConcordError(
                    f"run {cell.runs[0].name} has no confidence_density_{name}_* of agent "
                    f"{panel.agent}; choose another set or agent, or say in missing why"
                )
        ax.set_yscale("log")
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    panels.axes[0].set_ylim(*params.ylim)  # of all of them
    label_log_axis(panels.axes[0].yaxis)
    panels.label("probability of the predicted label", "density")
    entries = [
        style.entry(params.sets[name], **look) for name, look in looks.items() if name in drawn
    ]
    notes = [style.entry(params.missing[name], linestyle="") for name in looks if name not in drawn]
    return panels.with_legend([*entries, *notes])


# Sets that coincide are both seen; the first is the one that a sampler was trained on.
_PATTERNS: tuple[Any, ...] = ("-", "-.", (0, (2.2, 1.2)), (0, (5, 1, 1, 1, 1, 1)))


def _read_density(run: Measured, name: str, agent: int) -> np.ndarray:
    """Return the density on a test set in the order of its bins; empty where the run has none."""
    prefix, table = f"confidence_density_{name}_", run.metrics
    rows = table[(table["agent"] == str(agent)) & table["metric"].str.startswith(prefix)]
    bins = rows["metric"].str.removeprefix(prefix).astype(int)
    return rows["value"].to_numpy()[np.argsort(bins)]
