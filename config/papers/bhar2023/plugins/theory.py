r"""Conditions and bounds of bhar2023, every constant computed from the problem.

Printed bounds come beside rederived ones, which differ where print is inconsistent: (9)'s mu_e
divides by (2n)^delta where its proof multiplies, (29) has ln lambda for ln sqrt(lambda), the proof
of Theorem 1 takes :math:`\lVert L_k \rVert^2 = 4` for 1, and nu below (48) lacks a plus sign that
(53) has. ``power`` is the mean share of the gradient that the average follows: 1/2 with the
printed weights 1/(2 p_i), 1 with 1/p_i, for which what print has of them is multiplied.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from concord_studies.metrics._theorems import Condition, geometric_sum


@dataclass(frozen=True)
class Gossip:
    """The constants of a gossip run that the theorems name.

    agents, dim: n and d_w. step, fusion: alpha and beta. connectivity: the smallest nonzero
    eigenvalue of the mean Laplacian of a tick. least_active: p_m. power: see above. threshold,
    decay: each agent's own mu and delta; a threshold of 0 is gossip without triggering.
    """

    agents: int
    dim: int
    step: float
    fusion: float
    connectivity: float
    least_active: float
    power: float = 0.5
    threshold: float = 0.0
    decay: float = 0.5

    @property
    def contraction(self) -> float:
        """Return lambda of Theorem 1, by which fusion shrinks the squared disagreement per tick."""
        return 1 - 2 * self.fusion * (1 - self.fusion) * self.connectivity

    def common_threshold(self, printed: bool) -> float:
        """Return mu_e of (9), printed, or so that (9) holds in the end: tau_i + 1 > (k + 1)/2n."""
        return self.threshold * (2 * self.agents) ** (-self.decay if printed else self.decay)


class Curvature(NamedTuple):
    """Lipschitz constants of every grad f_i and of grad f, and bounds of the log-Sobolev rho.

    A Hessian of at least c makes the log-Sobolev constant at least c (Bakry and Emery). It is at
    most the inverse of any variance, and no Hessian above H leaves variances below H^-1.
    """

    smoothest: float
    smooth: float
    least: float
    most: float


def condition1(step: float, smooth: float, least: float, most: float) -> Condition | None:
    """Return whether (25) is met, 8 alpha^3 L^4 / (1 - exp(-alpha rho)) < rho.

    The log-Sobolev constant rho is between ``least`` and ``most``; None where that leaves it open.
    The value is the left side over the right one at ``most``, where it is smallest.
    """
    if not np.isfinite(smooth):
        return Condition("condition_1", float("inf"), holds=False)

    def ratio(rho: float) -> float:
        below = -np.expm1(-step * rho) * rho
        return float(8 * step**3 * smooth**4 / below) if below > 0 else float("inf")

    easiest, hardest = ratio(most), ratio(least)
    if easiest < 1 <= hardest:
        return None
    return Condition("condition_1", easiest, hardest < 1)


def condition2(gossip: Gossip) -> Condition:
    """Return whether (26) is met, beta (1 - beta) < 1/(2 connectivity), with left over right."""
    value = 2 * gossip.connectivity * gossip.fusion * (1 - gossip.fusion)
    return Condition("condition_2", value, value < 1)


def lemma1(
    k: np.ndarray, first: float, sigma: float, push: float, decay: float, offset: float, start: int
) -> np.ndarray:
    """Return Lemma 1's bound on y_k, k >= 1.

    It is for y_{k+1} <= sigma y_k + push/(k + 1)^decay + offset with y_0 = ``first``; ``start`` is
    its t-bar. W_2 and W_3 are those of the proof, (66) and (67).
    """
    t = np.arange(start)
    w1 = first + push * float((sigma ** -(t + 1.0) / (t + 1.0) ** decay).sum())
    slope = abs(np.log(sigma)) - decay / (start + 1)
    with np.errstate(divide="ignore"):
        w2 = push / sigma / slope if push else 0.0
    return w1 * sigma**k + w2 / k**decay + offset / (1 - sigma)


def consensus_bound(
    gossip: Gossip, k: np.ndarray, first: float, gradients: float, printed: bool
) -> np.ndarray:
    """Return (27), the bound on E sum_i |w_i - average|^2 after k >= 1 ticks.

    gossip: algorithm and network.
    k: ticks.
    first: E sum_i |w_i - average|^2 at the start.
    gradients: mu_g; the mean over agents of E |grad f_i(w_i)|^2 is at most this at every tick.
    printed: as printed, or rederived.
    """
    n, sigma = gossip.agents, np.sqrt(gossip.contraction)
    largest = 1 if printed else 4
    push = 2 * gossip.fusion**2 * largest * n * gossip.common_threshold(printed) / (1 - sigma)
    offset = consensus_offset(gossip, gradients) * (1 - sigma)
    inverse = abs(np.log(gossip.contraction if printed else sigma))
    start = max(0, int(np.ceil(gossip.decay / inverse - 1)))
    return lemma1(k, first, sigma, push, gossip.decay, offset, start)


def consensus_offset(gossip: Gossip, gradients: float) -> float:
    """Return Y_3 of (31), to which the bound (27) falls; ``gradients`` is mu_g."""
    twice = 2 * gossip.power  # the printed weights' 1/(2 p), over which the weights are this
    noise = gossip.step * gradients * (twice / (2 * gossip.least_active)) ** 2 + 2 * gossip.dim
    return float(
        2 * gossip.step * gossip.agents**2 * noise / (1 - np.sqrt(gossip.contraction)) ** 2
    )


def bias_constant(
    gossip: Gossip,
    curvature: Curvature,
    offset: float,
    noise: float,
    spread: float,
    printed: bool,
) -> float:
    """Return B of (48), to which Theorem 2's bound on the divergence falls.

    offset, noise, spread: see ``divergence_bound``. printed: with nu as below (48), or with the
    plus sign of (53), which is missing there.
    """
    alpha, smooth = gossip.step, curvature.smooth
    of_tick = 2 * alpha * (noise + alpha * smooth**2 * gossip.dim)
    of_offset = _consensus_gain(gossip, curvature) * offset
    nu = 3 * alpha**3 * smooth**2 * (noise + smooth**2 * spread)
    nu += of_tick * of_offset if printed else of_tick + of_offset
    return float(nu / -np.expm1(-alpha * curvature.least))


def _consensus_gain(gossip: Gossip, curvature: Curvature) -> float:
    """Return the factor of the consensus error in (53)."""
    alpha, smooth = gossip.step, curvature.smooth
    gain = (2 * gossip.power) ** 2 * curvature.smoothest**2 / gossip.least_active
    return gain * (alpha + 1.5 * alpha**3 * smooth**2)


def divergence_bound(
    gossip: Gossip,
    curvature: Curvature,
    k: np.ndarray,
    start: tuple[float, float],
    offset: float,
    noise: float,
    spread: float,
) -> tuple[np.ndarray, float]:
    """Return Theorem 2's bound on the average's KL divergence after k ticks, and its limit B.

    Without triggering: k_2 in (47), which triggering's part needs, is defined nowhere. As
    rederived: the sum in (55), with (27) at the tick that (53) has and not the next one, and nu
    with the plus sign of (53).

    start: KL divergence of the start, and Y_1 of Theorem 1. offset: its Y_3.
    noise: C_xi, the largest E |xi|^2 of a tick.
    spread: C_w, the largest E |average - x|^2, x where grad f is zero.
    """
    first, apart = start
    limit = bias_constant(gossip, curvature, offset, noise, spread, printed=False)
    slow, fast = np.exp(-gossip.step * curvature.least), np.sqrt(gossip.contraction)
    gain = _consensus_gain(gossip, curvature)
    return slow**k * first + gain * apart * geometric_sum(slow, fast, k) + limit, limit
