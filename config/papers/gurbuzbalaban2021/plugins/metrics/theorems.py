"""Theorems 2 and 10, Lemma 12 and Remarks 3 and 11 of gurbuzbalaban2021, beside the exact law."""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from concord.laws import exact, paths
from concord.laws.law import start_of, update_of
from concord.laws.wasserstein import w2
from concord.networks.graph import as_dense
from concord.problem import Quadratic
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD
from concord.sampling.initial import normal
from concord.sampling.schedules import Schedule
from concord_studies.contracts import Label, SampledLaw
from concord_studies.metrics import Measurement, Row, final_rows, series, unmet_need, yields
from concord_studies.metrics._theorems import condition_rows

from .. import theory

OF_LEMMA12 = ("beta", "(4.9)", "(4.10), first bound", "(4.10), second bound")
SHARED = ("connected graph", "step size", "strong convexity")
BUDGETS = tuple(100 * 2**n for n in range(8))


@yields(
    (
        *("theorem2.*", "theorem2_bound", "theorem2_rederived", "w2_exact_mean"),
        *("theorem10.*", "theorem10_bound", "theorem10_rederived", "lemma12.*"),
        *("budget_w2", "budget_ratio"),
    ),
    network="perfect",  # they speak of networks on which nothing is lost
    exact=("*",),
    conditions=(
        *(f"theorem2.{name}" for name in (*SHARED, "contraction", "decay")),
        *(f"theorem10.{name}" for name in (*SHARED, *OF_LEMMA12)),
        *("theorem10.Lemma 15, decay", "theorem10.Lemma 15, step size", "lemma12.*"),
    ),
    labels={
        "w2_exact_mean": Label("exact W2, mean over the agents", "exact mean W2"),
        "theorem2_bound": Label("bound of Theorem 2", "bound"),
        "theorem2_rederived": Label(head="bound, rederived"),
        "theorem10_bound": Label("bound of Theorem 10", "bound"),
        "theorem10_rederived": Label(head="bound, rederived"),
        "lemma12.beta": Label(head="beta = 1 - gamma eta in [0, 1)"),
        "lemma12.(4.9)": Label(head="(4.9), eta^2 at most"),
        "lemma12.(4.10), first bound": Label(head="(4.10), beta at most (first bound)"),
        "lemma12.(4.10), second bound": Label(head="(4.10), beta at most (second bound)"),
        "budget_ratio": Label("exact W2 after K steps, over the rate in K", "over sqrt(log K / K)"),
        "budget_w2": Label(head="exact W2 after K steps"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    r"""Yield bound, exact mean W2, constants and conditions; refuse runs they say nothing of.

    Of DE-SGLD those of Theorem 2, of DE-SGHMC those of Theorem 10 and Lemma 12. <theorem>_bound is
    the printed bound on (1/N) sum_i W2(law of x_i, exp(-sum_i f_i)), infinite where a condition
    fails; <theorem>_rederived the bound with the transient as its proof gives it; w2_exact_mean
    what both bound. The target is that of the potentials as sampled, which is the posterior if they
    have the prior once. <theorem>.<name> are the constants, and <theorem>.<condition> is 1 where a
    condition holds, 0 where it does not.

    c_5 of Theorem 10, which the paper does not state, is the smallest there is: the largest
    E|x^(k)|^2 or E|v^(k)|^2 of the exact law.

    budget_w2: per recorded agent and budget K, in place of the iteration, the exact W2 after K
    steps that the remarks choose for it. The step size of DE-SGLD is
    :math:`\eta = \log\sqrt K/(\mu K)`, mu the strong convexity of the f_i; for DE-SGHMC that is
    :math:`\eta^2`, with gamma = 1/eta (beta = 0, as Lemma 12 allows). budget_ratio is the distance
    over :math:`\sqrt{\log K/K}`, the printed order: it stays bounded if that is right.
    """
    start, problem, sampler, law = m.initial.params, m.problem, m.sampler, m.law
    if (
        not isinstance(sampler, (DESGLD, DESGHMC))
        or not sampler.step_size.constant
        or sampler.batch_size is not None
        or m.network.order != "simultaneous"
        or not np.array_equal(W := as_dense(m.network.matrix(sampler.weights)), W.T)
        or not isinstance(start, normal.Params)
        or not isinstance(start.sd, float)
        or not isinstance(problem, Quadratic)
        or not isinstance(problem, SampledLaw)
        or law is None
    ):
        raise unmet_need(
            "theorems",
            "DE-SGLD or DE-SGHMC with a constant step, full gradients, simultaneous updates and a "
            "symmetric W on linear regression, starting from N(mean, sd^2 I)",
        )
    spectrum, eta = np.linalg.eigvalsh(W), sampler.step_size.initial
    setting = theory.Setting(problem.gram, problem.shift, spectrum, start.mean, start.sd)
    if isinstance(sampler, DESGLD):
        theorem, bound = "theorem2", theory.theorem2(setting, eta, m.trace.draw)
    else:
        steps = eta, sampler.friction
        curvature = setting.mu, setting.smooth, setting.lambda_n
        yield from condition_rows(m, "lemma12", theory.lemma12(*steps, *curvature))
        c5 = largest_moment(m)
        theorem, bound = "theorem10", theory.theorem10(setting, *steps, c5, m.trace.draw)
    curves = {
        "w2_exact_mean": w2(law.mean, law.cov, problem.sampled).mean(axis=1),
        f"{theorem}_bound": bound.printed,
        f"{theorem}_rederived": bound.rederived,
    }
    yield from series(m.trace.draw, "network", curves, chance=False)
    holds = {condition.name: float(condition.holds) for condition in bound.conditions}
    numbers = (bound.constants | holds).items()
    yield from final_rows(m, {f"{theorem}.{name}": value for name, value in numbers})
    for budget in BUDGETS:
        step = float(np.log(np.sqrt(budget)) / (setting.mu * budget))
        if isinstance(sampler, DESGLD):
            update = update_of(replace(sampler, step_size=Schedule(step)), problem, m.network)
        else:
            root = float(np.sqrt(step))
            chosen = replace(sampler, step_size=Schedule(root), friction=1 / root)
            update = update_of(chosen, problem, m.network)
        path = paths.build_path(update, start_of(m, update), problem.agents, problem.dim)
        after = path.law([budget])
        distances = w2(after.mean[0], after.cov[0], problem.sampled)[m.trace.agent]
        ratios = distances / np.sqrt(np.log(budget) / budget)
        curves = {"budget_w2": distances, "budget_ratio": ratios}
        yield from series([budget], m.agents, curves, chance=False)


def largest_moment(m: Measurement) -> float:
    """Return the largest of E|x^(k)|^2 and E|v^(k)|^2 until the last iteration, and in the limit.

    Infinite where the law does not settle.
    """
    update = update_of(m.sampler, m.problem, m.network)
    mean, cov = start = start_of(m, update)
    step = update.at(0)
    limit = exact.limit(step, *start)
    if limit is None:
        return float("inf")
    moments = [limit]
    for _ in range(m.iterations + 1):
        moments.append((mean, cov))
        mean, cov = step.apply(mean, cov)
    squares = np.array([mean**2 + cov.diagonal() for mean, cov in moments])  # of (x, v)
    return float(squares.reshape(len(squares), 2, -1).sum(axis=2).max())
