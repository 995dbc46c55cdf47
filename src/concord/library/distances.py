"""How far a result is from the posterior, and several beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from concord.errors import ConcordError, short
from concord.laws import gaussian
from concord.laws.exact import Law
from concord.laws.gaussian import Gaussian
from concord.laws.intervals import LEVEL, REPLICATES, mean_interval
from concord.metrics.w2 import positions
from concord.sampling import streams
from concord.sampling.trace import Trace

if TYPE_CHECKING:
    import pandas
    import xarray


def w2(result: Trace | Law, posterior: Gaussian) -> xarray.Dataset:
    """Return the 2-Wasserstein distance of every agent, and of their average, to the posterior.

    Of a trace it is that of the Gaussian fitted to the chains, with a 95 % bootstrap interval; of
    an exact law it is exact. A diverged chain makes it infinite.

    Parameters
    ----------
    result
        What ``concord.sample`` or ``concord.law`` returned.
    posterior
        A ``concord.Gaussian``, such as ``problem.posterior``.

    Returns
    -------
    xarray.Dataset
        ``value`` (draw, agent), of a trace also ``lo`` and ``hi``; the last agent is ``average``.

    Raises
    ------
    ConcordError
        If there is no Gaussian posterior, or the trace has no positions.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> trace = concord.sample("de_sgld", problem, "ring", step_size=0.01, iterations=200)
    >>> end = concord.w2(trace, problem.posterior).sel(draw=200, agent="average")
    >>> bool(end.lo < end.value < end.hi)
    True
    """
    _check(result, posterior)
    if isinstance(result, Law):
        return _of_law(result, gaussian.w2, posterior)
    names, draws = positions(result.marked())
    rng = streams.generator(0, "bootstrap")
    values = gaussian.bootstrap_w2(draws, posterior, REPLICATES, rng, LEVEL)
    return _dataset(result.draw, names, values)


def bias2(result: Trace | Law, posterior: Gaussian) -> xarray.Dataset:
    r"""Return the squared bias of every agent, and of their average, in posterior variances.

    .. math:: b^2 = \max_{f \in \{x_j, x_j^2\}} (E f - E_\pi f)^2 / \mathrm{Var}_\pi f

    It needs no fit, so it sees laws that are not Gaussian. Of a trace E is the mean over chains,
    whose 95 % intervals hold together for all f.

    Parameters
    ----------
    result, posterior
        As of ``concord.w2``.

    Returns
    -------
    xarray.Dataset
        As of ``concord.w2``.

    Raises
    ------
    ConcordError
        As of ``concord.w2``.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> law = concord.law("de_sgld", problem, "ring", step_size=0.01, iterations=200)
    >>> concord.bias2(law, problem.posterior).value.sel(draw=0, agent="average").round(3).item()
    0.667
    """
    _check(result, posterior)
    if isinstance(result, Law):
        return _of_law(result, gaussian.bias2, posterior)
    names, draws = positions(result.marked())
    means, variances = gaussian.monomials(posterior.mean, posterior.cov)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.concatenate([draws, draws**2], axis=-1)
        mean, *ends = (part - means for part in mean_interval(values, values.shape[-1]))
        far = np.maximum(*np.square(ends))
        near = np.where(ends[0] * ends[1] < 0, 0.0, np.minimum(*np.square(ends)))
    value, *ends = ((e / variances).max(axis=-1) for e in (np.square(mean), near, far))
    value = np.nan_to_num(value, nan=np.inf, posinf=np.inf)
    return _dataset(
        result.draw, names, [np.where(np.isinf(value), value, e) for e in (value, *ends)]
    )


def compare(
    results: Mapping[str, Trace | Law] | Iterable[Trace | Law], posterior: Gaussian | None = None
) -> pandas.DataFrame:
    """Return one row per result: distances at its last draw, and what it has sent until then.

    Parameters
    ----------
    results
        Traces and laws by name, or as a list of traces, which are called by their samplers.
    posterior
        A ``concord.Gaussian``; none: no distances.

    Returns
    -------
    pandas.DataFrame
        ``iterations``; ``chains``, 0 of a law; ``diverged``, the share of chains; ``updates`` of
        positions, ``unicasts`` (a vector for each neighbor that needs it), ``broadcasts`` (one
        for all of them) and ``gradients`` per agent, means over chains; on networks with a clock
        ``seconds`` until the last agent had ended; ``w2`` and ``bias2`` of the worst agent,
        ``w2_average`` and ``bias2_average`` of the average, each with ``_lo`` and ``_hi``.

    Raises
    ------
    ConcordError
        If a law has no name, or a distance cannot be computed.

    Examples
    --------
    >>> import concord
    >>> problem = concord.problems.quadratic(H=[[[1.0]], [[2.0]], [[3.0]]], b=[[1.0], [0.0], [1.0]])
    >>> steps = {"step_size": 0.01, "iterations": 200}
    >>> trace = concord.sample("de_sgld", problem, "ring", **steps)
    >>> other = concord.sample("d_ula", problem, "ring", fusion=0.3, **steps)
    >>> concord.compare([trace, other], problem.posterior).unicasts.tolist()
    [400.0, 400.0]
    """
    import pandas

    if not isinstance(results, Mapping):
        results = _named(results)
    rows = {name: _row(result, posterior) for name, result in results.items()}
    return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("sampler")


def _named(results: Iterable[Trace | Law]) -> dict[str, Trace | Law]:
    found: dict[str, Trace | Law] = {}
    for result in results:
        if not isinstance(result, Trace) or "sampler" not in result.attributes:
            raise ConcordError(
                f"results: {short(type(result).__name__)} has no sampler's name; give a mapping of "
                "names to results"
            )
        kind = name = result.attributes["sampler"]
        while name in found:
            name = f"{kind} ({len(found) + 1})"
        found[name] = result
    return found


def _row(result: Trace | Law, posterior: Gaussian | None) -> dict[str, Any]:
    if isinstance(result, Law):
        row: dict[str, Any] = {"iterations": int(result.iterations[-1]), "chains": 0}
    else:
        end = int(result.draw[-1])
        row = {
            "iterations": end,
            "chains": result.chains,
            "diverged": float((result["diverged_at"] >= 0).mean()),
            "updates": _last(result, "activations") if "activations" in result else float(end),
            "unicasts": _last(result, "unicasts"),
            "broadcasts": _last(result, "broadcasts"),
            "gradients": _last(result, "gradients"),
        }
        if "seconds" in result:
            row["seconds"] = float(result["seconds"][:, -1].max(axis=1).mean())
    if posterior is None:
        return row
    for distance in (w2, bias2):
        found = distance(result, posterior).isel(draw=-1)
        agents = found.where(found.agent != "average", drop=True)
        average = found.where(found.agent == "average", drop=True)
        for part, suffix in ((agents, ""), (average, "_average")):
            if part.agent.size:
                worst = part.isel(agent=int(np.argmax(part.value.data)))
                for end_name, name in (("value", ""), ("lo", "_lo"), ("hi", "_hi")):
                    if end_name in worst:
                        row[f"{distance.__name__}{suffix}{name}"] = float(worst[end_name])
    return row


def _last(trace: Trace, name: str) -> float:
    """Return the mean of a count at the last draw, over agents and chains."""
    dimensions, values = trace.variables[name]
    return float(values.take(-1, axis=dimensions.index("draw")).mean())


def _check(result: Any, posterior: Any) -> None:
    if not isinstance(result, (Trace, Law)):
        raise ConcordError(f"{short(result)} is no result; give a trace or a law")
    if not isinstance(posterior, Gaussian):
        raise ConcordError(
            f"posterior: {short(posterior)} is no concord.Gaussian; give one, such as "
            "problem.posterior of a problem that has it"
        )


def _of_law(law: Law, distance: Any, posterior: Gaussian) -> xarray.Dataset:
    mean = np.concatenate([law.mean, law.average_mean[:, None]], axis=1)
    cov = np.concatenate([law.cov, law.average_cov[:, None]], axis=1)
    names = [*map(str, range(law.mean.shape[1])), "average"]
    return _dataset(law.iterations, names, [distance(mean, cov, posterior)])


def _dataset(draw: np.ndarray, names: list[str], values: Iterable[np.ndarray]) -> xarray.Dataset:
    import xarray

    agents = np.array([int(n) if n.isdigit() else n for n in names], dtype=object)
    variables = {
        name: (("draw", "agent"), array)
        for name, array in zip(("value", "lo", "hi"), values, strict=False)
    }
    return xarray.Dataset(variables, {"draw": draw, "agent": agents})
