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

import dataclasses
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from concord.laws import exact
from concord.laws.gaussian import Gaussian
from concord.laws.intervals import mean_interval
from concord.laws.read_off import StepReader
from concord.laws.switching import SIZE_LIMIT
from concord.problem import Problem, Quadratic
from concord.random import activity
from concord.samplers.gossip_ula import GossipULA
from concord.sampling.initial import normal
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, final_rows, series, unmet_need, yields
from concord_studies.metrics._theorems import condition_metrics, condition_rows

from .. import theory
from .consensus_floor import window_rows

LAW = ("bias", "bias_bound", "bound", "consensus", "excess", "floor", "kl", "kl_bound", "kl_most")
# Constants of which B is a power, and in which it is linear, by section 5.
PROPORTIONAL, LINEAR = ("alpha", "n", "p_m"), ("C_xi", "C_w", "d_w")
# Of a step: terms of B of higher order in the step are then less than a hundredth of B.
SMALL = 1e-6


@yields(
    (
        *("gossip.drift_share", "gossip.threshold", "gossip.threshold_bound", "gossip_added"),
        *(*condition_metrics("gossip.condition_[12]"), *(f"gossip_{name}" for name in LAW)),
        *(f"gossip.exponent_{name}" for name in PROPORTIONAL),
        *(f"gossip.bend_{name}" for name in LINEAR),
    ),
    network="perfect",  # it speaks of networks on which nothing is lost
    conditions=("gossip.condition_[12]",),
    labels={
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
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the theorems' bounds and conditions, and on linear regression the true values.

    gossip.condition_1 and _2: (25) and (26), 1 where met, and .value, left over right side;
    condition_1 is left out where the log-Sobolev constant is not known well enough.
    gossip.drift_share: the mean share of the gradient that the average follows.
    gossip.threshold, where triggered: the largest over agents of their thresholds at the end, mean
    over chains, and gossip.threshold_bound, (9)'s bound. Bounds are as printed where the weights of
    the gradient are, and as rederived with ``drift: whole``; gossip_kl_bound is always rederived.

    On linear regression: gossip_consensus and gossip_floor, the exact error per agent without
    triggering and its limit; gossip_bound, (27) per agent, infinite at the start, of
    which it says nothing; gossip_added, where triggered, the error of windows less gossip_floor.
    gossip.exponent_alpha, _n and _p_m: the exponent of B, (48), in each of these constants when it
    doubles, at ``SMALL`` times the step; gossip.bend_C_xi, _C_w and _d_w: its second difference
    when one of them is 0, 1 or 2 times what it is, over B, which is 0 if B is linear in it. All
    other constants are held.
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
        raise unmet_need("gossip_theorems", "gossip ULA that communicates, with constant steps")
    gossip = _build_gossip(m, params)
    curvature = _bound_curvature(m.problem)
    met = [theory.condition1(gossip.step, *curvature[1:]), theory.condition2(gossip)]
    yield from condition_rows(m, "gossip", [each for each in met if each is not None])
    yield from final_rows(m, {"gossip.drift_share": gossip.power})
    if params.communication == "triggered" and "activations" in m.trace:
        yield from _threshold_rows(m, gossip, params.drift == "half")
    size = m.problem.agents * m.problem.dim
    normally = isinstance(m.initial.params, normal.Params)
    if isinstance(m.problem, Quadratic) and size <= SIZE_LIMIT and normally:
        yield from _regression_rows(m, params, gossip, curvature)


def _build_gossip(m: Measurement, params: GossipULA) -> theory.Gossip:
    """Return the constants of the gossip theorems for a run's network and options."""
    agents, active = m.network.agents, activity(m.network.graph)
    laplacian = np.zeros((agents, agents))
    for (i, j), share in _list_pairs(m):
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


def _list_pairs(m: Measurement) -> list[tuple[tuple[int, int], float]]:
    """Return the pairs of agents that may gossip in a tick, each with its probability."""
    each = 1 / m.network.degrees / m.network.agents
    return [((i, j), each[i] + each[j]) for i, j in m.network.edges]


def _bound_curvature(problem: Problem) -> theory.Curvature:
    """Return the curvature of a problem that bounds it."""
    if isinstance(problem, Quadratic):
        least = most = problem.gram
    elif hasattr(problem, "curvature"):  # bounds of Hessians, both (agents, dim, dim)
        least, most = problem.curvature()
    else:
        raise unmet_need("gossip_theorems", "a problem that bounds its curvature")
    if not np.isfinite(most).all():
        return theory.Curvature(np.inf, np.inf, 0.0, np.inf)
    low, high = (np.linalg.eigvalsh(each.sum(axis=0)) for each in (least, most))
    smoothest = float(np.linalg.eigvalsh(most).max())
    return theory.Curvature(smoothest, float(high[-1]), max(float(low[0]), 0.0), float(high[0]))


def _threshold_rows(m: Measurement, gossip: theory.Gossip, printed: bool) -> Iterator[Row]:
    """Yield a run's last communication threshold, and the theoretical one for a common clock."""
    seldom = m.trace["activations"][:, -1].min(axis=1)
    thresholds = gossip.threshold / (seldom + 1.0) ** gossip.decay
    yield from series([m.last], "network", {"gossip.threshold": mean_interval(thresholds)})
    common = gossip.common_threshold(printed) / (m.last + 1) ** gossip.decay
    yield from series([m.last], "network", {"gossip.threshold_bound": common}, chance=False)


def _regression_rows(
    m: Measurement, params: GossipULA, gossip: theory.Gossip, curvature: theory.Curvature
) -> Iterator[Row]:
    """Yield the theorems' quantities on linear regression, from the exact law."""
    problem, moments = m.problem, m.initial.moments(m.problem.dim)
    assert isinstance(problem, Quadratic) and isinstance(problem.posterior, Gaussian)
    assert moments is not None  # of a normal law
    agents, dim, posterior = problem.agents, problem.dim, problem.posterior
    plain = replace(params, communication="always", threshold=None, decay=None)
    choices = StepReader(plain, problem, m.network).read_step(0).choices
    limit = choices.stationary()
    if limit is None:
        raise unmet_need("gossip_theorems", "steps for which the second moments settle")
    squares = _list_squares(m, params, problem)
    floor = _expect(squares, *limit)[0] / agents
    yield from final_rows(m, {"gossip_floor": floor})
    ticks = np.array([k for k in m.trace.draw if k > 0], dtype=int)
    path = [exact.initial_moments(agents, dim, moments)]
    for _ in range(ticks[-1]):
        path.append(choices.apply(*path[-1]))
    mean, cov = map(np.array, zip(*path, strict=True))
    apart, gradients, gossip_noise, spread = _expect(squares, mean, cov)
    start_and_gradients = apart[0], gradients.max() / agents
    printed = params.drift == "half"
    bound = theory.consensus_bound(gossip, ticks, *start_and_gradients, printed) / agents
    infinite = [np.inf] * (0 in m.trace.draw)
    bounds = {"gossip_bound": [*infinite, *bound]}
    yield from series([0] * len(infinite) + ticks.tolist(), "network", bounds, chance=False)
    if params.communication == "triggered":
        yield from window_rows(m, "gossip_added", floor)
        return
    yield from final_rows(
        m,
        _vary_bias(
            gossip, curvature, gradients.max() / agents, gossip_noise.max(), spread.max(), printed
        ),
    )
    offset = theory.consensus_offset(gossip, gradients.max() / agents)
    *_, means, covs = exact.marginals(mean, cov, agents, dim)
    start = _enclose_divergence(means[0], covs[0], posterior)[0], apart[0]
    of_bias = theory.divergence_bound(
        gossip, curvature, ticks, start, offset, gossip_noise.max(), spread.max()
    )
    settled = _enclose_divergence(*exact.marginals(*limit, agents, dim)[2:], posterior)[0]
    ends = np.array([_enclose_divergence(means[k], covs[k], posterior, gossip.step) for k in ticks])
    least, most = ends.reshape(-1, 2).T
    curves = {
        "gossip_consensus": apart[ticks] / agents,
        **{"gossip_kl": least, "gossip_kl_most": most, "gossip_kl_bound": of_bias[0]},
        "gossip_excess": least - settled,
    }
    yield from series(ticks, "network", curves, chance=False)
    yield from final_rows(m, {"gossip_bias": settled, "gossip_bias_bound": of_bias[1]})


def _vary_bias(
    gossip: theory.Gossip,
    curvature: theory.Curvature,
    gradients: float,
    noise: float,
    spread: float,
    printed: bool,
) -> dict[str, float]:
    """Return exponents of the bias constant B, (48), and how far it is from linear, by metric.

    gradients, noise, spread: mu_g, C_xi and C_w.
    """

    def multiply(name: str, factor: float, of_step: float = 1.0) -> float:
        """Return B with one of its constants, and the step besides, multiplied by a factor."""
        by = {**dict.fromkeys((*PROPORTIONAL, *LINEAR), 1.0), name: factor}
        changed = dataclasses.replace(
            gossip,
            agents=round(gossip.agents * by["n"]),
            dim=round(gossip.dim * by["d_w"]),
            step=gossip.step * by["alpha"] * of_step,
            least_active=gossip.least_active * by["p_m"],
        )
        offset = theory.consensus_offset(changed, gradients)
        noisy = noise * by["C_xi"], spread * by["C_w"]
        return theory.bias_constant(changed, curvature, offset, *noisy, printed)

    plain, least = multiply("n", 1.0), multiply("n", 1.0, SMALL)
    exponents = {name: np.log2(multiply(name, 2.0, SMALL) / least) for name in PROPORTIONAL}
    bends = {name: (multiply(name, 2.0) + multiply(name, 0.0)) / plain - 2 for name in LINEAR}
    return {
        **{f"gossip.exponent_{name}": float(p) for name, p in exponents.items()},
        **{f"gossip.bend_{name}": float(bend) for name, bend in bends.items()},
    }


def _enclose_divergence(
    mean: np.ndarray, cov: np.ndarray, posterior: Gaussian, step: float = 1.0
) -> tuple[float, float]:
    """Return bounds of the divergence of the agents' average from the posterior."""
    precision, away = np.linalg.inv(posterior.cov), mean - posterior.mean
    twice = np.trace(precision @ cov) + away @ precision @ away - len(mean)
    twice -= np.linalg.slogdet(precision)[1]
    ends = np.linalg.slogdet(cov)[1], len(mean) * np.log(2 * step)
    return float(twice - ends[0]) / 2, float(twice - ends[1]) / 2


# The square |M s - v|^2 of a state s, as M and v.
Square = tuple[np.ndarray, np.ndarray]


def _expect(squares: list[Square], mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """Return the expectations of squares at a state's moments, (squares, ...).

    mean, cov: (..., S) and (..., S, S).
    """
    return np.array(
        [
            np.einsum("...ij,ij->...", cov, M.T @ M) + ((mean @ M.T - v) ** 2).sum(axis=-1)
            for M, v in squares
        ]
    )


def _list_squares(m: Measurement, params: GossipULA, problem: Quadratic) -> list[Square]:
    """Return the squares whose expectations are disagreement, n mu_g, C_xi and C_w."""
    agents, identity = problem.agents, np.eye(problem.dim)
    average = np.kron(np.full((1, agents), 1 / agents), identity)
    center = np.kron(np.eye(agents) - 1 / agents, identity)
    gram, shift = problem.gram.sum(axis=0), problem.shift.sum(axis=0)
    weight = params.gradient_weights(m.network.graph) / agents
    errors, offsets = [], []  # of the gradient that each pair sees, in place of all
    for (i, j), share in _list_pairs(m):
        pair_gram = np.tensordot(weight[[i, j]], problem.gram[[i, j]], axes=1)
        errors.append(np.sqrt(share) * (gram - pair_gram) @ average)
        offsets.append(np.sqrt(share) * (shift - weight[[i, j]] @ problem.shift[[i, j]]))
    return [
        (center, np.zeros(len(center))),
        (exact.block_diagonal(problem.gram), problem.shift.ravel()),
        (np.concatenate(errors), np.concatenate(offsets)),
        (average, np.linalg.solve(gram, shift)),
    ]
