"""Theorem 10 of gurbuzbalaban2021: its bound and conditions, beside the exact law it bounds."""

from collections.abc import Iterator

import numpy as np

from concord.laws import exact
from concord.laws.law import start_of, update_of
from concord.samplers.de_sghmc import DESGHMC
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row

from ..bounds import EXACT_MEAN, bound_rows, build_setting
from ..theory import theorem10

METRICS = "theorem10_bound", "theorem10_rederived", "w2_exact_mean", "theorem10.*"
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
HOLD = (
    *("beta", "(4.9)", "(4.10), first bound", "(4.10), second bound"),
    *("Lemma 15, decay", "Lemma 15, step size"),
    *("connected graph", "step size", "strong convexity"),
)
CONDITIONS = tuple(f"theorem10.{name}" for name in HOLD)
LABELS = EXACT_MEAN | {
    "theorem10_bound": Label("bound of Theorem 10", "bound"),
    "theorem10_rederived": Label(head="bound, rederived"),
}


def rows(m: Measurement) -> Iterator[Row]:
    """Yield bound, exact mean W2, constants and conditions of Theorem 10; refuse other runs.

    c_5, which the paper does not state, is the smallest there is: the largest E|x^(k)|^2 or
    E|v^(k)|^2 of the exact law.
    """
    setting, sampler = build_setting(m, "theorem10", DESGHMC, "DE-SGHMC"), m.sampler
    assert isinstance(sampler, DESGHMC)
    steps = sampler.step_size.initial, sampler.friction
    found = theorem10(setting, *steps, largest_moment(m), m.trace.draw)
    return bound_rows(m, "theorem10", found)


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
