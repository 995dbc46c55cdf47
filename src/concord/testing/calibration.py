"""Calibration: positions of a sampler in their exact law have uniform ranks.

A sampler's draws, put into the distribution function of the law that they should have, are uniform
on (0, 1); Kolmogorov and Smirnov's test says how probable what is seen is if they are.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import special, stats

from concord.laws import exact
from concord.sampling import streams
from concord.testing.variants import GRAPHS, combinations, stream

# The chance that a right sampler turns a test of one method red.
LEVEL = 1e-3
# And the chance that one fails ``concord test``, over all networks and options of a sampler.
ACCUSED = 1e-8

# Ring, star, an irregular graph, one agent, a server: agents have one to four neighbors.
NETWORKS = [GRAPHS[i] for i in (1, 2, 5, 7, 8)]
ITERATIONS = 30
# Agents start far apart, so that it shows who averages with whom, and each close to one place, so
# that what the steps add is most of the variance.
START = 10 * streams.generator(1, "calibration", "start").standard_normal((6, 2))
START_SD = 0.01
# Variance below which a law is a point up to rounding, and there is nothing to rank.
POINT = 1e-12


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


def wrong(module: Any, chains: int = 1000) -> tuple[int, list[str]]:
    """Return how many networks and options of a sampler with ``affine`` were tried, and which fail.

    Full gradients on linear regression; each fails by chance with ACCUSED over their number.
    """
    seen: list[tuple[float, str]] = []
    full = (case for case in combinations(module, (2,), NETWORKS) if not case.batched)
    for number, case in enumerate(full):
        update = module.affine(case.prob, case.graph, case.params)
        if update is None:
            continue
        agents, size = case.prob.agents, case.size
        mean, cov = exact.initial(agents, 2, (START[:agents], START_SD), *update.auxiliary)
        rng = stream("calibration", number)  # the same wherever a plug-in's file lies
        state = case.after(ITERATIONS, positions(chains, agents, rng), rng)
        for at in map(update.at, range(ITERATIONS)):
            mean, cov = at.matrix @ mean + at.offset, at.matrix @ cov @ at.matrix.T + at.noise
        ranks = within(state.x, mean[None, :size], cov[:size, :size])
        if ranks:
            p, what = least(ranks)
            seen.append((p, f"{what} {case} (p = {p:.0e})"))
    return len(seen), [text for p, text in seen if p < ACCUSED / len(seen)]
