"""Posteriors of two parameters: a map of each agent's draws under contours of the exact density.

Drawn from the metric family ``posterior_density``; the first panel is the exact posterior. The
contours enclose the stated parts of the exact posterior's mass.

What a researcher writes in a paper's YAML (Bhar et al., Fig 1)::

    agents: [0, 1, 2, 3, 4]
    distance: w1_marginal
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from concord.options import Options, Some
from concord_studies import results, selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._exact import EXACT, LINE, Exact, density_of
from concord_studies.figures._options import AxisNames, Mass
from concord_studies.figures._panels import Panels, listed
from concord_studies.option_notes import NamesRuns
from concord_studies.results import Measured


class Params(Options):
    """Options of maps of the posterior density of two parameters."""

    agents: Annotated[Some[int] | None, "agents with a panel; none: all"] = None
    select: Annotated[dict | None, NamesRuns("the run drawn: {label: value}")] = None
    mass: Mass = (0.5, 0.8, 0.95)
    distance: Annotated[str | None, "metric written in each agent's panel"] = None
    symbol: Annotated[str, "how that metric is called there"] = "$W_1$"
    printed: Annotated[
        Some[float] | None, "printed values of that metric, one for each agent, written beside it"
    ] = None
    axes: AxisNames = (r"$\theta_1$", r"$\theta_2$")


def reads(params: Params) -> list[Read]:
    """Return the metrics that the runs of the figure must have."""
    names = ["density", *([params.distance] if params.distance else [])]
    return [Read(name, params.select, params.agents or ()) for name in names]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw maps of the agents' and the exact posterior density, of one run."""
    run = selection.only(selection.select(runs, params.select), "the figure")
    agents = params.agents
    if agents is None:
        table = run.metrics[(run.metrics["metric"] == "density").to_numpy()]
        agents = tuple(int(a) for a in dict.fromkeys(table["agent"]) if a != EXACT)
    shown: list[int | str] = [EXACT, *agents]
    cells = listed((_title(run, agent, params), [run]) for agent in shown)
    panels = Panels(cells, 2.05, width="full")
    exact = Exact.from_run(run, params.mass)
    densities = [density_of(run, agent) for agent in shown]
    for density, axes in zip(densities, panels.axes, strict=True):
        shades = exact.shade(axes, density, vmax=1.05 * exact.density.max())
        exact.contour(axes)
    bar = panels.figure.colorbar(shades, ax=panels.axes, aspect=40, pad=0.01)
    bar.set_label("density", fontsize=style.RC["axes.labelsize"])
    bar.outline.set_linewidth(style.RC["axes.linewidth"])
    panels.label(*params.axes)
    parts = ", ".join(f"{100 * part:g}" for part in params.mass)
    handles = [style.entry(f"contours around {parts} % of the exact posterior", **LINE)]
    outside = 100 * (1 - min(density.sum() for density in densities[1:]) * exact.area)
    if outside >= 0.05:
        text = f"at most {outside:.1f} % of an agent's draws lie outside the panels"
        handles.append(style.entry(text, linestyle=""))
    return panels.with_legend(handles)


def _title(run: Measured, agent: int | str, params: Params) -> str:
    """Return the title of an agent's map, with its distance and the printed one."""
    if agent == EXACT:
        return "exact posterior"
    text = style.name("agent", agent)
    if params.distance is None:
        return text
    distance = results.series(run, params.distance, agent)
    value, lo, hi = distance.value[-1], distance.lo[-1], distance.hi[-1]
    spread = f" ± {(hi - lo) / 2:.3f}" if np.isfinite(lo) else ""
    printed = dict(enumerate(params.printed or ())).get(int(agent))
    print_has = "" if printed is None else f", print {printed:g}"
    return f"{text}\n{params.symbol} {value:.3f}{spread}{print_has}"
