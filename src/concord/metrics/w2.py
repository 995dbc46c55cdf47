"""2-Wasserstein distance to the exact posterior of a Gaussian problem."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.errors import ConcordError
from concord.laws import exact
from concord.laws.gaussian import FLOORS, bootstrap_w2, w2, w2_floor
from concord.laws.intervals import LEVEL, REPLICATES
from concord.metrics import Measurement, Row, need

METRICS = ("w2", "w2_exact", "w2_floor")


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the distances of recorded agents and of the average.

    w2: of the Gaussian fitted to the chains, with a bootstrap interval over chains. w2_exact: of
    the exact law, where the sampler states it. w2_floor: what as many exact posterior draws show.
    """
    target = m.problem.posterior
    if target is None:
        raise ConcordError("metric w2 needs a problem with an exact Gaussian posterior; remove it")
    names, draws = positions(m)
    value, lo, hi = bootstrap_w2(draws, target, REPLICATES, m.stream("bootstrap"), LEVEL)
    for column, name in enumerate(names):
        for row, k in enumerate(m.trace.draw):
            yield Row(k, name, "w2", value[row, column], lo[row, column], hi[row, column])
    law = exact_law(m)
    if law is not None:
        distances = {
            str(agent): w2(law.mean[:, agent], law.cov[:, agent], target)
            for agent in m.trace.agent
            if "x" in m.trace
        }
        distances["average"] = w2(law.average_mean, law.average_cov, target)
        for name in names:
            for row, k in enumerate(law.iterations):
                yield Row(k, name, "w2_exact", distances[name][row], chance=False)
    floor = w2_floor(target, draws.shape[0], m.stream("floor"))
    yield Row(m.iterations, "network", "w2_floor", *floor, trials=FLOORS)


def exact_law(m: Measurement) -> exact.Law | None:
    """Return the exact law at the recorded iterations.

    None where the sampler states none, and beyond ``exact.SIZE_LIMIT``.
    """
    if not hasattr(m.sampler, "affine") or not hasattr(m.problem, "gram"):
        return None
    if m.problem.agents * m.problem.dim > exact.SIZE_LIMIT:
        return None
    update = m.sampler.affine(m.problem, m.topology, m.sampler_params)
    if update is None:
        return None
    agents, dim = m.problem.agents, m.problem.dim
    mean, cov = exact.initial(agents, dim, m.initial.moments(dim), *update.auxiliary)
    noise = None
    batch_size = getattr(m.sampler_params, "batch_size", None)
    if batch_size is not None:

        def noise(mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
            return m.problem.batch_noise_covariance(mean, cov, batch_size)

    return exact.propagate(
        update.at, mean, cov, m.iterations, m.trace.draw.tolist(), agents, dim, noise
    )


def positions(m: Measurement) -> tuple[list[str], np.ndarray]:
    """Return names and draws (chain, draw, name, dim) of recorded agents and average."""
    need("x" in m.trace or "x_average" in m.trace, "w2", "record.draws or record.average")
    names, draws = [], []
    if "x" in m.trace:
        names += m.agents
        draws.append(m.trace["x"])
    if "x_average" in m.trace:
        names.append("average")
        draws.append(m.trace["x_average"][:, :, None])
    return names, np.concatenate(draws, axis=2)
