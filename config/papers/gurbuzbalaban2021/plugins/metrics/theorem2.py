"""Theorem 2 of gurbuzbalaban2021: its bound and constants, beside the exact law it bounds."""

from collections.abc import Iterator

from concord.samplers.de_sgld import DESGLD
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row

from ..bounds import EXACT_MEAN, bound_rows, build_setting
from ..theory import theorem2

METRICS = "theorem2_bound", "theorem2_rederived", "w2_exact_mean", "theorem2.*"
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
HOLD = ("connected graph", "step size", "strong convexity", "contraction", "decay")
CONDITIONS = tuple(f"theorem2.{name}" for name in HOLD)
LABELS = EXACT_MEAN | {
    "theorem2_bound": Label("bound of Theorem 2", "bound"),
    "theorem2_rederived": Label(head="bound, rederived"),
}


def rows(m: Measurement) -> Iterator[Row]:
    """Yield bound, exact mean W2, constants and conditions of Theorem 2; refuse other runs."""
    setting = build_setting(m, "theorem2", DESGLD, "DE-SGLD")
    step = m.sampler.step_size.initial  # type: ignore[attr-defined]
    return bound_rows(m, "theorem2", theorem2(setting, step, m.trace.draw))
