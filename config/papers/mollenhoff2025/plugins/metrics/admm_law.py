r"""The laws N(m_i, S_i^{-1}) of BayesADMM's agents, round by round, without chance.

``admm_<name>`` is what ``stationary_<name>`` is of a stationary law: the distance to the posterior,
the variances over the posterior's, and the bias of the mean in posterior standard deviations.
global_loss: the sum of all potentials at an agent's mean; excess_loss: less their minimum,
least_loss. All are infinite where the mean is. Where S_i is not positive definite there is no law,
and all that needs its covariance is infinite, too.
"""

from collections.abc import Iterator

import numpy as np

from concord.problem import CountedProblem
from concord_studies import metrics
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, series, unmet_need, yields
from concord_studies.metrics.stationary import NAMES, compare_gaussians

OF_LAWS = tuple(f"admm_{name}" for name in NAMES)
METRICS = (*OF_LAWS, "global_loss", "excess_loss", "least_loss")


@yields(
    METRICS,
    exact=("*",),
    labels={
        "admm_w2": Label("W2 of the agent's law to the posterior", "W2"),
        "admm_trace": Label("trace of the law's covariance over the posterior's", "variance ratio"),
        "admm_narrowest": Label(head="narrowest direction"),
        "admm_widest": Label(head="widest direction"),
        "admm_bias": Label("bias of the law's mean, in posterior standard deviations", "bias"),
        "global_loss": Label("loss of all agents at an agent's mean"),
        "excess_loss": Label("loss above the least, of all agents at an agent's mean"),
        "least_loss": Label("least loss of all agents together"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the numbers of the recorded agents' laws at every recorded iteration but the first."""
    if not hasattr(m.sampler, "family"):
        raise unmet_need("admm_law", "the sampler bayes_admm")
    problem, target = m.problem, m.problem.posterior
    shape = 1, problem.agents, problem.dim
    rng, x0 = np.random.default_rng(0), np.zeros(shape)  # of draws, which are not used
    network, counted = m.network.start(x0), CountedProblem(problem, 1)
    least = float(problem.potential(np.broadcast_to(target.mean, shape)).sum())  # type: ignore[attr-defined]
    yield from metrics.final_rows(m, {"least_loss": least})
    state = m.sampler.init(x0, counted, network, rng)
    for k in range(m.iterations):
        state = m.sampler.step(state, k, counted, network, rng)
        if k + 1 not in m.trace.draw:
            continue
        for agent in m.trace.agent.tolist():
            mean = state.mean[agent]
            precision = state.precision[agent]
            loss = float(problem.potential(np.broadcast_to(mean, shape)).sum())  # type: ignore[attr-defined]
            numbers = dict.fromkeys(METRICS[:-1], np.inf)
            if np.isfinite(loss):
                numbers |= {"global_loss": loss, "excess_loss": max(loss - least, 0.0)}
                is_law = np.isfinite(precision).all() and np.linalg.eigvalsh(precision)[0] > 0
                has_width = is_law and m.sampler.family != "point"
                cov = np.linalg.inv(precision) if has_width else np.zeros_like(precision)
                *of_cov, bias = compare_gaussians(mean, cov, target)
                if not is_law:
                    of_cov = [np.inf] * len(of_cov)
                numbers |= dict(zip(OF_LAWS, (*of_cov, bias), strict=True))
            yield from series([k + 1], str(agent), numbers, chance=False)
