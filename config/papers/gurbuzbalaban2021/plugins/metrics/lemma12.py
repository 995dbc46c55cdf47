"""Lemma 12 of gurbuzbalaban2021: the conditions under which DE-SGHMC's moments stay bounded."""

from collections.abc import Iterator

import numpy as np

from concord.problem import Quadratic
from concord.samplers.de_sghmc import DESGHMC
from concord_studies.contracts import Label
from concord_studies.metrics import Measurement, Row, unmet_need
from concord_studies.metrics._theorems import condition_rows

from .. import theory
from ..bounds import weights_spectrum

METRICS = ("lemma12.*",)
EXACT = METRICS
NETWORK = "perfect"  # it speaks of networks on which nothing is lost
CONDITIONS = METRICS
LABELS = {
    "lemma12.beta": Label(head="beta = 1 - gamma eta in [0, 1)"),
    "lemma12.(4.9)": Label(head="(4.9), eta^2 at most"),
    "lemma12.(4.10), first bound": Label(head="(4.10), beta at most (first bound)"),
    "lemma12.(4.10), second bound": Label(head="(4.10), beta at most (second bound)"),
}


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
        raise unmet_need(
            "lemma12",
            "DE-SGHMC with simultaneous updates, a symmetric W and unbiased gradients on linear "
            "regression",
        )
    mu, smooth = np.linalg.eigvalsh(m.problem.gram)[:, [0, -1]].T
    steps = sampler.step_size.initial, sampler.friction
    least = float(mu.min()), float(smooth.max()), float(spectrum.min())
    return condition_rows(m, "lemma12", theory.lemma12(*steps, *least))
