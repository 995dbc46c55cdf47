"""The draws themselves, of problems with one dimension, for pictures of distributions."""

from collections.abc import Iterator

import numpy as np

from concord.errors import ConcordError
from concord_studies.metrics import Measurement, Row, final_rows, series, yields


@yields(("draw", "law_mean", "law_sd", "posterior_mean", "posterior_sd"), records=("draws",))
def rows(m: Measurement) -> Iterator[Row]:
    """Yield every recorded draw, one row per chain, and the exact laws to compare draws with.

    draw: positions of recorded agents, chains in order. law_mean, law_sd: of the exact law, where
    the sampler states it. posterior_mean, posterior_sd: of the exact posterior.
    """
    draws, target = m.trace["x"], m.problem.posterior
    if draws.shape[-1] != 1 or target is None:
        raise ConcordError(
            f"metric draws needs a Gaussian problem of one dimension, not {draws.shape[-1]}; "
            "set the problem's dim to 1, or remove the metric"
        )
    law = m.law
    for row, k in enumerate(m.trace.draw):
        for column, agent in enumerate(m.agents):
            for value in draws[:, row, column, 0]:
                yield Row(k, agent, "draw", value)
            if law is not None:
                place = row, m.trace.agent[column]
                sd = np.sqrt(max(float(law.cov[place][0, 0]), 0.0))
                numbers = {"law_mean": law.mean[place][0], "law_sd": sd}
                yield from series([k], agent, numbers, chance=False)
    sd = np.sqrt(target.cov[0, 0])
    yield from final_rows(m, {"posterior_mean": target.mean[0], "posterior_sd": sd})
