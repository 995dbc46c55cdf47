"""How often, and how far, draws lie outside of the set that a sampler is pulled to.

And how far the law that it is said to sample, the constraint's envelope, is from the posterior.
"""

from collections.abc import Iterator

import numpy as np

from concord.distances import positions
from concord.laws.intervals import mean_interval
from concord.samplers.de_psgld import DEPSGLD
from concord_studies.contracts import Label
from concord_studies.intervals import wilson
from concord_studies.metrics import Measurement, Row, final_rows, series, unmet_need, yields

from ..problems import polynomial

LEVELS = 100_000


@yields(
    ("outside_share", "outside_distance", "envelope_w2"),
    labels={
        "outside_share": Label("share of draws outside of the set", "outside"),
        "outside_distance": Label("mean distance of draws from the set", "distance"),
        "envelope_w2": Label(
            "W2 from the constraint's envelope to the posterior", "W2 of the envelope"
        ),
    },
)
def rows(m: Measurement) -> Iterator[Row]:
    """Yield the share of draws outside of the constraint set, and their distance from the set.

    Draws inside have distance 0, and one that is not finite has neither. envelope_w2: of problems
    on an interval, exact.
    """
    if not isinstance(m.sampler, DEPSGLD):
        raise unmet_need("constraint", "a sampler with a constraint")
    params = m.sampler
    if isinstance(m.problem, polynomial.Polynomial):
        levels = (np.arange(LEVELS) + 0.5) / LEVELS
        laws = m.problem.reference, polynomial.soften(polynomial.POTENTIAL, params.smoothing)
        first, second = (law.quantiles(levels) for law in laws)
        yield from final_rows(m, {"envelope_w2": float(np.sqrt(((first - second) ** 2).mean()))})
    names, draws = positions(m.trace)
    with np.errstate(invalid="ignore"):
        far = np.linalg.norm(draws - params.constraint.project(draws), axis=-1)
        out = np.where(np.isfinite(far), far > 0, np.nan)
    share = out.mean(axis=0)
    with np.errstate(invalid="ignore"):
        ends = np.vectorize(wilson)(share, len(out))
    numbers = {"outside_share": (share, *ends), "outside_distance": mean_interval(far)}
    yield from series(m.trace.draw, names, numbers)
