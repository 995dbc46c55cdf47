"""Distances of samples and laws from the posterior."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from concord import streams
from concord.errors import ConcordError, short, suggest_names, warn_of_divergence
from concord.laws import wasserstein
from concord.laws.exact import Law
from concord.laws.gaussian import Gaussian
from concord.laws.intervals import LEVEL, REPLICATES, mean_interval, widen
from concord.libraries import optional
from concord.local_coordinates import PosteriorByAgent
from concord.options import Index, build
from concord.problem import Problem
from concord.problems.gaussian_fit import estimate_posterior
from concord.reference import Reference, WithReference, read_reference, reference_of
from concord.sampling.trace import Trace

if TYPE_CHECKING:
    import xarray  # half a second

# A Gaussian is fitted to no fewer independent draws, and to no fewer for each dimension: with these
# exact draws seem at most 0.36 of the posterior's width away from it (docs/python.md has a table),
# and the intervals cover 0.89 or more.
LEAST, LEAST_PER_DIMENSION = 20, 4

MOST_WEIGHTS = 100  # of a network, to whose posterior a Gaussian is fitted

# What results are compared with: a problem, its posterior, or draws (draws, dim).
Posterior = Problem | Reference | np.ndarray

# The posteriors of problems that state none, which take seconds.
_ESTIMATES: WeakKeyDictionary[Problem, Reference] = WeakKeyDictionary()


@suggest_names
def w2(result: Trace | Law, posterior: Posterior, *, warm_up: int | None = None) -> xarray.Dataset:
    r"""Return the 2-Wasserstein distance to the posterior of each agent, and of their average.

    .. math::
        W_2^2 = |m - \mu|^2 + \mathrm{tr}\,\bigl(S + V - 2 (V^{1/2} S V^{1/2})^{1/2}\bigr)

    is the distance between N(m, S) and the posterior N(mu, V); of a posterior that is not Gaussian
    mu and V are the moments, and this is a lower bound (Gelbrich). For an exact law m and S are its
    moments. For a trace they are fitted: to the chains at each draw, or with ``warm_up`` to all
    draws after it, over time and chains.

    A fit to n independent draws has a sampling error. ``floor`` is the distance that n draws of the
    posterior itself would show, about sqrt((1 + (dim + 1) / 4) / n) of the posterior's width
    sqrt(tr V). So at least 20 chains, and 4 for each dimension, are needed at each draw. After a
    warm-up the effective sample size must reach the same numbers, the least over x_j and its
    squared deviation. The interval after a warm-up comes from refits to as many draws of the fitted
    Gaussian: it covers 0.97 or more of the distances of four chains of DE-SGLD (60 seeds, 3 steps).
    The interval of single draws is that of ``concord.laws.wasserstein.bootstrap_w2``.
    Where agents hold coordinates of their own, each is compared with the posterior of what it
    holds: the shared coordinates and its own; and the average with the posterior of that average.
    Of heavy-tailed draws, as where a step multiplies by random matrices (small mini-batches), no
    interval is known, and it is that from 0 to infinity: the kurtosis of a coordinate is far above
    a Gaussian's (``concord.laws.wasserstein.has_heavy_tails``).

    Parameters
    ----------
    result
        What ``concord.sample`` or ``concord.law`` returned.
    posterior
        The problem that was sampled; or its posterior, as a ``concord.Gaussian`` or as draws that
        count as independent, (draws, dim). Where the problem states none, 16,384 points about a
        Gaussian are weighted by its density (``concord.problems.gaussian_fit``). The error of the
        posterior itself is not part of intervals; the result's attribute ``posterior_draws`` says
        how many draws it is worth, infinitely many where it is exact.
    warm_up
        Pool all draws after this iteration; none: one distance for each draw. The moments of a law
        are then those of a draw at a random iteration.

    Returns
    -------
    xarray.Dataset
        ``value`` (draw, agent); of a trace also ``lo`` and ``hi``, a 95 % interval that subtracts
        the fit's error, and ``floor``. With ``warm_up`` there is no draw: ``value``, ``lo``,
        ``hi``, ``floor`` and ``draws``, the independent draws that they are worth, are (agent,).
        The last agent is ``average``. A diverged chain makes distances infinite, with a
        ``concord.DivergenceWarning``. One chain has no interval.

    Raises
    ------
    ConcordError
        If the posterior is not of the result's dimension, or is not given and too far from a
        Gaussian; if the trace has no positions, or the draws are too few.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.01, iterations=200)
    >>> end = concord.w2(trace, problem.posterior).sel(draw=200, agent="average")
    >>> bool(end.lo < end.value < end.hi)
    True
    """
    law = read_posterior(result, posterior)
    warn_of_divergence("w2", result.divergence())
    return measure_w2(result, law, warm_up).assign_attrs(posterior_draws=law.draws)


def measure_w2(result: Trace | Law, law: Reference, warm_up: int | None) -> xarray.Dataset:
    """Return ``w2`` of arguments that are checked, without a warning of divergence.

    result, warm_up: as of ``w2``. law: the posterior.
    """
    if isinstance(law, PosteriorByAgent):
        return _compare_by_agent(measure_w2, result, law, warm_up)
    posterior = Gaussian(*law.moments())
    if isinstance(result, Law):
        return _distance_of_law(result, wasserstein.w2, posterior, warm_up)
    names, draws = positions(result.mask_diverged())
    rng, dim = streams.generator(0, "bootstrap"), draws.shape[-1]
    least = count_least_chains(dim)
    if warm_up is None:
        if result.chains < least:
            middle = int(result.draw[-1]) // 2
            raise ConcordError(
                f"w2: {result.chains} chains are too few to fit a Gaussian of dimension {dim} draw "
                f"by draw; sample {least} or more, or take draws over time together, "
                f"w2(..., warm_up={middle})"
            )
        values = wasserstein.bootstrap_w2(draws, posterior, REPLICATES, rng, LEVEL)
        dataset = _dataset(result, names, values)
        return dataset.assign(floor=_floor(posterior, result.chains, rng))
    draws = draws[:, result.rows_after(warm_up)]
    value, lo, hi, floor, worth = (np.full(len(names), np.inf) for _ in range(5))
    for column, name in enumerate(names):
        x = draws[:, :, column]
        if not np.isfinite(x).all():
            continue
        worth[column] = effective_sample_size(x)
        if worth[column] < least:
            whose = result.title_agent(name)
            raise ConcordError(
                f"w2: the draws of {whose} after iteration {warm_up} are worth "
                f"{int(worth[column])} independent ones, too few to fit a Gaussian of dimension "
                f"{dim}; sample until they are worth {least}, with more iterations or chains, or "
                "give a smaller warm_up"
            )
        fitted, count = Gaussian(*wasserstein.fit(x.reshape(-1, dim))), int(worth[column])
        value[column] = wasserstein.w2(fitted.mean, fitted.cov, posterior)
        refits = wasserstein.refits(fitted, count, REPLICATES, rng)
        squares = wasserstein.w2(*refits, posterior) ** 2
        lo[column], hi[column] = wasserstein.correct_interval(squares, value[column], LEVEL)
        fourth = wasserstein.kurtosis(x.reshape(-1, dim) - fitted.mean)
        if wasserstein.has_heavy_tails(fourth, count):
            lo[column], hi[column] = 0.0, np.inf
        floor[column] = _floor(posterior, count, rng)
    worth[np.isinf(value)] = np.nan
    floor[np.isinf(value)] = np.nan
    dataset = _dataset(result, names, (value, lo, hi))
    return dataset.assign(floor=("agent", floor), draws=("agent", worth))


def count_least_chains(dim: int) -> int:
    """Return the number of independent draws that a fit of a Gaussian of dimension dim takes."""
    return max(LEAST, LEAST_PER_DIMENSION * dim)


def _compare_by_agent(
    distance: Callable[..., xarray.Dataset],
    result: Trace | Law,
    law: PosteriorByAgent,
    warm_up: int | None,
) -> xarray.Dataset:
    """Return a distance of each agent, and of their average, from its own part of the posterior.

    distance: ``measure_w2`` or ``measure_bias2``. result, warm_up: as of these. law: the posterior.
    """
    import xarray  # half a second

    if isinstance(result, Law):
        names: list[int | str] = [*range(law.agents), "average"]
    else:
        names = [int(n) if n.isdigit() else n for n in positions(result)[0]]
    parts = []
    for name in names:
        alone = result if isinstance(result, Law) else _select_positions(result, name)
        label = result.label_agents([name])
        parts.append(distance(alone, law.of(name), warm_up).sel(agent=label))
    return xarray.concat(parts, "agent", data_vars="all")


def _select_positions(trace: Trace, agent: int | str) -> Trace:
    """Return a trace with the positions of one agent, or of the ``average``, alone."""
    variables, of = dict(trace.variables), trace.agent == agent
    variables.pop("x_average" if agent != "average" else "x", None)
    if agent != "average":
        axes, x = variables["x"]
        variables["x"] = axes, x[:, :, of]
    return replace(trace, variables=variables, agent=trace.agent[of])


def _floor(posterior: Gaussian, draws: int, rng: np.random.Generator) -> float:
    """Return the mean distance to the posterior of Gaussians fitted to its own draws.

    draws: the number of independent draws to which each is fitted.
    """
    refits = wasserstein.refits(posterior, draws, wasserstein.FLOORS, rng)
    return float(wasserstein.w2(*refits, posterior).mean())


def effective_sample_size(draws: np.ndarray) -> float:
    """Return the effective sample size of draws (chain, draw, dim): the least over moments.

    ArviZ estimates it for x_j and (x_j - mean)^2, on whose means a fitted Gaussian depends. It is
    small where chains disagree, and at most the number of draws.
    """
    squares = (draws - draws.mean(axis=(0, 1))) ** 2
    if draws.shape[1] < 4 or (squares == 0).all(axis=(0, 1)).any():  # too few, or they do not move
        return 0.0
    both = np.concatenate([draws, squares], axis=-1)
    array_stats = optional("arviz_stats.base", "arviz-stats", "warm_up").array_stats
    sizes = array_stats.ess(both, chain_axis=0, draw_axis=1, method="mean")
    return min(float(sizes.min()), draws.shape[0] * draws.shape[1])


@suggest_names
def bias2(
    result: Trace | Law, posterior: Posterior, *, warm_up: int | None = None
) -> xarray.Dataset:
    r"""Return the squared bias of each agent, and of their average, in posterior variances.

    .. math:: b^2 = \max_{f \in \{x_j, x_j^2\}} (E f - E_\pi f)^2 / \mathrm{Var}_\pi f

    The squared bias needs no Gaussian fit, so it also measures laws that are not Gaussian; a
    posterior known by n draws has itself about 1 / n. For a
    trace E is the mean over chains, and with ``warm_up`` also over time; the 95 % intervals hold
    jointly for all f.

    Parameters
    ----------
    result, posterior, warm_up
        As of ``concord.w2``.

    Returns
    -------
    xarray.Dataset
        ``value`` (draw, agent), of a trace also ``lo`` and ``hi``; with ``warm_up`` (agent,). One
        chain has no interval.

    Raises
    ------
    ConcordError
        As of ``concord.w2``, but for the number of draws.

    Examples
    --------
    >>> import concord, numpy as np
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> labels = concord.problems.logistic_regression(X, X[:, 0] > 0, agents=5)
    >>> trace = concord.sample("de_sgld", labels, "ring", step_size=0.01, iterations=300)
    >>> end = concord.bias2(trace, labels).sel(draw=300, agent="average")
    >>> bool(end.lo < end.value < end.hi)
    True
    """
    law = read_posterior(result, posterior)
    warn_of_divergence("bias2", result.divergence())
    return measure_bias2(result, law, warm_up).assign_attrs(posterior_draws=law.draws)


def measure_bias2(result: Trace | Law, law: Reference, warm_up: int | None) -> xarray.Dataset:
    """Return ``bias2`` of arguments that are checked, without a warning of divergence.

    result, warm_up: as of ``bias2``. law: the posterior.
    """
    if isinstance(law, PosteriorByAgent):
        return _compare_by_agent(measure_bias2, result, law, warm_up)
    if isinstance(result, Law):
        return _distance_of_law(result, wasserstein.bias2, law, warm_up)
    names, draws = positions(result.mask_diverged())
    means, variances = law.monomials()
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.concatenate([draws, draws**2], axis=-1)
        if warm_up is not None:
            values = values[:, result.rows_after(warm_up)].mean(axis=1)
        value, *ends = squared_bias(values, means, variances)
    value = np.nan_to_num(value, nan=np.inf, posinf=np.inf)
    return _dataset(result, names, [np.where(np.isinf(value), value, e) for e in (value, *ends)])


def name_results(results: Any) -> dict[str, Trace | Law]:
    """Return results by names: of a mapping, or of their samplers, numbered where these repeat.

    results: traces and laws, a mapping or a list of them, or one of them.
    """
    if isinstance(results, Mapping):
        for result in results.values():
            check_result(result)
        return dict(results)
    by_name: dict[str, Trace | Law] = {}
    for result in [results] if isinstance(results, (Trace, Law)) else results:
        check_result(result)
        whose = result.attributes.get("sampler", "a run")
        kind = name = f"law of {whose}" if isinstance(result, Law) else whose
        while name in by_name:
            name = f"{kind} ({len(by_name) + 1})"
        by_name[name] = result
    return by_name


def check_result(result: object) -> None:
    """Raise a ConcordError for an object that is neither a trace nor a law."""
    if not isinstance(result, (Trace, Law)):
        raise ConcordError(
            f"{short(result)} is no result; give a trace or a law first, and then the posterior"
        )


def read_posterior(result: Trace | Law, posterior: Posterior | None) -> Reference:
    """Return the posterior with which a result is compared. A ConcordError if it does not fit.

    posterior: a problem, a posterior, or draws of it.
    """
    check_result(result)
    if posterior is None:
        raise ConcordError(
            "posterior: it is None, as of a problem whose posterior is not Gaussian; give the "
            "problem in its place, as in concord.w2(trace, problem), or draws of it, (draws, dim)"
        )
    dim = (result.average_mean if isinstance(result, Law) else positions(result)[1]).shape[-1]
    if isinstance(posterior, (str, Trace, Law)):
        raise ConcordError(
            f"posterior: {short(posterior)} is none; give a problem, a concord.Gaussian, or draws, "
            f"(draws, {dim})"
        )
    if not isinstance(posterior, Problem):
        return read_reference(posterior, dim, "posterior")
    if posterior.dim != dim:
        raise ConcordError(
            f"posterior: the problem has dimension {posterior.dim}, and the result {dim}; give the "
            "problem that was sampled"
        )
    if posterior.posterior is not None or isinstance(posterior, WithReference):
        return reference_of(posterior)
    if hasattr(posterior, "predict") and dim > MOST_WEIGHTS:
        raise _unknown_posterior(dim, "")
    if posterior not in _ESTIMATES:
        try:
            _ESTIMATES[posterior] = estimate_posterior(posterior)
        except ConcordError as error:
            if hasattr(posterior, "predict"):
                reason = str(error).removeprefix("posterior: ").rpartition("; ")[0]
                raise _unknown_posterior(dim, f": {reason}") from None
            raise
    return _ESTIMATES[posterior]


def _unknown_posterior(dim: int, reason: str) -> ConcordError:
    """Return the error for the posterior of a network's weights, of which nothing is known.

    reason: a phrase after a colon, or nothing.
    """
    return ConcordError(
        f"posterior: no posterior of {dim:,} weights of a network is known{reason}; score what "
        "they predict, concord.predictive(trace, problem), or make the problem with reference=, "
        "draws of a long run in one place, (draws, dim)"
    )


def _distance_of_law(
    law: Law, distance: Callable[..., np.ndarray], posterior: Reference, warm_up: int | None
) -> xarray.Dataset:
    """Return a distance of an exact law from the posterior, by agent (and draw).

    distance: a function of mean, cov and posterior. warm_up: as for ``w2``.
    """
    mean = np.concatenate([law.mean, law.average_mean[:, None]], axis=1)
    cov = np.concatenate([law.cov, law.average_cov[:, None]], axis=1)
    if warm_up is not None:  # the moments of a draw at a random one of these iterations
        rows = law.iterations > build(Index, warm_up, "warm_up")
        if not rows.any():
            raise ConcordError(
                f"warm_up: the law has no iteration after {warm_up}, the last is "
                f"{law.iterations[-1]}; lower it"
            )
        mean, spread = wasserstein.fit(mean[rows])
        cov = cov[rows].mean(axis=0) + spread
    names = [*map(str, range(law.mean.shape[1])), "average"]
    return _dataset(law, names, [distance(mean, cov, posterior)])


def squared_bias(values: np.ndarray, means: np.ndarray, variances: np.ndarray) -> list[np.ndarray]:
    """Return the squared bias of chains' means, and the lower and upper end of its 95 % interval.

    values: f = (x, x^2) of each chain, (chains, ..., 2 dim). means, variances: of f under the
    posterior. Each result is the largest over f of (mean over chains - posterior mean)^2 /
    posterior variance, of shape (...).
    """
    mean, *ends = (part - means for part in mean_interval(values, values.shape[-1]))
    far = np.maximum(*np.square(ends))
    least = np.where(ends[0] * ends[1] < 0, 0.0, np.minimum(*np.square(ends)))
    return [(e / variances).max(axis=-1) for e in (np.square(mean), least, far)]


def _dataset(result: Trace | Law, names: list[str], values: Sequence[np.ndarray]) -> xarray.Dataset:
    """Return a dataset of values (draw, agent) or (agent,), with interval ends of a trace.

    values: the value, and the ends of its interval if there are any. result: which has the numbers
    of draws. names: of the agents.
    """
    import xarray  # half a second

    value, *ends = values
    if ends:
        alone = isinstance(result, Trace) and result.chains == 1
        ends = [np.full_like(value, np.nan)] * 2 if alone else list(widen(value, *ends))
    agents = np.array(result.label_agents(names), dtype=object)
    named = dict(zip(("value", "lo", "hi"), (value, *ends), strict=False))
    if value.ndim == 1:
        return xarray.Dataset({n: ("agent", v) for n, v in named.items()}, {"agent": agents})
    draw = result.iterations if isinstance(result, Law) else result.draw
    variables = {n: (("draw", "agent"), v) for n, v in named.items()}
    return xarray.Dataset(variables, {"draw": draw, "agent": agents})


def positions(trace: Trace) -> tuple[list[str], np.ndarray]:
    """Return the names and draws, (chain, draw, name, dim), of recorded agents and average."""
    trace.require_positions()
    names, draws = [], []
    if "x" in trace:
        names += [str(agent) for agent in trace.agent]
        draws.append(trace["x"])
    if "x_average" in trace:
        names.append("average")
        draws.append(trace["x_average"][:, :, None])
    return names, np.concatenate(draws, axis=2)
