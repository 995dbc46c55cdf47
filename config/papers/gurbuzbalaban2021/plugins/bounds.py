"""What Theorems 2 and 10 of gurbuzbalaban2021 share: where they apply, and their metrics."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from concord.laws.wasserstein import w2
from concord.networks.graph import as_dense
from concord.problem import Quadratic
from concord.sampling.initial import normal
from concord_studies.contracts import Label, SampledLaw
from concord_studies.metrics import Measurement, Row, final_rows, series, unmet_need

from .theory import Bound, Setting

EXACT_MEAN = {"w2_exact_mean": Label("exact W2, mean over the agents", "exact mean W2")}


def build_setting(m: Measurement, theorem: str, sampler: type[Any], name: str) -> Setting:
    """Return the potentials, spectrum and step of a run, or refuse one beyond the theorem."""
    start, problem = m.initial.params, m.problem
    if (
        not isinstance(m.sampler, sampler)
        or not m.sampler.step_size.constant
        or m.batches.batch_size is not None
        or m.network.order != "simultaneous"
        or (spectrum := weights_spectrum(m)) is None
        or not isinstance(start, normal.Params)
        or not isinstance(start.sd, float)
        or not isinstance(problem, Quadratic)
        or not isinstance(problem, SampledLaw)
        or m.law is None
    ):
        raise unmet_need(
            theorem,
            f"{name} with a constant step, full gradients, simultaneous updates and a symmetric W "
            "on linear regression, starting from N(mean, sd^2 I)",
        )
    return Setting(problem.gram, problem.shift, spectrum, start.mean, start.sd)


def weights_spectrum(m: Measurement) -> np.ndarray | None:
    """Return the eigenvalues of the weights W; None where W is not symmetric."""
    weights = as_dense(m.network.matrix(m.sampler.weights))  # type: ignore[attr-defined]
    return np.linalg.eigvalsh(weights) if (weights == weights.T).all() else None


def bound_rows(m: Measurement, theorem: str, found: Bound) -> Iterator[Row]:
    """Yield a theorem's bound and the exact mean W2 over iterations, constants and conditions.

    <theorem>_bound is the printed bound on (1/N) sum_i W2(law of x_i, exp(-sum_i f_i)), infinite
    where a condition fails; <theorem>_rederived the bound with the transient as its proof gives it;
    w2_exact_mean what both bound. The target is that of the potentials as sampled, which is the
    posterior if they have the prior once. <theorem>.<name> are the constants, and
    <theorem>.<condition> is 1 where a condition holds, 0 where it does not.
    """
    law, problem = m.law, m.problem
    assert law is not None and isinstance(problem, SampledLaw)
    curves = {
        "w2_exact_mean": w2(law.mean, law.cov, problem.sampled).mean(axis=1),
        f"{theorem}_bound": found.printed,
        f"{theorem}_rederived": found.rederived,
    }
    yield from series(m.trace.draw, "network", curves, chance=False)
    holds = {condition.name: float(condition.holds) for condition in found.conditions}
    numbers = (found.constants | holds).items()
    yield from final_rows(m, {f"{theorem}.{name}": value for name, value in numbers})
