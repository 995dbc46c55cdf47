"""The exact stationary law of an affine sampler on a Gaussian problem, against the posterior."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord import exact
from concord.errors import ConcordError
from concord.gaussian import w2
from concord.metrics import Measurement, Row

NAMES = ("w2", "trace", "narrowest", "widest", "bias")


def rows(m: Measurement) -> Iterator[Row]:
    """Yield, per recorded agent and for the average, how far the stationary law is.

    stationary_w2: distance to the posterior. stationary_trace: trace of the covariance over the
    posterior's. stationary_narrowest and stationary_widest: the ratio of variances in the
    direction where it is smallest and largest (generalized eigenvalues). stationary_bias: distance
    of the means in posterior standard deviations, the largest over directions. spectral_radius: of
    the update, conserved quantities apart; where it is 1 or more there is no stationary law and the
    others are infinite. Schedules are taken at the last iteration and held there.
    """
    if not hasattr(m.sampler, "affine") or m.problem.posterior is None:
        raise ConcordError("metric stationary needs an affine sampler on a Gaussian problem")
    if m.problem.agents * m.problem.dim > exact.SIZE_LIMIT:
        raise ConcordError(
            f"metric stationary: {m.problem.agents} agents of dimension {m.problem.dim} exceed "
            f"{exact.SIZE_LIMIT} entries; remove it from this run's metrics"
        )
    update = m.sampler.affine(m.problem, m.topology, m.sampler_params)
    step = update.at(m.iterations)
    agents, dim = m.problem.agents, m.problem.dim
    mean0, cov0 = exact.initial(agents, dim, m.initial.moments(dim), *update.auxiliary)
    reduced, basis = exact.restrict(step)
    yield Row(
        *(m.iterations, "network", "spectral_radius"),
        *(exact.spectral_radius(reduced.matrix), None, None),
    )
    start, spread = basis.T @ mean0, basis.T @ cov0 @ basis
    if _same(basis @ start, mean0) and _same(basis @ spread @ basis.T, cov0):
        # What the update conserves is zero at the start, and stays so but for rounding, which the
        # doubling of the whole update would let grow.
        law = exact.stationary(reduced, start, spread)
        law = None if law is None else (basis @ law[0], basis @ law[1] @ basis.T)
    else:
        law = exact.stationary(step, mean0, cov0)
    each = None if law is None else exact.marginals(*law, agents, dim)
    for agent in (*m.trace.agent.tolist(), "average"):
        if each is None:
            values = [np.inf] * len(NAMES)
        elif agent == "average":
            values = _compare(each[2], each[3], m)
        else:
            values = _compare(each[0][agent], each[1][agent], m)
        for name, value in zip(NAMES, values, strict=True):
            yield Row(m.iterations, str(agent), f"stationary_{name}", value, chance=False)


def _same(projected: np.ndarray, whole: np.ndarray) -> bool:
    return bool(np.abs(projected - whole).max() <= 1e-10 * max(np.abs(whole).max(), 1e-300))


def _compare(mean: np.ndarray, cov: np.ndarray, m: Measurement) -> list[float]:
    target = m.problem.posterior
    difference = mean - target.mean
    bias = np.sqrt(difference @ np.linalg.solve(target.cov, difference))
    root = np.linalg.inv(np.linalg.cholesky(target.cov))
    ratios = np.linalg.eigvalsh(root @ cov @ root.T)
    return [
        float(w2(mean, cov, target)),
        float(np.trace(cov) / np.trace(target.cov)),
        # Rounding may leave a tiny negative variance of a law that is a point.
        max(float(ratios[0]), 0.0),
        float(ratios[-1]),
        float(bias),
    ]
