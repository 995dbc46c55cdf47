"""Ranks that must be uniform, and the probability of what is seen if they are.

A sampler's draws, put into the distribution function of the law they should have, are uniform on
(0, 1). The ranks of one array here come from independent chains, never from successive draws of a
chain, so nothing has to be known of autocorrelation.
"""

from collections.abc import Mapping

import numpy as np
from scipy import special, stats

from concord import streams

# The chance that a right sampler turns a test of one method red.
LEVEL = 1e-3
ITERATIONS = 30
# Agents start far apart, so that it shows who averages with whom, and each close to one place, so
# that what the steps add is most of the variance.
START = 10 * streams.generator(1, "calibration", "start").standard_normal((6, 2))
START_SD = 0.01
# Variance below which a law is a point up to rounding, and there is nothing to rank.
POINT = 1e-12
WIDE, NARROW = "too wide", "too narrow"


def distance(u: np.ndarray) -> float:
    """Return Kolmogorov's distance of ranks from the uniform law."""
    return float(stats.ks_1samp(u, stats.uniform.cdf, mode="asymp").statistic)


def p_value(u: np.ndarray, slack: float = 0.0) -> float:
    """Return the probability of a distance as large as that of ``u``, or larger.

    That is Kolmogorov and Smirnov's test. With a slack the law of the ranks may be that far from
    uniform, and the p-value is the largest of all such laws, or more: whatever F,
    |F_n - id| <= |F_n - F| + |F - id|, and the law of the first term does not depend on F.
    """
    return float(stats.kstwo.sf(max(distance(u) - slack, 0.0), len(u)))


def least(ranks: Mapping[str, np.ndarray], slack: float = 0.0) -> tuple[float, str]:
    """Return the least p-value of several quantities times their number (Bonferroni), and which."""
    p, name = min((p_value(u, slack), name) for name, u in ranks.items())
    return min(1.0, p * len(ranks)), name


def within(x: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> dict[str, np.ndarray]:
    """Return the ranks of positions x, (chains, agents, dim), in N(mean, cov) of the network.

    ``mean`` is (chains or 1, S), ``cov`` (S, S) or (chains, S, S). Of every coordinate of every
    agent and of their average; of the network's distance from its mean, measured by its covariance;
    of all its principal directions, which are independent and stand in one array. Empty where the
    law is a point.
    """
    chains, agents, dim = x.shape
    centered = x.reshape(chains, -1) - mean
    averaging = np.kron(np.full((1, agents), 1 / agents), np.eye(dim))
    found = {}
    for place, rows in (("agent", np.eye(agents * dim)), ("average", averaging)):
        variances = np.einsum("rs,...st,rt->...r", rows, cov, rows)
        deviations = centered @ rows.T
        for r in range(len(rows)):
            if variances[..., r].min() > POINT:
                label = f"agent {r // dim}" if place == "agent" else place
                z = deviations[:, r] / np.sqrt(variances[..., r])
                found[f"{label}, coordinate {r % dim}"] = special.ndtr(z)
    values, vectors = np.linalg.eigh(cov)
    along = (centered[:, None, :] @ vectors)[:, 0]
    kept = np.broadcast_to(values > POINT, along.shape)
    if np.abs(along[~kept]).max(initial=0.0) > 10 * np.sqrt(POINT):
        raise AssertionError("positions are not where the law is a point")
    if kept.any():
        z = along / np.sqrt(np.where(kept, values, 1.0))
        found["distance"] = stats.chi2.cdf((z**2 * kept).sum(axis=1), kept.sum(axis=1))
        found["directions"] = special.ndtr(z[kept])
    return found


def positions(chains: int, agents: int, rng: np.random.Generator) -> np.ndarray:
    """Return x^(0) ~ N(START, START_SD^2 I), from a generator of its own.

    What is wrong with the other is not to be seen there.
    """
    return START[:agents] + START_SD * rng.spawn(1)[0].standard_normal((chains, agents, 2))


def width(ranks: Mapping[str, np.ndarray]) -> str:
    """Say whether draws are of too wide or too narrow a law, from the ranks of the density.

    Those of too wide a law lie where the density is low.
    """
    return WIDE if ranks["density"].mean() < 0.5 else NARROW
