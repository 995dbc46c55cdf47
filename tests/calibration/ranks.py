"""Ranks that must be uniform, and the probability of what is seen if they are.

A sampler's draws, put into the distribution function of the law they should have, are uniform on
(0, 1). The ranks of one array here come from independent chains, never from successive draws of a
chain, so nothing has to be known of autocorrelation.
"""

from collections.abc import Mapping

import numpy as np
from scipy import stats

# The chance that a right sampler turns a test of one method red.
LEVEL = 1e-3
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


def width(ranks: Mapping[str, np.ndarray]) -> str:
    """Say whether draws are of too wide or too narrow a law, from the ranks of the density.

    Those of too wide a law lie where the density is low.
    """
    return WIDE if ranks["density"].mean() < 0.5 else NARROW
