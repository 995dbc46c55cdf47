r"""Theorems 1 and 2 of bhar2023: conditions, bounds, and what they bound, exactly where known.

On linear regression gossip ULA without triggering has exact moments (``laws.switching``). The law
of the network average is a mixture of normal laws, one for every history h of pairs, whose
covariances are at least :math:`2 \alpha I`, the noise of one tick. With P the posterior's
precision, m and C the average's moments and q the posterior mean, this encloses its divergence:

.. math::
    2 F \ge \operatorname{tr} P C + (m - q)^\top P (m - q) - d - \log\det P - \log\det C,
    \qquad
    2 F \le \cdots - \mathbb{E}_h \log\det C_h \le \cdots - d \log 2\alpha
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from concord.laws import exact
from concord.laws.gaussian import Gaussian
from concord.laws.intervals import mean_interval
from concord.laws.read_off import StepReader
from concord.laws.switching import SIZE_LIMIT, Choices
from concord.problem import Problem, Quadratic
from concord.random import activity
from concord.samplers.gossip_ula import GossipULA
from concord.sampling.initial import normal
from concord_studies.contracts import Curved, Label
from concord_studies.metrics import Measurement, Row, known, lacking, series
from concord_studies.metrics._theorems import conditions, with_values

from .. import theory
from .consensus_floor import windows

METRICS = (
    *("gossip.drift_share", "gossip.threshold", "gossip.threshold_bound"),
    *("gossip.threshold_rederived", *with_values("gossip.condition_[12]")),
    *(
        f"gossip_{name}"
        for name in (
            *("added", "bias", "bias_bound", "bound", "consensus", "excess", "floor"),
            *("kl", "kl_bound", "kl_most", "rederived"),
        )
    ),
)
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
CONDITIONS = ("gossip.condition_[12]",)
LABELS = {
    "gossip_kl": Label("KL divergence of the average's law"),
    "gossip_excess": Label("KL divergence of the average's law, less its limit"),
    "gossip_floor": Label("plateau of the consensus error"),
    "gossip_bias": Label(head="KL of the average"),
    "gossip_bias_bound": Label(head="Theorem 2's bound"),
    "gossip.condition_1": Label(head="Condition 1, (25)"),
    "gossip.condition_2": Label(head="Condition 2, (26)"),
    "gossip.drift_share": Label(head="share of the gradient"),
    "gossip.threshold": Label(head="largest threshold at the end"),
    "gossip.threshold_bound": Label(head="its bound (9)"),
    "gossip.threshold_rederived": Label(head="(9) rederived"),
}


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the theorems' bounds and conditions, and on linear regression the true values.

    gossip.condition_1 and _2: (25) and (26), 1 where met, and .value, left over right side;
    condition_1 is left out where the log-Sobolev constant is not known well enough.
    gossip.drift_share: the mean share of the gradient that the average follows.
    gossip.threshold, where triggered: the largest over agents of their thresholds at the end, mean
    over chains, and gossip.threshold_bound and _rederived, (9)'s bound as printed and as meant.

    On linear regression: gossip_consensus and gossip_floor, the exact error per agent without
    triggering and its limit; gossip_bound and _rederived, (27) per agent, infinite at the start, of
    which it says nothing; gossip_added, where triggered, the error of windows less gossip_floor.
    Without triggering: gossip_kl and gossip_kl_most, which enclose the average's divergence from
    the posterior, gossip_kl_bound, Theorem 2's as rederived; gossip_bias and gossip_bias_bound, the
    limits of gossip_kl and of its bound; gossip_excess, gossip_kl less its limit.
    """
    params = m.sampler
    if (
        not isinstance(params, GossipULA)
        or params.communication == "never"
        or not (params.step_size.constant and params.fusion.constant)
    ):
        raise lacking("gossip_theorems", "gossip ULA that communicates, with constant steps")
    gossip = _gossip(m, params)
    curvature = _curvature(m.problem)
    found = [theory.condition1(gossip.step, *curvature[1:]), theory.condition2(gossip)]
    yield from conditions(m, "gossip", [each for each in found if each is not None])
    yield from known(m, {"gossip.drift_share": gossip.power})
    if params.communication == "triggered" and "activations" in m.trace:
        yield from _thresholds(m, gossip)
    size = m.problem.agents * m.problem.dim
    normally = isinstance(m.initial.params, normal.Params)
    if isinstance(m.problem, Quadratic) and size <= SIZE_LIMIT and normally:
        yield from _linear(m, params, gossip, curvature)


def _gossip(m: Measurement, params: GossipULA) -> theory.Gossip:
    """Return the constants of the gossip theorems for a run's network and options."""
    agents, active = m.network.agents, activity(m.network.graph)
    laplacian = np.zeros((agents, agents))
    for i, j in m.network.edges:
        share = (1 / m.network.degrees[i] + 1 / m.network.degrees[j]) / agents
        laplacian[[i, j], [i, j]] += share
        laplacian[[i, j], [j, i]] -= share
    return theory.Gossip(
        agents,
        m.problem.dim,
        params.step_size.initial,
        params.fusion.initial,
        float(np.linalg.eigvalsh(laplacian)[1]),
        float(active.min()),
        float((params.gradient_weights(m.network.graph) * active).mean()) / agents,
        params.threshold or 0.0,
        params.decay or 0.5,
    )


def _curvature(problem: Problem) -> tuple[float, float, float, float]:
    """Return Lipschitz constants of every grad f_i and of grad f, and bounds of log-Sobolev rho.

    A Hessian of at least c makes the log-Sobolev constant at least c (Bakry and Emery). It is at
    most the inverse of any variance, and no Hessian above H leaves variances below H^-1.
    """
    if isinstance(problem, Quadratic):
        least = most = problem.gram
    elif isinstance(problem, Curved):
        least, most = problem.curvature()
    else:
        raise lacking("gossip_theorems", "a problem that bounds its curvature")
    if not np.isfinite(most).all():
        return np.inf, np.inf, 0.0, np.inf
    low, high = (np.linalg.eigvalsh(each.sum(axis=0)) for each in (least, most))
    smoothest = float(np.linalg.eigvalsh(most).max())
    return smoothest, float(high[-1]), max(float(low[0]), 0.0), float(high[0])


def _thresholds(m: Measurement, gossip: theory.Gossip) -> Iterator[Row]:
    """Yield a run's last communication threshold, and both theoretical ones for a common clock."""
    seldom = m.trace["activations"][:, -1].min(axis=1)
    own = gossip.threshold / (seldom + 1.0) ** gossip.decay
    yield from series([m.last], "network", {"gossip.threshold": mean_interval(own)})
    for name, printed in (("bound", True), ("rederived", False)):
        value = gossip.common_threshold(printed) / (m.last + 1) ** gossip.decay
        yield from series([m.last], "network", {f"gossip.threshold_{name}": value}, chance=False)


def _linear(
    m: Measurement,
    params: GossipULA,
    gossip: theory.Gossip,
    curvature: tuple[float, float, float, float],
) -> Iterator[Row]:
    """Yield the theorems' quantities on linear regression, from the exact law."""
    problem = m.problem
    assert isinstance(problem, Quadratic) and isinstance(problem.posterior, Gaussian)
    moments = m.initial.moments(m.problem.dim)
    assert moments is not None  # of a normal law
    agents, dim, posterior = problem.agents, problem.dim, problem.posterior
    plain = replace(params, communication="always", threshold=None, decay=None)
    choices = StepReader(plain, problem, m.network).choices()
    start = exact.initial_moments(agents, dim, moments)
    ticks = [int(k) for k in m.trace.draw if k > 0]
    squares = _Squares.compute_terms(problem, m, params)
    law = _follow(choices(0), start, squares, [0, *ticks], agents, dim)
    limit = choices(0).stationary()
    if limit is None:
        raise lacking("gossip_theorems", "steps for which the second moments settle")
    floor = _Squares.disagreement(agents, dim).at(*limit) / agents
    yield from known(m, {"gossip_floor": floor})
    k = np.array(ticks)
    for name, printed in (("bound", True), ("rederived", False)):
        bound = theory.consensus_bound(gossip, k, law.apart[0], law.gradients, printed) / agents
        infinite = [np.inf] if 0 in m.trace.draw else []
        told = {f"gossip_{name}": [*infinite, *bound]}
        yield from series([0] * len(infinite) + ticks, "network", told, chance=False)
    if params.communication == "triggered":
        yield from windows(m, "gossip_added", floor)
        return
    consensus = {"gossip_consensus": law.apart[1:] / agents}
    yield from series(ticks, "network", consensus, chance=False)
    first = _divergence(law.mean[0], law.cov[0], posterior)[0]
    bias = theory.Bias(curvature[1], curvature[0], curvature[2], law.gossip_noise, law.spread)
    offset = theory.consensus_bound(
        gossip, np.array([1e18]), law.apart[0], law.gradients, printed=False
    )
    bound, bias_bound = theory.divergence_bound(
        gossip, bias, k, first, law.apart[0], float(offset[0])
    )
    _, _, mean, cov = exact.marginals(*limit, agents, dim)
    settled = _divergence(mean, cov, posterior)[0]
    averages = zip(law.mean[1:], law.cov[1:], strict=True)
    ends = np.array([_divergence(*each, posterior, gossip.step) for each in averages])
    least, most = ends.reshape(-1, 2).T
    divergence = {
        "gossip_kl": least,
        "gossip_kl_most": most,
        "gossip_kl_bound": bound,
        "gossip_excess": least - settled,
    }
    yield from series(ticks, "network", divergence, chance=False)
    yield from known(m, {"gossip_bias": settled, "gossip_bias_bound": bias_bound})


def _divergence(
    mean: np.ndarray, cov: np.ndarray, posterior: Gaussian, step: float = 1.0
) -> tuple[float, float]:
    """Return bounds of the divergence of the agents' average from the posterior."""
    precision, away = np.linalg.inv(posterior.cov), mean - posterior.mean
    twice = np.trace(precision @ cov) + away @ precision @ away - len(mean)
    twice -= np.linalg.slogdet(precision)[1]
    ends = np.linalg.slogdet(cov)[1], len(mean) * np.log(2 * step)
    return float(twice - ends[0]) / 2, float(twice - ends[1]) / 2


@dataclass(frozen=True)
class _Squares:
    """The expectation E [s^T Q s - 2 q^T s + c] of a state s, as a function of its moments."""

    matrix: np.ndarray
    vector: np.ndarray
    constant: float

    def at(self, mean: np.ndarray, cov: np.ndarray) -> float:
        """Return the expectation for a state of this mean (size,) and covariance (size, size)."""
        inner = np.vdot(self.matrix, cov) + mean @ (self.matrix @ mean) - 2 * self.vector @ mean
        return float(inner + self.constant)

    @classmethod
    def norm(cls, matrix: np.ndarray, offset: np.ndarray) -> _Squares:
        """Return the function E |matrix s - offset|^2 of the moments of s."""
        return cls(matrix.T @ matrix, matrix.T @ offset, float(offset @ offset))

    @classmethod
    def disagreement(cls, agents: int, dim: int) -> _Squares:
        """Return the function E sum_i |x_i - average|^2 of the moments of the state."""
        center = np.eye(agents) - 1 / agents
        return cls.norm(np.kron(center, np.eye(dim)), np.zeros(agents * dim))

    @classmethod
    def compute_terms(cls, problem: Quadratic, m: Measurement, params: GossipULA) -> list[_Squares]:
        """Return disagreement, n mu_g, C_xi and C_w as functions of the state's moments."""
        agents, dim = problem.agents, problem.dim
        average = np.kron(np.full((1, agents), 1 / agents), np.eye(dim))
        gram, shift = problem.gram.sum(axis=0), problem.shift.sum(axis=0)
        weight = params.gradient_weights(m.network.graph) / agents
        xi = cls(np.zeros((agents * dim,) * 2), np.zeros(agents * dim), 0.0)
        for i, j in m.network.edges:
            share = (1 / m.network.degrees[i] + 1 / m.network.degrees[j]) / agents
            seen = np.tensordot(weight[[i, j]], problem.gram[[i, j]], axes=1)
            pulled = weight[[i, j]] @ problem.shift[[i, j]]
            one = cls.norm((gram - seen) @ average, shift - pulled)
            xi = cls(
                xi.matrix + share * one.matrix,
                xi.vector + share * one.vector,
                xi.constant + share * one.constant,
            )
        return [
            cls.disagreement(agents, dim),
            cls.norm(exact.block_diagonal(problem.gram), problem.shift.ravel()),
            xi,
            cls.norm(average, np.linalg.solve(gram, shift)),
        ]


@dataclass(frozen=True)
class _Law:
    """Disagreement (K,) and the average's moments (K, dim), (K, dim, dim) at recorded ticks.

    gradients, gossip_noise, spread: mu_g, C_xi and C_w, the largest over all ticks.
    """

    apart: np.ndarray
    mean: np.ndarray
    cov: np.ndarray
    gradients: float
    gossip_noise: float
    spread: float


def _follow(
    choices: Choices,
    start: tuple[np.ndarray, np.ndarray],
    squares: list[_Squares],
    ticks: list[int],
    agents: int,
    dim: int,
) -> _Law:
    """Return disagreement and the average's moments at ``ticks``, which increase from 0."""
    mean, cov = start
    apart, means, covs, largest = [], [], [], np.zeros(3)
    wanted = set(ticks)
    for k in range(ticks[-1] + 1):
        largest = np.maximum(largest, [each.at(mean, cov) for each in squares[1:]])
        if k in wanted:
            _, _, center, spread = exact.marginals(mean, cov, agents, dim)
            apart.append(squares[0].at(mean, cov))
            means.append(center)
            covs.append(spread)
        mean, cov = choices.step(mean, cov)
    gradients, gossip_noise, width = map(float, largest)
    moments = np.array(apart), np.array(means), np.array(covs)
    return _Law(*moments, gradients / agents, gossip_noise, width)
