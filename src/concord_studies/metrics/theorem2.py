"""Theorem 2 of gurbuzbalaban2021: its bound and constants, beside the exact law it bounds."""

from collections.abc import Iterator

from concord.samplers.de_sgld import DESGLD
from concord_studies.metrics import Measurement, Row
from concord_studies.metrics._bounds import labels, law_of, setting, tell, told
from concord_studies.theory.gurbuzbalaban2021 import theorem2

HOLD = ("connected graph", "step size", "strong convexity", "contraction", "decay")
METRICS = told(
    "theorem2",
    *("N", "d", "mu", "L", "sigma", "eta", "rate", "r", "D", "C1", "C1_bar"),
    *("lambda_2", "lambda_N", "gamma_bar", "lemma7_factor"),
    *("E|x0 - x*|^2", "E|x0|^2", "E|xbar0 - x_*|^2", "|grad F(x*)|"),
    *HOLD,
)
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
CONDITIONS = tuple(f"theorem2.{name}" for name in HOLD)
LABELS = labels("theorem2")


def rows(m: Measurement) -> Iterator[Row]:
    """Yield bound, exact mean W2, constants and conditions of Theorem 2; refuse other runs."""
    law, sampler = law_of(m, "theorem2", DESGLD, "DE-SGLD"), m.sampler
    assert isinstance(sampler, DESGLD)
    found = theorem2(setting(m), sampler.step_size.initial, m.trace.draw)
    yield from tell(m, "theorem2", law, found)
