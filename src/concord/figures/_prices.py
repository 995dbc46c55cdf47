"""What x counts: iterations, or what the whole network has paid until then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from concord import metrics, results
from concord.contracts import Read
from concord.figures import style
from concord.results import Measured

Price = Annotated[
    Literal[
        "iteration",
        "unicasts",
        "unicast_bytes",
        "broadcasts",
        "broadcast_bytes",
        "gradients",
        "seconds",
    ],
    "what x counts: iterations, or what the whole network has paid until then: vectors or bytes, a "
    "copy for every neighbor (unicast) or one for all that hear it (broadcast), gradients of all "
    "agents, or seconds on the network's clock",
]


def reads(price: str, select: Mapping[str, Any] | None) -> list[Read]:
    """Return what runs must have for an x axis of ``Price``."""
    return [Read(price, dict(select or {}), ("network",))] if price in metrics.prices() else []


def along(run: Measured, iterations: np.ndarray, price: str, where: str) -> np.ndarray:
    """Return where iterations are on the x axis."""
    if price not in metrics.prices():
        return iterations
    paid = results.series(run, price, "network", where, metrics.families(price)[0])
    return np.interp(iterations, paid.iteration, paid.value)


def axis(panels: Sequence[Axes], price: str, scale: str) -> str:
    """Scale and number the x axes, whose limits are set, and return their label."""
    paid = metrics.prices().get(price)
    for axes in panels:
        axes.set_xscale(scale)
        if paid is not None:
            axes.xaxis.set_major_formatter(EngFormatter(unit=paid.unit, sep=" "))
        if scale == "log":
            style.sparse_log_axis(axes.xaxis)
    return "iteration $k$" if paid is None else paid.axis
