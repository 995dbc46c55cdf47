"""Pictures of traces and laws: positions over iterations, and distances to the posterior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

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
OTHERS = 60  # agents whose lines are gray
START = 3.0  # ranges of later values, on either side, within which earlier means are shown
LONG = 100  # iterations from which the axis of a law is logarithmic
BINS = 40
DRAWS = 20_000  # of a posterior that is not Gaussian, whose density is drawn
FAR = 1e-4  # of the floor, below every panel
POINTS = 60  # of a curve that are estimated from chains


@look.styled
def plot_trace(
    trace: Trace, coordinates: Sequence[object] | None = None, posterior: Posterior | None = None
) -> look.Picture:
    """Draw a row of each coordinate: the density of draws, and one chain over iterations.

    Lines are the first agents (solid), others in gray, and the average of all (dashed). The first
    tenth of the run is shaded; densities leave it out, and so do the axes' limits. Chains that
    diverged are left out where another did not.

    coordinates: numbers or names of those that are drawn; None: the first four. posterior: a
    problem, a Gaussian, or draws, whose density is drawn, too; None: none. Of a coordinate that
    agents hold for themselves it is that of each agent in color, dotted in a darker shade.
    """
    trace = trace.mask_diverged()
    sound = np.flatnonzero(trace["diverged_at"] < 0)
    chains = sound if sound.size else np.arange(trace.chains)
    chosen = choose_coordinates(trace, trace["x"].shape[-1], coordinates)
    late = trace.rows_after_warm_up()
    exact = None if posterior is None else read_posterior(trace, posterior)
    picture = look.Picture(figsize=(look.FULL, 1.4 * len(chosen) + 0.7), layout="constrained")
    panels = picture.subplots(len(chosen), 2, squeeze=False, width_ratios=[1, 2])
    styles = _agent_lines(trace, trace.agent)
    for (density, path), number in zip(panels, chosen, strict=True):
        lines = [(trace["x"][chains, :, place, number], line) for place, line in enumerate(styles)]
        if "x_average" in trace:
            average = {**_AVERAGE, "label": "average"}
            lines.append((trace["x_average"][chains, :, number], average))
        for values, line in lines:
            _draw_density(density, values[:, late].ravel(), line)
            path.plot(trace.draw, values[0], **{**line, "linewidth": 0.6, "label": None})
        shown = np.concatenate([values[0, late] for values, _ in lines])
        _limit(path, shown.min(), shown.max(), 0.1)
        path.axvspan(trace.draw[0], trace.draw[late[0]], label="left out of densities", **_LEFT_OUT)
        if trace.draw[-1] > trace.draw[0]:
            path.set_xlim(trace.draw[0], trace.draw[-1])
        if exact is not None:
            for of, line in _posterior_lines(exact, number, trace.agent[:AGENTS]).items():
                _draw_posterior(density, exact, of, number, line)
        name = trace.title_coordinate(number)
        density.set_xlabel(name)
        density.set_ylabel("density")
        density.set_ylim(bottom=0)
        density.set_title(f"densities, {name}")
        path.set_ylabel(name)
        path.set_title(f"chain {chains[0]}, {name}")
    many = f"{len(chains)} chains" if len(chains) > 1 else "one chain"
    panels[0, 0].set_title(f"{panels[0, 0].get_title(loc='left')} ({many})")
    if chains[0]:
        title = panels[0, 1].get_title(loc="left")
        panels[0, 1].set_title(f"{title} (the first that did not diverge)")
    _add_letters([*panels.flat])
    panels[-1, 1].set_xlabel("iteration")
    _name_divergence(picture, trace)
    _add_legend(picture, [*panels[:, 0], panels[0, 1]])
    return picture


@look.styled
def plot_law(
    law: Law, coordinates: Sequence[object] | None = None, posterior: Posterior | None = None
) -> look.Picture:
    """Draw the mean of each coordinate over iterations, and two standard deviations about it.

    Solid lines are the first agents, gray others, dashed the average of all agents: a mean, and
    thin lines two standard deviations above and below it. The axis of a long run is logarithmic,
    from iteration 1 on. The other shows what is left after a tenth of the run, all of the
    posterior's lines, and the means before, unless they start far away.

    coordinates: numbers or names of those that are drawn; None: the first four. posterior: a
    problem or a posterior, whose mean and standard deviations are drawn on top; None: none. Of a
    coordinate that agents hold for themselves they are those of the first agents, dotted.
    """
    dim = law.mean.shape[-1]
    chosen = choose_coordinates(law, dim, coordinates)
    exact = None if posterior is None else read_posterior(law, posterior)
    picture = look.Picture(figsize=(look.FULL, 1.6 * len(chosen) + 0.7), layout="constrained")
    panels = picture.subplots(len(chosen), 1, squeeze=False, sharex=True)[:, 0]
    at, late = law.iterations, law.iterations >= 0.1 * law.iterations[-1]
    styles = _agent_lines(law, np.arange(law.mean.shape[1]))
    for axes, number in zip(panels, chosen, strict=True):
        means, spread = law.mean[:, :, number], 2 * np.sqrt(law.cov[:, :, number, number])
        for agent, line in enumerate(styles):
            for sds in (0, -1, 1):
                level = means[:, agent] + sds * spread[:, agent]
                axes.plot(at, level, **{**line, **_thin(sds, 1.2 if agent < AGENTS else 0.7)})
        mean, sd = law.average_mean[:, number], np.sqrt(law.average_cov[:, number, number])
        line = {**_AVERAGE, "label": "average", "zorder": 2.1}
        width = 1.2 if exact is None else 2.2  # the posterior may lie on it
        for sds in (0, -2, 2):
            axes.plot(at, mean + sds * sd, **{**line, **_thin(sds, width)})
        low, high = (means - spread).min(axis=1), (means + spread).max(axis=1)
        shown = np.isfinite(high - low)
        ends = [*low[shown & late], *high[shown & late]]
        if exact is not None:
            centers, covs = exact.moments()
            centers, covs = centers.reshape(-1, dim), covs.reshape(-1, dim, dim)
            of_agents = range(min(AGENTS, law.mean.shape[1]))
            for of, line in _posterior_lines(exact, number, of_agents).items():
                for sds in (0, -2, 2):
                    level = centers[of, number] + sds * np.sqrt(covs[of, number, number])
                    axes.axhline(level, **{**line, **_thin(sds), "zorder": 2.5})
                    ends.append(level)
        if ends:
            least, most = min(ends), max(ends)
            early, room = means[shown & (at > 0)], START * (most - least)
            low_end = max(early.min(initial=least), least - room)
            _limit(axes, low_end, min(early.max(initial=most), most + room), 0.1)
        axes.plot([], [], color=look.BLACK, linewidth=0.5, label="mean ± 2 sd of each")
        axes.set_ylabel(f"mean of {law.title_coordinate(number)}")
        axes.set_title(law.title_coordinate(number) if len(chosen) > 1 else "")
    if at[-1] > LONG:
        panels[-1].set_xscale("log")
        panels[-1].set_xlim(at[at > 0][0], at[-1])
    _add_letters([*panels])
    panels[-1].set_xlabel("iteration")
    _name_divergence(picture, law)
    _add_legend(picture, panels)
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
    colors = [look.mix(color, look.BLACK, 0.65) for color in _OF_AGENTS]  # over lines of agents
    return {
        int(agent): {"color": color, **style} for agent, color in zip(agents, colors, strict=False)
    }


def _add_legend(picture: look.Picture, panels: Iterable[Axes]) -> None:
    """Add a legend of all lines in panels, each once."""
    handles: dict[str, Any] = {}
    for axes in panels:
        lines, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, lines, strict=True))
    place: dict[str, Any] = {
        "loc": "outside lower center",
        "ncols": len(handles) if len(handles) < 8 else 5,
    }
    picture.legend(list(handles.values()), list(handles), **place)


def _add_letters(panels: Sequence[Axes]) -> None:
    """Write (a), (b), ... before the titles of panels, if there are several."""
    for place, axes in enumerate(panels if len(panels) > 1 else ()):
        axes.set_title(f"({chr(ord('a') + place)}) {axes.get_title(loc='left')}")


def _limit(axes: Axes, low: float, high: float, margin: float) -> None:
    """Set the limits of y, with a part of the range on both sides; nothing if they are no numbers.

    Lines may leave the panel: a start that lies far away would squeeze all that follows.
    """
    room = margin * (high - low)
    if np.isfinite(room) and room > 0:
        axes.set_ylim(low - room, high + room)


def _thin(sds: int, width: float = 1.2) -> dict[str, Any]:
    """Return what the options of a mean's line become so many standard deviations away.

    The lines about a mean have no entry of their own in a legend.
    """
    return {"linewidth": width / 2, "label": None} if sds else {"linewidth": width}


def _name_divergence(picture: look.Picture, *results: Trace | Law) -> None:
    """Write on top of a picture which chains, or laws, diverged; nothing if none did."""
    if messages := [message for result in results if (message := result.divergence())]:
        text = "\n".join(messages)
        picture.suptitle(text, x=0.01, ha="left", fontsize=look.SMALL, color="#8a3b00")


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

    Solid is the worst agent, dashed the average of all agents, both with a 95 % interval where
    chance enters; dotted is the floor, what as many exact draws would show. Intervals are paler
    below it. Laws are broad and pale, beneath the lines of traces. Where a trace has too few chains
    for a distance of single draws, a level line is the distance of all draws after the warm-up. The
    axis at the right counts the posterior's width, the root of its covariance's trace.

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
        As of ``concord.w2``; where all chains of all results diverged.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> law = concord.law("de_sgld", problem, "ring", step_size=0.01, iterations=200)
    >>> concord.plot_w2(law, problem).axes[0].get_ylabel()
    '$W_2$ to the posterior'
    """
    named = name_results(results)
    picture = look.Picture(figsize=(look.FULL, 3.0), layout="constrained")
    axes, counts = picture.subplots(), set[int]()
    for place, (name, result) in enumerate(named.items()):
        color = look.PALETTE[place % len(look.PALETTE)]
        counts |= _draw_w2(axes, result, posterior, warm_up, name, color)
    values = [np.ravel(np.asarray(line.get_ydata(), dtype=float)) for line in axes.lines]
    if not any((np.isfinite(of) & (of > 0)).any() for of in values):
        lost = next(
            (text for of in named.values() if (text := of.divergence())), "none is positive"
        )
        raise ConcordError(f"plot_w2: there is no distance to draw: {lost}")
    _name_divergence(picture, *named.values())
    axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel("$W_2$ to the posterior")
    axes.plot([], [], color=look.BLACK, label="worst agent")
    axes.plot([], [], color=look.BLACK, linestyle=look.AVERAGE_STYLE, label="average of agents")
    if any(isinstance(result, Trace) for result in named.values()):
        interval = "95 % intervals (paler below the floor)"
        axes.fill_between([], [], color=look.BLACK, label=interval, **look.BAND)
        many = " or ".join(f"{count:,}" for count in sorted(counts)) or "as many"
        axes.plot([], [], label=f"floor: {many} exact draws", **look.FLOOR)
    for result in [*named.values()][:1]:
        _count_widths(axes, read_posterior(result, posterior))
    picture.legend(loc="outside lower center", ncols=3)
    return picture


# Of as many agents as are drawn; vermilion is the posterior's.
_OF_AGENTS = (look.BLUE, look.GREEN, look.PURPLE, "#8A8A2B")
_AVERAGE: dict[str, Any] = {"color": look.BLACK, "linestyle": look.AVERAGE_STYLE}
_LEFT_OUT: dict[str, Any] = {"color": look.GRAY, "alpha": 0.15, "linewidth": 0, "zorder": 0}
_LAW: dict[str, Any] = {"linewidth": 3.0, "alpha": 0.5, "zorder": 1.5}


def _agent_lines(result: Trace | Law, agents: Sequence[Any] | np.ndarray) -> list[dict[str, Any]]:
    """Return the matplotlib options of agents' lines, with labels; others than the first are gray.

    Lines of some agents are left out if there are very many; the label says so.
    """
    first = [
        {"color": color, "label": result.title_agent(agent)}
        for color, agent in zip(_OF_AGENTS, agents, strict=False)
    ]
    rest = len(agents) - len(first)
    count = f"the other {rest} agents" if rest > 1 else "the other agent"
    label = count if rest <= OTHERS else f"{OTHERS} of {count}"
    gray = {"color": look.mix(look.GRAY, "white", 0.4), "zorder": 0.9, "label": label}
    return [*first, *[gray] * min(rest, OTHERS)]


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
) -> set[int]:
    """Draw the distance of a result's worst agent, and of the average, with what chance leaves.

    Return the number of draws whose floor is drawn, if one is.
    """
    if isinstance(result, Law):
        distance = w2(result, posterior)
        draws, worst, average = result.iterations, *_split(distance.value)
        name += " (approximate)" * result.approximate
        axes.plot(draws, worst.max("agent"), color=color, label=name, **_LAW)
        axes.plot(draws, average, color=color, linestyle=look.AVERAGE_STYLE, **_LAW)
        return set()
    if result.chains >= count_least_chains(result["x"].shape[-1]):
        some = np.unique(np.linspace(0, len(result.draw) - 1, POINTS).astype(int))
        distance = w2(result.select_draws(some), posterior)
        draws, floor = result.draw[some], np.full(len(some), float(distance.floor))
        count = float(result.chains)
    else:
        first = int(result.draw[-1]) // 2 if warm_up is None else warm_up
        distance = w2(result, posterior, warm_up=first).expand_dims(draw=2)
        draws = np.array([first, result.draw[-1]])
        floor = np.full(2, float(distance.floor.max()))
        count = float(distance.draws.min())
    agents, average = _split(distance.value)
    at = agents.argmax("agent")
    axes.plot(draws, agents.max("agent"), color=color, label=name)
    axes.plot(draws, average, color=color, linestyle=look.AVERAGE_STYLE)
    axes.plot(draws, floor, **{**look.FLOOR, "color": color})
    ends = [_split(distance[end]) for end in ("lo", "hi")]
    for value, (lo, hi) in (
        (agents.max("agent"), [of_agents.isel(agent=at) for of_agents, _ in ends]),
        (average, [of_average for _, of_average in ends]),
    ):
        middle = np.where(lo < floor, np.minimum(floor, value), lo)
        axes.fill_between(draws, middle, hi, color=color, **look.BAND)
        _draw_below(axes, draws, lo.clip(FAR * floor), middle, color)
    return {round(count)} if np.isfinite(count) else set()


def _draw_below(axes: Axes, x: Any, low: Any, high: Any, color: str) -> None:
    """Draw a paler band, which may leave the panel: limits of axes do not follow it."""
    known = np.isfinite(low) & np.isfinite(high)
    corners = [np.column_stack([x, y])[known] for y in (low, high)]
    band = PolyCollection([np.concatenate([corners[0], corners[1][::-1]])], color=color)
    band.set(alpha=look.BAND["alpha"] / 4, linewidth=0)
    axes.add_collection(band, autolim=False)


def _split(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the distances of the agents, and that of their average, of both over draws."""
    return values.isel(agent=values.agent != "average"), values.sel(agent="average")
