"""Remarks 3 and 11 of gurbuzbalaban2021: the step size chosen for a budget of K iterations."""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from concord.laws import paths
from concord.laws.law import start_of, update_of
from concord.laws.wasserstein import w2
from concord.problem import Quadratic
from concord.sampler import Sampler
from concord.samplers.de_sghmc import DESGHMC
from concord.samplers.de_sgld import DESGLD
from concord.sampling.schedules import Schedule
from concord_studies.contracts import Label, SampledLaw
from concord_studies.metrics import Measurement, Row, series, unmet_need

METRICS = ("budget_w2", "budget_ratio")
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
LABELS = {
    "budget_ratio": Label("exact W2 after K steps, over the rate in K", "over sqrt(log K / K)"),
    "budget_w2": Label(head="exact W2 after K steps"),
}

BUDGETS = tuple(100 * 2**n for n in range(8))


def rows(m: Measurement) -> Iterator[Row]:
    r"""Yield, per recorded agent and budget K, the exact W2 to exp(-sum_i f_i) after K steps.

    The step size of DE-SGLD is :math:`\eta = \log\sqrt K/(\mu K)`, mu the strong convexity of the
    f_i; for DE-SGHMC that is :math:`\eta^2`, with gamma = 1/eta (beta = 0, as Lemma 12 allows). The
    row's iteration is K. budget_ratio is the distance over :math:`\sqrt{\log K/K}`, the printed
    order: it stays bounded if that is right. A ConcordError if the run is of another sampler or
    problem, or has mini-batches.
    """
    sampler, problem = m.sampler, m.problem
    if (
        not isinstance(sampler, (DESGLD, DESGHMC))
        or m.batches.batch_size is not None
        or not isinstance(problem, Quadratic)
        or not isinstance(problem, SampledLaw)
        or m.initial.moments(problem.dim) is None
    ):
        raise unmet_need("budget", "DE-SGLD or DE-SGHMC with full gradients on linear regression")
    mu = float(np.linalg.eigvalsh(problem.gram).min())
    for budget in BUDGETS:
        eta = np.log(np.sqrt(budget)) / (mu * budget)
        if isinstance(sampler, DESGLD):
            chosen: Sampler = replace(sampler, step_size=Schedule(eta))
        else:
            root = float(np.sqrt(eta))
            chosen = replace(sampler, step_size=Schedule(root), friction=1 / root)
        update = update_of(chosen, problem, m.network)
        start = start_of(m, update)
        law = paths.build_path(update, start, problem.agents, problem.dim).law([budget])
        distances = w2(law.mean[0], law.cov[0], problem.sampled)
        by_agent = distances[m.trace.agent]
        numbers = {
            "budget_w2": by_agent,
            "budget_ratio": by_agent / np.sqrt(np.log(budget) / budget),
        }
        yield from series([budget], m.agents, numbers, chance=False)
