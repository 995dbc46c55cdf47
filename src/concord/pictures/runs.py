"""Pictures of traces and laws: positions over iterations, and distances to the posterior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from concord.distances import Posterior, count_least_chains, name_results, read_posterior, w2
from concord.errors import require_known, suggest_names
from concord.laws.exact import Law
from concord.pictures import look
from concord.sampling.trace import Trace

if TYPE_CHECKING:
    import xarray as xr

COORDINATES = 4  # that are drawn if none are chosen
AGENTS = 4  # whose lines can be told apart
BINS = 40
DRAWS = 20_000  # of the posterior, whose density is drawn
POINTS = 60  # of a curve that are estimated from chains


@look.styled
def plot_trace(
    trace: Trace, coordinates: Sequence[object] | None = None, posterior: Posterior | None = None
) -> look.Picture:
    """Draw a row of each coordinate: the density of draws, and one chain over iterations.

    Lines are the first agents (solid), and the average of all (dashed), after a tenth of the run.

    coordinates: numbers or names of those that are drawn; None: the first four. posterior: a
    problem, a Gaussian, or draws, whose density is drawn, too; None: none.
    """
    trace = trace.mask_diverged()
    x = trace["x"]
    chosen = choose_coordinates(trace, x.shape[-1], coordinates)
    late = trace.rows_after_warm_up()
    picture = look.Picture(figsize=(look.FULL, 1.3 * len(chosen) + 0.6), layout="constrained")
    panels = picture.subplots(len(chosen), 2, squeeze=False, width_ratios=[1, 2])
    for (density, path), number in zip(panels, chosen, strict=True):
        lines = [
            (trace.title_agent(agent), x[:, :, place, number], _agent_line(place))
            for place, agent in enumerate(trace.agent[:AGENTS])
        ]
        if "x_average" in trace:
            lines.append(("average", trace["x_average"][:, :, number], _AVERAGE))
        for label, values, line in lines:
            _draw_density(density, values[:, late].ravel(), {"label": label, **line})
            path.plot(trace.draw, values[0], **{**line, "linewidth": 0.6})
        if posterior is not None:
            exact = read_posterior(trace, posterior).sample(DRAWS, np.random.default_rng(0))
            _draw_density(
                density, exact[:, number], {"label": "posterior", "color": look.VERMILION}
            )
        density.set_xlabel(trace.title_coordinate(number))
        density.set_yticks([])
        path.set_ylabel(trace.title_coordinate(number))
    panels[0, 0].set_title(f"density of {trace.chains} chains")
    panels[0, 1].set_title("the first chain")
    panels[-1, 1].set_xlabel("iteration")
    _name_divergence(picture, trace)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return picture


@look.styled
def plot_law(
    law: Law, coordinates: Sequence[object] | None = None, posterior: Posterior | None = None
) -> look.Picture:
    """Draw the mean of each coordinate over iterations, and two standard deviations about it.

    Solid lines are the means of the first agents, in a band of all agents' means plus and minus two
    standard deviations; dashed are the same three of the average of all agents. The axis shows what
    is left after a tenth of the run.

    coordinates: numbers or names of those that are drawn; None: the first four. posterior: a
    problem or a posterior, whose mean and standard deviations are drawn, too; None: none.
    """
    chosen = choose_coordinates(law, law.mean.shape[-1], coordinates)
    picture = look.Picture(figsize=(look.FULL, 1.3 * len(chosen) + 0.6), layout="constrained")
    panels = picture.subplots(len(chosen), 1, squeeze=False, sharex=True)[:, 0]
    at, late = law.iterations, law.iterations >= 0.1 * law.iterations[-1]
    for axes, number in zip(panels, chosen, strict=True):
        means, spread = law.mean[:, :, number], 2 * np.sqrt(law.cov[:, :, number, number])
        low, high = (means - spread).min(axis=1), (means + spread).max(axis=1)
        axes.fill_between(at, low, high, color=look.AGENTS[1], **look.BAND)
        for agent, mean in enumerate(means.T[:AGENTS]):
            axes.plot(at, mean, label=law.title_agent(agent), **_agent_line(agent))
        mean, sd = law.average_mean[:, number], np.sqrt(law.average_cov[:, number, number])
        axes.plot(at, mean, label="average", **_AVERAGE)
        for end in (mean - 2 * sd, mean + 2 * sd):
            axes.plot(at, end, **{**_AVERAGE, "linewidth": 0.8})
        shown = late & np.isfinite(high - low)
        if shown.any():
            bottom, top = low[shown].min(), high[shown].max()
            axes.set_ylim(bottom - 0.3 * (top - bottom), top + 0.3 * (top - bottom))
        if posterior is not None:
            center, cov = read_posterior(law, posterior).moments()
            for sds in (-2, 0, 2):
                level = center[number] + sds * np.sqrt(cov[number, number])
                label = "posterior" if sds == 0 else None
                axes.axhline(level, color=look.VERMILION, linewidth=0.8, label=label)
        axes.set_ylabel(law.title_coordinate(number))
    panels[-1].set_xlabel("iteration")
    _name_divergence(picture, law)
    handles, labels = panels[0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(handles))
    return picture


def _name_divergence(picture: look.Picture, result: Trace | Law) -> None:
    """Write on top of a picture that chains, or a law, diverged; nothing if none did."""
    if message := result.divergence():
        picture.suptitle(message, x=0.01, ha="left", fontsize=look.SMALL, color="#8a3b00")


def choose_coordinates(result: Trace | Law, dim: int, chosen: Sequence[object] | None) -> list[int]:
    """Return the numbers of the coordinates that are drawn, of dim; None: the first few."""
    places = {result.title_coordinate(n): n for n in range(dim)} | {str(n): n for n in range(dim)}
    for name in chosen or ():
        require_known("coordinate", str(name), places, "coordinates")
    every = range(min(dim, COORDINATES))
    return [*every] if chosen is None else [places[str(name)] for name in chosen]


@suggest_names
@look.styled
def plot_w2(
    results: Mapping[str, Trace | Law] | Iterable[Trace | Law] | Trace | Law,
    posterior: Posterior,
    *,
    warm_up: int | None = None,
) -> look.Picture:
    """Draw the 2-Wasserstein distance to the posterior over iterations, of traces and laws.

    Solid is the worst agent, with a 95 % interval where chance enters, dashed the average of all
    agents, dotted what as many exact draws would show. Where a trace has too few chains for a
    distance of single draws, a level line is the distance of all draws after the warm-up.

    Parameters
    ----------
    results
        Traces and laws by name, or as a list; or one of them.
    posterior
        As of ``concord.w2``.
    warm_up
        The iteration after which draws of few chains are pooled; none: half of the run.

    Returns
    -------
    matplotlib.figure.Figure
        A picture, which notebooks show; ``savefig`` writes it.

    Raises
    ------
    ConcordError
        As of ``concord.w2``.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> law = concord.law("de_sgld", problem, "ring", step_size=0.01, iterations=200)
    >>> concord.plot_w2(law, problem).axes[0].get_ylabel()
    '$W_2$ to the posterior'
    """
    named = name_results(results)
    picture = look.Picture(figsize=(look.FULL * 0.7, 2.8), layout="constrained")
    axes = picture.subplots()
    for place, (name, result) in enumerate(named.items()):
        color = look.PALETTE[place % len(look.PALETTE)]
        _draw_w2(axes, result, posterior, warm_up, name, color)
    axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel("$W_2$ to the posterior")
    axes.plot([], [], color=look.BLACK, linestyle=look.AVERAGE_STYLE, label="average of agents")
    picture.legend(loc="outside lower center", ncols=min(len(named) + 2, 4))
    return picture


_AVERAGE: dict[str, Any] = {"color": look.BLACK, "linestyle": look.AVERAGE_STYLE}


def _agent_line(place: int) -> dict[str, Any]:
    """Return the matplotlib options of an agent's line."""
    return {"color": look.AGENTS[place % len(look.AGENTS)]}


def _draw_density(axes: Axes, values: np.ndarray, line: dict[str, Any]) -> None:
    """Draw a histogram of values as a line; values that are not finite are left out."""
    finite = values[np.isfinite(values)]
    heights, edges = np.histogram(finite, BINS, density=finite.size > 0)
    axes.stairs(heights, edges, linewidth=1.0, **line)


def _draw_w2(
    axes: Axes,
    result: Trace | Law,
    posterior: Posterior,
    warm_up: int | None,
    name: str,
    color: str,
) -> None:
    """Draw the distance of a result's worst agent, and of the average, with what chance leaves."""
    if isinstance(result, Law):
        distance = w2(result, posterior)
        draws, worst, average = result.iterations, *_split(distance.value)
        axes.plot(draws, worst.max("agent"), color=color, label=name)
        axes.plot(draws, average, color=color, linestyle=look.AVERAGE_STYLE)
        return
    if result.chains >= count_least_chains(result["x"].shape[-1]):
        some = np.unique(np.linspace(0, len(result.draw) - 1, POINTS).astype(int))
        distance = w2(result.select_draws(some), posterior)
        draws, floor = result.draw[some], np.full(len(some), float(distance.floor))
    else:
        first = int(result.draw[-1]) // 2 if warm_up is None else warm_up
        distance = w2(result, posterior, warm_up=first).expand_dims(draw=2)
        draws = np.array([first, result.draw[-1]])
        floor = np.full(2, float(distance.floor.max()))
    agents, average = _split(distance.value)
    at = agents.argmax("agent")
    lo, hi = (_split(distance[end])[0].isel(agent=at) for end in ("lo", "hi"))
    axes.plot(draws, agents.max("agent"), color=color, label=name)
    axes.fill_between(draws, lo, hi, color=color, **look.BAND)
    axes.plot(draws, average, color=color, linestyle=look.AVERAGE_STYLE)
    axes.plot(draws, floor, **{**look.FLOOR, "color": color})


def _split(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the distances of the agents, and that of their average, of both over draws."""
    return values.isel(agent=values.agent != "average"), values.sel(agent="average")
