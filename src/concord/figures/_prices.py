"""What x counts: iterations, or what the whole network has paid until then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from concord import results
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
# Label, unit and family of metrics of what x may count beside iterations.
PRICES = {
    "unicasts": ("vectors sent by the whole network (one per neighbor)", "", "messages"),
    "unicast_bytes": ("bytes sent by the whole network (a copy per neighbor)", "B", "messages"),
    "broadcasts": ("vectors sent by the whole network (one for all neighbors)", "", "messages"),
    "broadcast_bytes": (
        "bytes sent by the whole network (one copy for all neighbors)",
        "B",
        "messages",
    ),
    "gradients": ("gradients taken by the whole network", "", "gradients"),
    "seconds": ("simulated time", "s", "seconds"),
}


def reads(price: str, select: Mapping[str, Any] | None) -> list[Read]:
    """Return what runs must have for an x axis of ``Price``."""
    return [Read(price, dict(select or {}), ("network",))] if price in PRICES else []


def along(run: Measured, iterations: np.ndarray, price: str, where: str) -> np.ndarray:
    """Return where iterations are on the x axis."""
    if price not in PRICES:
        return iterations
    paid = results.series(run, price, "network", where, PRICES[price][-1])
    return np.interp(iterations, paid.iteration, paid.value)


def axis(panels: Sequence[Axes], price: str, scale: str) -> str:
    """Scale and number the x axes, whose limits are set, and return their label."""
    label, unit, _ = PRICES.get(price, ("iteration $k$", None, ""))
    for axes in panels:
        axes.set_xscale(scale)
        if unit is not None:
            axes.xaxis.set_major_formatter(EngFormatter(unit=unit, sep=" "))
        if scale == "log":
            style.sparse_log_axis(axes.xaxis)
    return label
