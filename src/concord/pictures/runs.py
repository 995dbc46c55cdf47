"""Pictures of traces and laws: positions over iterations, and distances to the posterior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes

from concord.distances import Posterior, count_least_chains, name_results, read_posterior, w2
from concord.errors import ConcordError, require_known, short, suggest_names
from concord.laws.exact import Law
from concord.laws.gaussian import Gaussian
from concord.local_coordinates import PosteriorByAgent
from concord.pictures import look
from concord.reference import Reference
from concord.sampling.trace import Trace

if TYPE_CHECKING:
    import xarray as xr

COORDINATES = 4  # that are drawn if none are chosen
AGENTS = 4  # whose lines can be told apart
BINS = 40
DRAWS = 20_000  # of a posterior that is not Gaussian, whose density is drawn
POINTS = 60  # of a curve that are estimated from chains


@look.styled
def plot_trace(
    trace: Trace, coordinates: Sequence[object] | None = None, posterior: Posterior | None = None
) -> look.Picture:
    """Draw a row of each coordinate: the density of draws, and one chain over iterations.

    Lines are the first agents (solid), and the average of all (dashed). The first tenth of the run
    is shaded; densities leave it out, and so do the axes' limits.

    coordinates: numbers or names of those that are drawn; None: the first four. posterior: a
    problem, a Gaussian, or draws, whose density is drawn, too; None: none. Of a coordinate that
    agents hold for themselves it is that of each agent that is drawn, dotted in its color.
    """
    trace = trace.mask_diverged()
    x = trace["x"]
    chosen = choose_coordinates(trace, x.shape[-1], coordinates)
    late = trace.rows_after_warm_up()
    exact = None if posterior is None else read_posterior(trace, posterior)
    picture = look.Picture(figsize=(look.FULL, 1.4 * len(chosen) + 0.7), layout="constrained")
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
        shown = np.concatenate([values[0, late] for _, values, _ in lines])
        _limit(path, shown.min(), shown.max(), 0.1)
        path.axvspan(trace.draw[0], trace.draw[late[0]], label="left out of densities", **_LEFT_OUT)
        path.margins(x=0.01)
        if exact is not None:
            for of, line in _posterior_lines(exact, number, trace.agent[:AGENTS]).items():
                _draw_posterior(density, exact, of, number, line)
        density.set_xlabel(trace.title_coordinate(number))
        density.set_ylabel("density")
        density.set_ylim(bottom=0)
        path.set_ylabel(trace.title_coordinate(number))
    _add_letters([*panels.flat])
    panels[0, 0].set_title(f"{panels[0, 0].get_title(loc='left')} {_count_chains(trace)}")
    panels[0, 1].set_title(f"{panels[0, 1].get_title(loc='left')} the first chain")
    panels[-1, 1].set_xlabel("iteration")
    _name_divergence(picture, trace)
    _add_legend(picture, [*panels[:, 0], panels[0, 1]], len(trace.agent))
    return picture


@look.styled
def plot_law(
    law: Law, coordinates: Sequence[object] | None = None, posterior: Posterior | None = None
) -> look.Picture:
    """Draw the mean of each coordinate over iterations, and two standard deviations about it.

    Solid lines are the means of the first agents, in a band of all agents' means plus and minus two
    standard deviations; dashed are the same three of the average of all agents. The axis shows what
    is left after a tenth of the run, and all of the posterior's lines.

    coordinates: numbers or names of those that are drawn; None: the first four. posterior: a
    problem or a posterior, whose mean and standard deviations are drawn, too; None: none. Of a
    coordinate that agents hold for themselves they are those of the first agents, dotted.
    """
    dim = law.mean.shape[-1]
    chosen = choose_coordinates(law, dim, coordinates)
    exact = None if posterior is None else read_posterior(law, posterior)
    picture = look.Picture(figsize=(look.FULL, 1.6 * len(chosen) + 0.7), layout="constrained")
    panels = picture.subplots(len(chosen), 1, squeeze=False, sharex=True)[:, 0]
    at, late = law.iterations, law.iterations >= 0.1 * law.iterations[-1]
    for axes, number in zip(panels, chosen, strict=True):
        means, spread = law.mean[:, :, number], 2 * np.sqrt(law.cov[:, :, number, number])
        low, high = (means - spread).min(axis=1), (means + spread).max(axis=1)
        for agent, mean in enumerate(means.T[:AGENTS]):
            axes.plot(at, mean, label=law.title_agent(agent), **_agent_line(agent))
        mean, sd = law.average_mean[:, number], np.sqrt(law.average_cov[:, number, number])
        line = {**_AVERAGE, "label": "average"}
        for sds in (0, -2, 2):
            axes.plot(at, mean + sds * sd, **{**line, **_thin(line, sds)})
        every = "mean ± 2 sd of every agent"
        axes.fill_between(at, low, high, color=look.AGENTS[1], label=every, **look.BAND)
        shown = late & np.isfinite(high - low)
        ends = [*low[shown], *high[shown]]
        if exact is not None:
            centers, covs = exact.moments()
            centers, covs = centers.reshape(-1, dim), covs.reshape(-1, dim, dim)
            of_agents = range(min(AGENTS, law.mean.shape[1]))
            for of, line in _posterior_lines(exact, number, of_agents).items():
                for sds in (0, -2, 2):
                    level = centers[of, number] + sds * np.sqrt(covs[of, number, number])
                    axes.axhline(level, **{**line, **_thin(line, sds), "zorder": 1.9})
                    ends.append(level)
        if ends:
            _limit(axes, min(ends), max(ends), 0.15)
        axes.set_ylabel(law.title_coordinate(number))
    _add_letters([*panels])
    panels[-1].set_xlabel("iteration")
    _name_divergence(picture, law)
    _add_legend(picture, panels, law.mean.shape[1])
    return picture


def _posterior_lines(
    posterior: Reference, number: int, agents: Iterable[int]
) -> dict[int, dict[str, Any]]:
    """Return whose posterior of a coordinate is drawn, and the matplotlib options of its line.

    Keys are places among the agents and their average, the last. agents: that are drawn.
    """
    if not isinstance(posterior, PosteriorByAgent) or not posterior.local[number]:
        return {-1: {"label": "posterior", "color": look.VERMILION}}
    style = {"linestyle": look.FLOOR["linestyle"], "label": "posterior of that agent"}
    return {int(agent): {**_agent_line(place), **style} for place, agent in enumerate(agents)}


def _add_legend(picture: look.Picture, panels: Iterable[Axes], agents: int) -> None:
    """Add a legend of all lines in panels, each once; it says where not all agents are drawn."""
    handles: dict[str, Any] = {}
    for axes in panels:
        lines, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, lines, strict=True))
    title = f"{AGENTS} of {agents} agents" if agents > AGENTS else None
    place: dict[str, Any] = {
        "loc": "outside lower center",
        "ncols": len(handles) if len(handles) < 8 else 5,
    }
    picture.legend(list(handles.values()), list(handles), title=title, **place)


def _add_letters(panels: Sequence[Axes]) -> None:
    """Write (a), (b), ... above panels, if there are several."""
    for place, axes in enumerate(panels if len(panels) > 1 else ()):
        axes.set_title(f"({chr(ord('a') + place)})")


def _count_chains(trace: Trace) -> str:
    """Return as text of how many chains densities are."""
    return f"draws of {trace.chains} chains" if trace.chains > 1 else "draws of one chain"


def _limit(axes: Axes, low: float, high: float, margin: float) -> None:
    """Set the limits of y, with a part of the range on both sides; nothing if they are no numbers.

    Lines may leave the panel: a start that lies far away would squeeze all that follows.
    """
    room = margin * (high - low)
    if np.isfinite(room) and room > 0:
        axes.set_ylim(low - room, high + room)


def _thin(line: Mapping[str, Any], sds: int) -> dict[str, Any]:
    """Return what the options of a mean's line become so many standard deviations away.

    Both of these lines have one entry in a legend.
    """
    if not sds:
        return {"linewidth": 1.2}
    return {"linewidth": 0.7, "label": f"{line['label']} ± 2 sd" if sds > 0 else None}


def _name_divergence(picture: look.Picture, result: Trace | Law) -> None:
    """Write on top of a picture that chains, or a law, diverged; nothing if none did."""
    if message := result.divergence():
        picture.suptitle(message, x=0.01, ha="left", fontsize=look.SMALL, color="#8a3b00")


def choose_coordinates(result: Trace | Law, dim: int, chosen: Sequence[object] | None) -> list[int]:
    """Return the numbers of the coordinates that are drawn, of dim; None: the first few."""
    places = {result.title_coordinate(n): n for n in range(dim)} | {str(n): n for n in range(dim)}
    if isinstance(chosen, (int, str)):
        raise ConcordError(f"coordinates: {short(chosen)} is no list; give one, [{chosen!r}]")
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
    agents, dotted what as many exact draws would show. Laws are broad and pale, beneath the lines
    of traces. Where a trace has too few chains for a distance of single draws, a level line is the
    distance of all draws after the warm-up. The axis at the right counts the posterior's width,
    the root of its covariance's trace.

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
    picture = look.Picture(figsize=(look.FULL * 0.75, 3.0), layout="constrained")
    axes = picture.subplots()
    for place, (name, result) in enumerate(named.items()):
        color = look.PALETTE[place % len(look.PALETTE)]
        _draw_w2(axes, result, posterior, warm_up, name, color)
    axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel("$W_2$ to the posterior")
    axes.plot([], [], color=look.BLACK, label="worst agent")
    axes.plot([], [], color=look.BLACK, linestyle=look.AVERAGE_STYLE, label="average of agents")
    if any(isinstance(result, Trace) for result in named.values()):
        of_worst = "95 % interval of the worst agent"
        axes.fill_between([], [], color=look.BLACK, label=of_worst, **look.BAND)
        axes.plot([], [], label="as many exact draws", **look.FLOOR)
    for result in [*named.values()][:1]:
        _count_widths(axes, read_posterior(result, posterior))
    picture.legend(loc="outside lower center", ncols=3)
    return picture


# Of as many agents as are drawn; vermilion is the posterior's.
_OF_AGENTS = (look.BLUE, look.GREEN, look.PURPLE, look.GRAY)
_AVERAGE: dict[str, Any] = {"color": look.BLACK, "linestyle": look.AVERAGE_STYLE}
_LEFT_OUT: dict[str, Any] = {"color": look.GRAY, "alpha": 0.15, "linewidth": 0, "zorder": 0}
_LAW: dict[str, Any] = {"linewidth": 3.0, "alpha": 0.5, "zorder": 1.5}


def _agent_line(place: int) -> dict[str, Any]:
    """Return the matplotlib options of an agent's line."""
    return {"color": _OF_AGENTS[place % len(_OF_AGENTS)]}


def _draw_density(axes: Axes, values: np.ndarray, line: dict[str, Any]) -> None:
    """Draw a histogram of values as a line; values that are not finite are left out."""
    finite = values[np.isfinite(values)]
    heights, edges = np.histogram(finite, BINS, density=finite.size > 0)
    axes.stairs(heights, edges, linewidth=1.0, **line)


def _count_widths(axes: Axes, posterior: Reference) -> None:
    """Add an axis at the right for distances in units of the posterior's width."""
    if isinstance(posterior, PosteriorByAgent):  # each agent has a width of its own
        return
    width = float(np.sqrt(np.trace(posterior.moments()[1])))
    functions = (lambda values: values / width, lambda values: values * width)
    axes.secondary_yaxis("right", functions=functions).set_ylabel("in posterior widths")


def _draw_posterior(
    axes: Axes, posterior: Reference, of: int, number: int, line: dict[str, Any]
) -> None:
    """Draw the density of a posterior's coordinate: a curve of a Gaussian, else of draws.

    of: the place among agents and their average, the last. number: of the coordinate.
    """
    whole = posterior.whole if isinstance(posterior, PosteriorByAgent) else posterior
    if isinstance(whole, Gaussian):
        means, covs = posterior.moments()
        dim = means.shape[-1]
        mean = means.reshape(-1, dim)[of, number]
        sd = np.sqrt(covs.reshape(-1, dim, dim)[of, number, number])
        at = np.linspace(-4, 4, 161)
        axes.plot(mean + sd * at, np.exp(-(at**2) / 2) / (sd * np.sqrt(2 * np.pi)), **line)
        return
    draws = posterior.sample(DRAWS, np.random.default_rng(0))
    _draw_density(axes, draws.reshape(DRAWS, -1, draws.shape[-1])[:, of, number], line)


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
        name += " (approximate)" * result.approximate
        axes.plot(draws, worst.max("agent"), color=color, label=name, **_LAW)
        axes.plot(draws, average, color=color, linestyle=look.AVERAGE_STYLE, **_LAW)
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
