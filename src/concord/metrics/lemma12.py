"""Lemma 12 of gurbuzbalaban2021: the conditions under which DE-SGHMC's moments stay bounded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concord.laws.theory import gurbuzbalaban2021
from concord.metrics import Measurement, Row, need

METRICS = ("lemma12.*",)


def rows(m: Measurement) -> Iterator[Row]:
    """Yield for every condition its value and whether it holds (1) or not (0)."""
    named = hasattr(m.sampler_params, "friction") and hasattr(m.problem, "gram")
    need(named, "lemma12", "DE-SGHMC on linear regression")
    curvature = np.linalg.eigvalsh(m.problem.gram)
    conditions = gurbuzbalaban2021.lemma12(
        m.sampler_params.step_size.initial,
        m.sampler_params.friction,
        float(curvature.min()),
        float(curvature.max()),
        float(np.linalg.eigvalsh(m.topology.metropolis().dense()).min()),
    )
    for condition in conditions:
        yield Row(
            m.iterations,
            "network",
            f"lemma12.{condition.name}.value",
            condition.value,
            chance=False,
        )
        yield Row(
            m.iterations, "network", f"lemma12.{condition.name}", condition.holds, chance=False
        )
