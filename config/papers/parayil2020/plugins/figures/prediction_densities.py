"""Densities of the probability of the predicted label, one line per test set.

Drawn from the metrics ``confidence_density_<set>_<bin>`` at a run's last iteration. What a
researcher writes in a paper's YAML (Parayil et al., Fig S3)::

    panels:
      - { title: SGD, select: { sampler: sgd } }
      - { title: agent 1, select: { sampler: d_ula }, agent: 0 }
    sets: { mnist: MNIST, svhn: SVHN }
    missing: { svhn: "SVHN was not run: its file is missing" }

A set that no panel has is named below with its text in ``missing``; without one it is an error.
"""

import re
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
from concord_studies.figures._options import Limits
from concord_studies.figures._panels import Panels, limits, listed
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
    missing: Annotated[
        dict[str, Any] | None, "texts for sets that may not have been run, {name: text}"
    ] = None
    ylim: Annotated[Limits, "[low, high] of the density; null leaves a side to the data"] = None


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    names = [name for name in params.sets if name not in (params.missing or {})]
    return [
        Read(f"confidence_density_{name}_0", panel.select, (panel.agent,))
        for panel in params.panels
        for name in names
    ]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw densities of predictive probabilities, a panel for each run."""
    panels = Panels(listed((p.title, [run_of(p, runs)]) for p in params.panels), 1.45, width="full")
    missing = params.missing or {}
    looks = style.looks("set", list(params.sets))
    drawn = set()
    for panel, (cell, ax) in zip(params.panels, panels, strict=True):
        for name, look, pattern in zip(params.sets, looks, _PATTERNS, strict=False):
            metric = f"confidence_density_{name}_"
            density = numbers(cell.runs[0], metric, panel.agent, name in missing)
            if density is not None:
                bins = np.linspace(0, 1, len(density) + 1)
                look_of = {"color": look.color, "linewidth": 1.1, "linestyle": pattern}
                ax.stairs(density, bins, baseline=None, **look_of)
                drawn.add(name)
        ax.set_yscale("log")
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    panels.axes[0].set_ylim(*limits(params.ylim, "ylim"))  # of all of them
    label_log_axis(panels.axes[0].yaxis)
    panels.label("probability of the predicted label", "density")
    handles: list[Any] = [
        style.entry(text, color=look.color, linestyle=pattern)
        if name in drawn
        else style.entry(missing[name], linestyle="")
        for (name, text), look, pattern in zip(params.sets.items(), looks, _PATTERNS, strict=False)
    ]
    # What is missing comes last: it is no line.
    handles.sort(key=lambda handle: handle.get_linestyle() == "None")
    return panels.with_legend(handles)


# Sets that coincide are both seen; the first is the one that a sampler was trained on.
_PATTERNS: tuple[Any, ...] = ("-", "-.", (0, (2.2, 1.2)), (0, (5, 1, 1, 1, 1, 1)))


def run_of(panel: Panel, runs: Sequence[Measured]) -> Measured:
    """Return the only run that a panel selects."""
    return selection.only(selection.select(runs, panel.select), f"panel {panel.title!r}")


def numbers(run: Measured, prefix: str, agent: int, may_lack: bool) -> np.ndarray | None:
    """Return the values of the metrics ``<prefix><i>`` in the order of i.

    None where the run has none of them and ``may_lack`` allows that.
    """
    table = run.metrics[run.metrics["agent"] == str(agent)]
    found = {}
    for metric, value in zip(table["metric"], table["value"], strict=True):
        if index := re.fullmatch(re.escape(prefix) + r"(\d+)", metric):
            found[int(index[1])] = float(value)
    if not found:
        if may_lack:
            return None
        raise ConcordError(
            f"run {run.name} has no metrics {prefix}* of agent {agent}; add "
            "'predictions' to the metrics of its experiment, or choose another set or agent"
        )
    return np.array([found[place] for place in sorted(found)])
