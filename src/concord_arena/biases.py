"""``bias_map``: the stationary bias of SGLD by step size, batch size and network, exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
from msgspec import structs

from concord.arguments import class_of, network_for
from concord.errors import ConcordError, short, suggest_names
from concord.laws import exact
from concord.laws.law import compose_cycle, update_of
from concord.laws.read_off import NoLaw
from concord.minibatches import Batches
from concord.options import build
from concord.problem import Problem
from concord.sampler import Algorithm
from concord_arena import scores

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concord.networks.network import Network

SETTLED = 4096  # an iteration whose step stands for all where none is known to repeat


@dataclass(frozen=True)
class BiasMap:
    """What ``concord.bias_map`` returns: the stationary bias, by network, batch and step size.

    Attributes
    ----------
    table
        A row for each network, batch size (0: full gradients) and step size. Of the worst agent
        ``w2`` is the 2-Wasserstein distance to the posterior over the root of its trace,
        ``mean_error`` and ``covariance_error`` are the whitened errors of mean and covariance, and
        ``b2`` is the squared bias; ``w2_average`` and ``b2_average`` are those of the network
        average. All are infinite where there is no stationary distribution.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]]], b=[[1.0], [0.0]])
    >>> found = concord.bias_map(problem, ["ring"], [0.01, 0.1])
    >>> found.table[["network", "step_size", "w2"]].round(2).values.tolist()
    [['ring', 0.01, 0.03], ['ring', 0.1, 0.26]]
    """

    table: pandas.DataFrame

    @suggest_names
    def plot(self) -> Figure:
        """Plot W2 against the step size: a panel for each network, a curve for each batch size.

        W2 is in units of the posterior's width. Solid is the worst agent, dashed the network
        average.
        """
        from concord_studies.figures import style

        return style.styled(_plot)(self.table)


def _plot(table: pandas.DataFrame) -> Figure:
    """Plot ``BiasMap.table``: a panel for each network, a curve for each batch size."""
    from concord_studies.figures import style

    panels = list(table.groupby("network", sort=False))
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    figure = style.Picture(figsize=(style.FULL, 2.3 * rows + 0.3), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for place, (axes, (name, panel)) in enumerate(zip(grid, panels, strict=False)):
        curves = panel.groupby("batch_size", sort=False)
        for color, (size, curve) in zip(cycle(style.PALETTE), curves, strict=False):
            finite = curve[np.isfinite(curve["w2"])]
            label = "full gradients" if size == 0 else f"{size} points"
            axes.loglog(finite["step_size"], finite["w2"], color=color, label=label)
            dashed: dict[str, Any] = {"color": color, "linestyle": style.AVERAGE_STYLE}
            axes.loglog(finite["step_size"], finite["w2_average"], **dashed)
        letter = f"({chr(ord('a') + place)}) " if len(panels) > 1 else ""
        known = name in style.TOPOLOGIES
        axes.set_title(letter + (style.name("topology", name) if known else str(name)))
        axes.set_xlabel("step size")
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    for axes in grid[::columns]:
        axes.set_ylabel("stationary $W_2$\n(posterior widths)")
    entries = grid[0].get_legend_handles_labels()[0]
    for text, pattern in (("worst agent", "-"), ("network average", style.AVERAGE_STYLE)):
        entries.append(style.entry(text, color=style.BLACK, linestyle=pattern))
    figure.legend(handles=entries, loc="outside lower center", ncols=6)
    return figure


def _name_networks(networks: Sequence[Any]) -> dict[str, Any]:
    """Return networks by the names of their kinds or graphs; of those without by their numbers."""
    named: dict[str, Any] = {}
    for number, one in enumerate(networks, 1):
        name = one if isinstance(one, str) else getattr(one, "name", "")
        if not isinstance(name, str) or not name or name in named:
            name = "your network" if len(networks) == 1 else f"your network {number}"
        named[name] = one
    return named


@suggest_names
def bias_map(
    problem: Problem,
    networks: Any,
    step_sizes: Sequence[float],
    batch_sizes: Sequence[int | None] = (None,),
    sampler: str | type[Algorithm] = "de_sgld",
    **options: Any,
) -> BiasMap:
    """Compute the stationary bias of SGLD by step size, batch size and network.

    The bias of the stationary law is computed exactly: nothing is sampled. docs/bias.md has an
    example.

    Parameters
    ----------
    problem
        A Gaussian one, such as ``concord.problems.linear_regression(X, y, agents=...)``.
    networks
        What ``concord.network`` takes, several of these in a list, or a mapping from names to
        such, which the table and the panels then have. In a list those of networkx have their
        ``name``.
    step_sizes
        Constant step sizes.
    batch_sizes
        Points of a mini-batch, drawn with replacement; None: full gradients.
    sampler
        A kind of sampler, or a class, with a step size: ``de_sgld``, or ``c_ula`` for central SGLD,
        of one agent on the network ``no_edges``.
    **options
        Further options of the sampler.

    Raises
    ------
    ConcordError
        If the sampler has no exact law here, or refuses a network.

    Examples
    --------
    >>> import concord, numpy as np
    >>> X = np.random.default_rng(0).standard_normal((60, 2))
    >>> problem = concord.problems.linear_regression(X, X @ [1, -2], agents=4)
    >>> found = concord.bias_map(problem, ["ring"], [0.001, 0.002], [None, 5])
    >>> found.table.w2.round(3).tolist()
    [0.056, 0.108, 0.056, 0.109]
    """
    if isinstance(networks, Mapping) and "kind" not in networks:
        named = dict(networks)
    else:
        named = _name_networks(networks if isinstance(networks, (list, tuple)) else [networks])
    rows = []
    for name, graph in named.items():
        network = network_for(problem, graph)
        for size in batch_sizes:
            for step in step_sizes:
                stated = {"step_size": step, **options}
                chosen = build(class_of(sampler, "sampler"), stated, "sampler")
                chosen.check(problem, network)
                numbers = _stationary_bias(chosen, problem, network, size)
                rows.append(
                    {"network": name, "batch_size": size or 0, "step_size": step, **numbers}
                )
    if not rows:
        raise ConcordError(
            f"bias_map: networks {short(networks)}, step_sizes {short(step_sizes)}, batch_sizes "
            f"{short(batch_sizes)}; give at least one of each"
        )
    return BiasMap(pandas.DataFrame(rows))


def _stationary_bias(
    sampler: Any, problem: Any, network: Network, size: int | None
) -> dict[str, float]:
    """Return the columns of ``BiasMap.table`` for one setting, by name.

    size: of the mini-batches; None: full gradients.
    """
    agents, dim = problem.agents, problem.dim
    if size is not None:
        if not isinstance(sampler, Batches):
            raise ConcordError("batch_sizes: the sampler takes full gradients alone; use [None]")
        sampler = structs.replace(sampler, batch_size=size)
    update = update_of(sampler, problem, network)
    if update.loss_effect is not None:
        raise NoLaw("vectors may get lost here, and laws have no limit of mini-batches; remove it")
    if size is not None:
        if not hasattr(problem, "batch_noise_covariance"):
            raise NoLaw(
                f"{type(problem).__name__} states no covariance of mini-batches; use "
                "linear_regression, or batch_sizes=[None]"
            )
        sampler.check_points(problem.counts)

    def error_covariances(mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        """Return the covariances of mini-batch gradient errors, (agents, dim, dim).

        They are means over a normal law of the state, with mean (S,) and cov (S, S).
        """
        moments = exact.marginals(mean, cov, agents, dim)
        noise: np.ndarray = problem.batch_noise_covariance(moments.mean, moments.cov, sampler)
        return noise

    start = exact.initial_moments(agents, dim, (0.0, 1.0), update.start)
    step, count = compose_cycle(update, SETTLED)
    if size is not None and count > 1:
        raise NoLaw("steps differ, and laws of several have no limit of mini-batches; use None")
    law = exact.limit(step, *start, None if size is None else error_covariances)
    names = ("w2", "mean_error", "covariance_error", "b2", "w2_average", "b2_average")
    if law is None:
        return dict.fromkeys(names, np.inf)
    law_at_rest, target = exact.marginals(*law, agents, dim), problem.posterior
    parts, b2 = scores.compare_laws(law_at_rest, target), scores.compute_bias(law_at_rest, target)
    worst, average = parts["worst"], parts["average"]
    values = *(worst[name] for name in names[:3]), b2["worst"], average["w2"], b2["average"]
    return {name: float(value) for name, value in zip(names, values, strict=True)}
