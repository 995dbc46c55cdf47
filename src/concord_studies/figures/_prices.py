"""What x counts: iterations, or what the whole network has paid until then."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from concord.errors import ConcordError, nearest
from concord_studies import metrics, results
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.results import Measured

ITERATION = "iteration"
Price = Annotated[
    str,
    "what x counts: iterations, or what the whole network has paid until then: vectors or bytes, a "
    "copy for every neighbor (unicasts, unicast_bytes) or one for all that hear it (broadcasts, "
    "broadcast_bytes), gradients of all agents, seconds on the network's clock, or another metric "
    "that declares an axis",
]


def reads(price: str, select: Mapping[str, Any]) -> list[Read]:
    """Return the metrics that runs must have for an x axis that shows a price."""
    if price == ITERATION:
        return []
    if price not in metrics.prices():
        known = [ITERATION, *metrics.prices()]
        raise ConcordError(f"x: {price!r} is no price; {nearest(price, known)}")
    return [Read(price, select, ("network",))]


def along(run: Measured, iterations: np.ndarray, price: str) -> np.ndarray:
    """Return the positions of iterations on an x axis that shows iterations or a price."""
    if price == ITERATION:
        return iterations
    paid = results.series(run, price, "network")
    return np.interp(iterations, paid.iteration, paid.value)


def axis(panels: Sequence[Axes], price: str, scale: str) -> str:
    """Scale the x axes of panels and number their ticks, and return their label."""
    paid = metrics.prices().get(price)
    for axes in panels:
        axes.set_xscale(scale)
        if paid is not None:
            axes.xaxis.set_major_formatter(EngFormatter(unit=paid.unit, sep=" "))
        if scale == "log":
            style.sparse_log_axis(axes.xaxis)
    return "iteration $k$" if paid is None else paid.axis
