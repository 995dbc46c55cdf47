"""Draws of each agent for pictures: one chain's, beyond burn-in and thinned, of two parameters."""

from collections.abc import Iterator

from concord.errors import ConcordError
from concord_studies.metrics import Measurement, Row, series, yields
from concord_studies.transport import thin

CHAIN = 0
DRAWS = 1500


@yields("draw_[01]", records=("draws",))
def rows(m: Measurement) -> Iterator[Row]:
    """Yield draw_0 and draw_1, the two parameters of up to 1500 draws of each agent in chain 0.

    They are evenly spaced over the draws beyond burn-in. A ConcordError if dim is not 2.
    """
    x = m.trace["x"][CHAIN]
    if x.shape[-1] != 2:
        raise ConcordError(
            f"metric posterior_draws shows two parameters, not {x.shape[-1]}; remove it"
        )
    for row in thin(m.late, DRAWS):
        numbers = {f"draw_{d}": x[row, :, d] for d in range(2)}
        yield from series([m.trace.draw[row]], m.agents, numbers)
