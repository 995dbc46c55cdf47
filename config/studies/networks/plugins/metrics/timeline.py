"""One chain of the simulated clock, iteration by iteration: an illustration without intervals."""

from collections.abc import Iterator

from concord.contracts import dtype_of
from concord.sampling.trace import TIMES
from concord_studies.metrics import Measurement, Row, final_rows, series, yields


@yields(("ended", "waited", "sending"), network="clocked")
def rows(m: Measurement) -> Iterator[Row]:
    """Yield when the first chain's agents ended and waited for each step, and sending times.

    ended: when each agent had ended its last step. waited: how long it had waited until then.
    sending: how long a vector is on its way, of the network.
    """
    for metric, name in zip(("ended", "waited"), TIMES, strict=True):
        yield from series(m.trace.draw, m.agents, {metric: m.trace[name][0]})
    conditions = m.network.conditions
    size = conditions.size(m.problem.dim, dtype_of(m.problem).itemsize)
    seconds = float(conditions.link.seconds(size)) if conditions.link else 0.0
    yield from final_rows(m, {"sending": seconds})
