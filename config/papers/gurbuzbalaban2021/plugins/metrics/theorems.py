"""Theorems 2 and 10, their lemmas and Remark 3 of gurbuzbalaban2021, beside the exact law."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace

from concord.laws import exact, paths
from concord.laws.law import batch_noise, start_of, update_of
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
LEMMAS = {f"lemma{number}": f"Lemma {number}" for number in (4, 5, 6, 9, 13, 14)}
BUDGETS = tuple(100 * 2**n for n in range(8))


@yields(
    (
        *("theorem2.*", "theorem2_bound", "theorem2_rederived", "w2_exact_mean", "w2_most_mean"),
        *("theorem10.*", "theorem10_bound", "theorem10_rederived", "lemma12.*"),
        *("budget_w2", "budget_ratio", *LEMMAS, *(f"{lemma}_bound" for lemma in LEMMAS)),
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
        "w2_most_mean": Label("what W2 can be at most, mean over the agents", "mean W2 at most"),
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
        **{key: Label(f"what {lemma} bounds", lemma) for key, lemma in LEMMAS.items()},
        **{f"{key}_bound": Label(head=f"{lemma}, bound") for key, lemma in LEMMAS.items()},
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    r"""Yield bound, exact mean W2, constants and conditions; refuse runs they say nothing of.

    Of DE-SGLD those of Theorem 2, of DE-SGHMC those of Theorem 10 and Lemma 12. <theorem>_bound is
    the printed bound on (1/N) sum_i W2(law of x_i, exp(-sum_i f_i)), infinite where a condition
    fails; <theorem>_rederived the bound with the transient as its proof gives it; w2_exact_mean
    what both bound; with mini-batches the distance of the normal laws with the exact moments, which
    is at most W2, and w2_most_mean what W2 is at most: the root of the mean squared distance of
    independent draws. The target is that of the potentials as sampled, which is the posterior if
    they have the prior once. <theorem>.<name> are the constants, and <theorem>.<condition> is 1
    where a condition holds, 0 where it does not. lemma<n> and lemma<n>_bound: the exact mean square
    that a lemma bounds (``mean_squares``), and the bound, where the theorem's conditions hold.

    c_5 of Theorem 10, which the paper does not state, is the smallest there is: the largest
    E|x^(k)|^2 or E|v^(k)|^2 of the exact law. So is sigma^2: the largest E|xi_i^(k)|^2.

    budget_w2: of DE-SGLD, per recorded agent and budget K, in place of the iteration, the exact W2
    after K steps of the size that Remark 3 chooses for it,
    :math:`\eta = \log\sqrt K/(\mu K)`, mu the strong convexity of the f_i. budget_ratio is the
    distance over :math:`\sqrt{\log K/K}`, the printed order: it stays bounded if that is right.
    """
    start, problem, sampler, law = m.initial.params, m.problem, m.sampler, m.law
    if (
        not isinstance(sampler, (DESGLD, DESGHMC))
        or not sampler.step_size.constant
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
            "DE-SGLD or DE-SGHMC with a constant step, simultaneous updates and a symmetric W on "
            "linear regression, starting from N(mean, sd^2 I)",
        )
    spectrum, eta = np.linalg.eigvalsh(W), sampler.step_size.initial
    begin = np.asarray(start.mean), start.sd
    setting = theory.Setting(problem.gram, problem.shift, spectrum, *begin)
    mean, cov, sigma = walk(m)
    if isinstance(sampler, DESGLD):
        theorem, bound = "theorem2", theory.theorem2(setting, eta, sigma, m.trace.draw)
    else:
        steps = eta, sampler.friction
        curvature = setting.mu, setting.smooth, setting.lambda_n
        yield from condition_rows(m, "lemma12", theory.lemma12(*steps, *curvature))
        c5 = largest_moment(m, mean, cov)
        theorem, bound = "theorem10", theory.theorem10(setting, *steps, c5, sigma, m.trace.draw)
    curves = {
        "w2_exact_mean": w2(law.mean, law.cov, problem.sampled).mean(axis=1),
        f"{theorem}_bound": bound.printed,
        f"{theorem}_rederived": bound.rederived,
    }
    if sampler.batch_size is not None:  # a law that is not normal
        traces = np.trace(law.cov, axis1=-2, axis2=-1) + np.trace(problem.sampled.cov)
        apart = ((law.mean - problem.sampled.mean) ** 2).sum(axis=-1)
        curves["w2_most_mean"] = np.sqrt(apart + traces).mean(axis=1)
    squares = mean_squares(problem, mean[m.trace.draw], cov[m.trace.draw])
    for lemma, limit in bound.lemmas.items():
        curves |= {lemma: squares[lemma], f"{lemma}_bound": limit}
    yield from series(m.trace.draw, "network", curves, chance=False)
    holds = {condition.name: float(condition.holds) for condition in bound.conditions}
    numbers = (bound.constants | holds).items()
    yield from final_rows(m, {f"{theorem}.{name}": value for name, value in numbers})
    if isinstance(sampler, DESGLD) and sampler.batch_size is None:
        yield from budget_rows(m, setting.mu)


def budget_rows(m: Measurement, mu: float) -> Iterator[Row]:
    """Yield the exact W2 of DE-SGLD's agents after each budget of iterations, and its ratio."""
    problem: Any = m.problem
    for budget in BUDGETS:
        step = Schedule(float(np.log(np.sqrt(budget)) / (mu * budget)))
        update = update_of(replace(m.sampler, step_size=step), problem, m.network)
        path = paths.build_path(update, start_of(m, update), problem.agents, problem.dim)
        after = path.law([budget])
        distances = w2(after.mean[0], after.cov[0], problem.sampled)[m.trace.agent]
        ratios = distances / np.sqrt(np.log(budget) / budget)
        curves = {"budget_w2": distances, "budget_ratio": ratios}
        yield from series([budget], m.agents, curves, chance=False)


def walk(m: Measurement) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the state's exact means and covariances at iterations 0, 1, ..., and sigma.

    Shapes (iterations + 1, S) and (iterations + 1, S, S). sigma^2: the largest E|xi_i|^2 of any
    agent and iteration, 0 for full gradients.
    """
    problem: Any = m.problem
    update, errors_at = update_of(m.sampler, problem, m.network), _gradient_errors(m)
    step = update.at(0)
    mean, cov = start_of(m, update)
    means, covs, sigma_square = [], [], 0.0
    for _ in range(m.iterations + 1):
        means.append(mean)
        covs.append(cov)
        added = 0.0
        if errors_at is not None:
            errors, gain = errors_at(mean, cov), np.asarray(step.gradient_gain)
            sigma_square = max(sigma_square, np.trace(errors, axis1=1, axis2=2).max())
            added = gain @ exact.block_diagonal(errors) @ gain.T
        mean, cov = step.apply(mean, cov)
        cov = cov + added
    return np.array(means), np.array(covs), float(np.sqrt(sigma_square))


def _gradient_errors(m: Measurement) -> Any:
    """Return a function from the state's moments to the agents' E[xi_i xi_i^T], (N, d, d).

    None for full gradients.
    """
    problem: Any = m.problem
    noise = batch_noise(m)
    if noise is None:
        return None
    return lambda mean, cov: noise(*exact.marginals(mean, cov, problem.agents, problem.dim)[:2])


def mean_squares(problem: Any, mean: np.ndarray, cov: np.ndarray) -> Mapping[str, np.ndarray]:
    """Return what the lemmas bound, at each of some iterations, from moments of the state.

    Lemma 4: E|grad F(x)|^2. Lemmas 5 and 13: sum_i E|x_i - xbar|^2. Lemmas 6 and 14: E|E_k|^2 of
    the error of the average's gradient, (1/N) sum_i (grad f_i(xbar) - grad f_i(x_i)). Lemma 9:
    E|X - x_*|^2 of the law exp(-sum_i f_i).
    """
    agents, dim = problem.shift.shape
    size = agents * dim
    centered = np.kron(np.eye(agents) - 1 / agents, np.eye(dim))
    error = np.hstack(list(problem.gram)) @ centered / agents

    def square(matrix: np.ndarray, offset: Any = 0.0) -> np.ndarray:
        """Return E|M x - offset|^2."""
        spread = np.einsum("ij,kjl,il->k", matrix, cov[:, :size, :size], matrix)
        result: np.ndarray = ((mean[:, :size] @ matrix.T - offset) ** 2).sum(axis=1) + spread
        return result

    apart, off = square(centered), square(error)
    return {
        "lemma4": square(exact.block_diagonal(problem.gram), problem.shift.ravel()),
        **{"lemma5": apart, "lemma13": apart, "lemma6": off, "lemma14": off},
        "lemma9": np.full(len(mean), np.trace(problem.sampled.cov)),
    }


def largest_moment(m: Measurement, mean: np.ndarray, cov: np.ndarray) -> float:
    """Return the largest of E|x^(k)|^2 and E|v^(k)|^2 until the last iteration, and in the limit.

    Infinite where the law does not settle. mean, cov: of the state until then.
    """
    update = update_of(m.sampler, m.problem, m.network)
    limit = exact.limit(update.at(0), *start_of(m, update), _gradient_errors(m))
    if limit is None:
        return float("inf")
    moments = [limit, *zip(mean, cov, strict=True)]
    squares = np.array([mean**2 + cov.diagonal() for mean, cov in moments])  # of (x, v)
    return float(squares.reshape(len(squares), 2, -1).sum(axis=2).max())
