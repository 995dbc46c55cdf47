"""The exact stationary distribution of an affine sampler, compared with a Gaussian posterior."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from concord.errors import ConcordError
from concord.laws import exact
from concord.laws.exact import Moments
from concord.laws.gaussian import Gaussian
from concord.laws.law import SIZE_LIMIT, batch_noise, compose_cycle, start_of, update_of
from concord.laws.read_off import NoLaw, StepReader
from concord.laws.switching import SIZE_LIMIT as CHOICES_LIMIT
from concord.laws.switching import Choices
from concord.laws.wasserstein import w2
from concord.minibatches import batches_of
from concord.networks.network import Network
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, final_rows, series, unmet_need, yields
from concord_studies.metrics._references import select_law

NAMES = ("w2", "trace", "narrowest", "widest", "bias")
METRICS = (*(f"stationary_{name}" for name in NAMES), "spectral_radius")


@yields(
    METRICS,
    network="delivers",  # it speaks of networks on which nothing is lost
    exact=("*",),
    averaged=("stationary_*",),
    labels={
        "stationary_trace": Label(
            "trace of the stationary covariance over the posterior's", "variance ratio"
        ),
        "stationary_w2": Label("stationary W2", "W2"),
        "stationary_bias": Label(
            "stationary bias, in posterior standard deviations", "bias, posterior sd"
        ),
        "stationary_narrowest": Label(head="narrowest direction"),
        "stationary_widest": Label(head="widest direction"),
        "spectral_radius": Label(head="spectral radius"),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield differences of the stationary law from the posterior, per agent and average.

    stationary_w2: distance to the posterior (of the Gaussian with the law's mean and covariance).
    stationary_trace: trace of the covariance over the posterior's. stationary_narrowest and
    stationary_widest: the ratio of variances in the direction where it is smallest and largest
    (generalized eigenvalues). stationary_bias: distance of the means in posterior standard
    deviations, the largest over directions. spectral_radius: of the update, conserved quantities
    apart; of an update with a random choice (gossip) the root of its covariances'. Where it is 1 or
    more, or the noise of mini-batches makes the covariance grow without end, there is no stationary
    distribution and the others are infinite. Schedules are held at the values of the last step.
    """
    agents, dim, target = m.problem.agents, m.problem.dim, m.problem.posterior
    if agents * dim > SIZE_LIMIT:
        raise ConcordError(
            f"metric stationary: {agents} agents of dimension {dim} exceed "
            f"{SIZE_LIMIT} entries; remove it from this run's metrics"
        )
    what = "an affine sampler on a Gaussian problem, without mini-batches in epochs"
    if target is None:
        raise unmet_need("stationary", what)
    try:
        radius, law = _stationary_moments(m)
    except NoLaw:
        raise unmet_need("stationary", what) from None
    yield from final_rows(m, {"spectral_radius": radius})
    each = None if law is None else exact.marginals(*law, agents, dim)
    for agent in (*m.trace.agent.tolist(), "average"):
        if each is None:
            values = [np.inf] * len(NAMES)
        elif agent == "average":
            values = compare_gaussians(each[2], each[3], select_law(target, agent))
        else:
            values = compare_gaussians(each[0][agent], each[1][agent], select_law(target, agent))
        numbers = {f"stationary_{name}": v for name, v in zip(NAMES, values, strict=True)}
        yield from series([m.iterations], str(agent), numbers, chance=False)


def _stationary_moments(m: Measurement) -> tuple[float, Moments | None]:
    """Return the spectral radius and the stationary moments, None if there are none.

    Raises ``NoLaw`` if the law is not known.
    """
    last, run = max(m.iterations - 1, 0), (m.sampler, m.problem, m.network)
    choices = read_choices(*run)
    if choices is not None:
        return choices(last).radius(), choices(last).stationary()
    update = update_of(*run)
    start = start_of(m, update)
    agents, dim = m.problem.agents, m.problem.dim
    noise = batch_noise(m)

    def errors(mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
        """Return the covariances of mini-batch gradient errors over a normal law of the state."""
        assert noise is not None
        return noise(*exact.marginals(mean, cov, agents, dim)[:2])

    step, count = compose_cycle(update, last)
    if noise is not None and count > 1:
        raise NoLaw("steps differ, and laws of several have no limit of mini-batches")
    radius = exact.spectral_radius(exact.restrict(step)[0].matrix) ** (1 / count)
    return radius, exact.limit(step, *start, None if noise is None else errors)


def read_choices(
    sampler: Any, problem: Any, network: Network, limit: float = CHOICES_LIMIT
) -> Callable[[int], Choices] | None:
    """Return the affine updates among which each iteration chooses at random.

    The result is a function of the iteration. None where nothing is chosen, where vectors may be
    lost, and where the positions or the state have more than limit entries: a choice holds a
    matrix for each edge. Raises ``NoLaw`` if the step is not affine, or takes turns.
    """
    if problem.agents * problem.dim > limit or not network.delivers_all:
        return None
    reader = StepReader(sampler, problem, network)
    if not reader.chooses or len(reader.start.offset) > limit:
        return None
    if (reader.cycle and reader.cycle[1] > 1) or batches_of(sampler):
        raise NoLaw("steps that choose at random, and take turns or mini-batches, have no limit")
    return lambda k: reader.read_step(k).choices


def compare_gaussians(mean: np.ndarray, cov: np.ndarray, target: Gaussian) -> list[float]:
    """Compare a normal law, mean (dim,) and cov (dim, dim), with a target by five numbers.

    They are W2; the trace of cov over the target's; the smallest and the largest ratio
    of variances over directions; and the distance of means in the target's standard deviations.
    """
    difference = mean - target.mean
    bias = np.sqrt(difference @ np.linalg.solve(target.cov, difference))
    root = np.linalg.inv(np.linalg.cholesky(target.cov))
    ratios = np.linalg.eigvalsh(root @ cov @ root.T)
    return [
        float(w2(mean, cov, target)),
        float(np.trace(cov) / np.trace(target.cov)),
        # Rounding may leave a tiny negative variance of a law that is a point.
        max(float(ratios[0]), 0.0),
        float(ratios[-1]),
        float(bias),
    ]
