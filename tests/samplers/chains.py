"""Chains of a sampler, step by step, for tests against equations by hand."""

import numpy as np

EXACT = 1e-12  # rounding only


def chain(module, prob, graph, params, steps=5, chains=3, seed=0, rng=None):
    """Return the positions after each step."""
    x0 = np.random.default_rng(seed).standard_normal((chains, prob.agents, prob.dim))
    rng = np.random.default_rng(seed + 1) if rng is None else rng
    state, step = module.init(prob, graph, params, x0, np.random.default_rng(99))
    visited = [x0]
    for k in range(steps):
        state, _ = step(state, k, rng)
        visited.append(state.x.copy())
    return np.array(visited)


def errors(draws, mean, cov):
    """Return the largest difference of moments of draws (chains, ..., S) from exact ones.

    In standard errors, which the draws themselves have; what does not vary counts as exact.
    """
    centered = draws - mean
    products = centered[..., :, None] * centered[..., None, :] - cov
    return max(
        float((abs(part.mean(axis=0)) / (part.std(axis=0) / np.sqrt(len(part)) + 1e-12)).max())
        for part in (centered, products)
    )
