"""Lemma 12 of gurbuzbalaban2021: the conditions under which DE-SGHMC's moments stay bounded."""

from collections.abc import Iterator

import numpy as np

from concord.problem import Quadratic
from concord.samplers.de_sghmc import DESGHMC
from concord_studies.metrics import Measurement, Row, conditions, lacking, with_values
from concord_studies.metrics._bounds import weights_spectrum
from concord_studies.theory import gurbuzbalaban2021

METRICS = with_values(
    *("lemma12.beta", "lemma12.(4.9)"),
    *("lemma12.(4.10), first bound", "lemma12.(4.10), second bound"),
)
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
CONDITIONS = ("lemma12.*",)


def rows(m: Measurement) -> Iterator[Row]:
    """Yield the value of every condition, and whether it holds (1) or not (0).

    A ConcordError if the run is not what the lemma speaks of.
    """
    sampler, batches = m.sampler, m.batches
    if (
        not isinstance(sampler, DESGHMC)
        or not isinstance(m.problem, Quadratic)
        or m.network.order != "simultaneous"
        or (spectrum := weights_spectrum(m)) is None
        or (batches.batch_scale, batches.batch_pool) != ("data", "all")
    ):
        raise lacking(
            "lemma12",
            "DE-SGHMC with simultaneous updates, a symmetric W and unbiased gradients on linear "
            "regression",
        )
    curvature = np.linalg.eigvalsh(m.problem.gram)
    found = gurbuzbalaban2021.lemma12(
        sampler.step_size.initial,
        sampler.friction,
        float(curvature.min()),
        float(curvature.max()),
        float(spectrum.min()),
    )
    return conditions(m, "lemma12", found)
