"""Theorem 10 of gurbuzbalaban2021: its bound and conditions, beside the exact law it bounds."""

from collections.abc import Iterator

import numpy as np

from concord.laws import exact
from concord.laws.law import start_of, update_of
from concord.samplers.de_sghmc import DESGHMC
from concord_studies.metrics import Measurement, Row

from ..bounds import labels, law_of, setting, tell, told
from ..theory import theorem10

HOLD = (
    *("beta", "(4.9)", "(4.10), first bound", "(4.10), second bound"),
    *("Lemma 15, decay", "Lemma 15, step size"),
    *("connected graph", "step size", "strong convexity"),
)
METRICS = told("theorem10", "L", "mu", "rate", "1 - gamma eta", "c_5", "gamma_bar", *HOLD)
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
CONDITIONS = tuple(f"theorem10.{name}" for name in HOLD)
LABELS = labels("theorem10")


def rows(m: Measurement) -> Iterator[Row]:
    """Yield bound, exact mean W2, constants and conditions of Theorem 10; refuse other runs.

    c_5, which the paper does not state, is the smallest there is: the largest E|x^(k)|^2 or
    E|v^(k)|^2 of the exact law.
    """
    law, sampler = law_of(m, "theorem10", DESGHMC, "DE-SGHMC"), m.sampler
    assert isinstance(sampler, DESGHMC)
    steps = sampler.step_size.initial, sampler.friction
    found = theorem10(setting(m), *steps, largest_moment(m), m.trace.draw)
    yield from tell(m, "theorem10", law, found)


def largest_moment(m: Measurement) -> float:
    """Return the largest of E|x^(k)|^2 and E|v^(k)|^2 until the last iteration, and in the limit.

    Infinite where the law does not settle.
    """
    update = update_of(m.sampler, m.problem, m.network)
    start = start_of(m, update)
    step, size = update.at(0), m.problem.agents * m.problem.dim
    limit = exact.limit(step, *start)
    if limit is None:
        return float("inf")
    mean, cov = start
    largest = _moment(*limit, size)
    for _ in range(m.iterations + 1):
        largest = max(largest, _moment(mean, cov, size))
        mean, cov = step.apply(mean, cov)
    return largest


def _moment(mean: np.ndarray, cov: np.ndarray, size: int) -> float:
    """Return the larger of E|x|^2 and E|v|^2 from the moments of a state (x, v), x of ``size``."""
    squares = mean**2 + cov.diagonal()
    return float(max(squares[:size].sum(), squares[size:].sum()))
