"""Axes: what x counts, ticks of log scales, and marks at the edges of a panel."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter, LogLocator, NullFormatter

from concord_studies import metrics, results
from concord_studies.figures import style
from concord_studies.results import Measured

ITERATION, SHARE = "iteration", "share"
Price = Annotated[
    str,
    "what x counts: iteration; share, of iterations, with values in rising order; or what the "
    "whole network has paid until then: vectors or bytes, a copy for every neighbor (unicasts, "
    "unicast_bytes) or one for all that hear it (broadcasts, broadcast_bytes), gradients of all "
    "agents, seconds on the network's clock, or another metric of the network",
]


def place_iterations(run: Measured, iterations: np.ndarray, price: str) -> np.ndarray:
    """Return the places of a run's iterations on an x axis, in an array of the same shape.

    price: what the axis counts: "iteration" or "share" (iterations come out as they are), or a
    metric such as "bytes", of which the network's value at each iteration comes out.
    """
    if price in (ITERATION, SHARE):
        return iterations
    paid = results.series(run, price, "network")
    return np.interp(iterations, paid.iteration, paid.value)


def name_price(price: str) -> str:
    """Return the label of an x axis that shows iterations or a price."""
    named = {ITERATION: "iteration $k$", SHARE: "share of iterations"}
    named |= {name: paid.axis for name, paid in metrics.prices().items()}
    return named.get(price, price.replace("_", " "))


def number_axis(axes: Axes, price: str) -> None:
    """Write the numbers of a panel's x axis with the unit of its price, such as 2 kB."""
    if (paid := metrics.prices().get(price)) is not None:
        axes.xaxis.set_major_formatter(EngFormatter(unit=paid.unit, sep=" "))


def label_log_axis(axis: Axis, end: float | None = None) -> None:
    """Label a log axis at three ticks or more, of which one is near the value ``end``.

    axis: an x or y axis with its limits set; ticks are at decades, or at 1, 2 and 5 (1 and 3) of
    each where there are few.
    end: a value that readers look up, such as the lowest at the end of a run.
    """
    low, high = sorted(axis.get_view_interval())
    if not 0 < low < high:
        return
    ends = np.log10([low, high])
    powers = np.arange(np.floor(ends[0]), np.ceil(ends[1]) + 1)
    least = 2 if isinstance(axis, XAxis) else 3  # numbers side by side need more room
    for parts in ((1,), (1, 3), (1, 2, 5), np.arange(1, 10), np.arange(10, 100) / 10):
        ticks = np.sort(np.outer(10.0**powers, parts).ravel())
        ticks = ticks[(ticks >= low * 0.999) & (ticks <= high * 1.001)]
        if len(ticks) >= least:
            break
    ticks = ticks[:: -(-len(ticks) // 6)]  # a panel has room for six labels
    if end is not None and (abs(np.log10(ticks / end)) > 0.09 * np.ptp(ends)).all():
        ticks = np.sort([*ticks, float(f"{end:.2g}")])
    plain = low >= 1e-4 and high <= 1e5
    axis.set_major_locator(FixedLocator(ticks.tolist()))
    axis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:g}" if plain else _format_power(value))
    )
    if isinstance(axis.get_minor_locator(), LogLocator):
        axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=20))
    axis.set_minor_formatter(NullFormatter())


def _format_power(value: float) -> str:
    """Return a number in powers of ten, such as 10^-4 or 3 x 10^-4."""
    digits, _, power = f"{value:.1e}".partition("e")
    factor = "" if float(digits) == 1 else rf"{float(digits):g}\times "
    return rf"${factor}10^{{{int(power)}}}$"


def mark_edge(axes: Axes, value: float, text: str, place: int = 0) -> None:
    """Mark a y value beyond a panel's limits with an arrow at the edge, a text and the value.

    place: how many such marks the edge has to the left of this one.
    """
    down = value < axes.get_ylim()[0]
    arrow: Any = {"arrowstyle": "->", "linewidth": 0.7, "color": style.NOTE, "shrinkA": 0}
    look: Any = {"fontsize": style.SMALL, "color": style.NOTE, "bbox": style.PLATE, "zorder": 5}
    look |= {"va": "bottom" if down else "top", "in_layout": False, "arrowprops": arrow}
    x, edge, inside = 0.03 + 0.4 * place, 0.0 if down else 1.0, 0.06 if down else 0.94
    text, fraction = f"{text} {style.number(float(f'{value:.2g}'))}", "axes fraction"
    axes.annotate(text, (x, edge), (x + 0.03, inside), fraction, fraction, **look)


def mark_printed(axes: Axes, values: Sequence[float]) -> None:
    """Mark printed numbers with hairlines that end outside the right edge of a panel."""
    low, high = axes.get_ylim()
    transform = axes.get_yaxis_transform()
    look: dict[str, Any] = {**style.PRINTED, "clip_on": False, "label": "_printed", "zorder": 1.8}
    note: dict[str, Any] = {"va": "center_baseline", "fontsize": style.SMALL}
    for value in values:
        if low <= value <= high:
            axes.plot([0.0, 1.03], [value] * 2, transform=transform, **look)
            axes.annotate(f"{value:g}", (1.04, value), xycoords=transform, **note)


def label_ends(axes: Axes, ends: Sequence[tuple[str, str, float]]) -> None:
    """Write the names of lines at the right edge, beside their last values, without overlaps.

    ends: text, color and last y value of each line.
    """
    from scipy.optimize import isotonic_regression  # most of a second

    if not ends:
        return
    places = np.array([axes.transData.transform((1, y))[1] for _, _, y in ends])
    height = style.SMALL * 1.25 * axes.get_figure(root=True).dpi / 72  # type: ignore[union-attr]
    order, bottom, top = np.argsort(places), axes.bbox.y0, axes.bbox.y1
    above = height * np.arange(len(order))  # what names below a name need
    spread = isotonic_regression(places[order] - above).x
    spread = spread.clip(bottom, top - height * (len(order) - 1)) + above
    for index, y in zip(order, (spread - bottom) / (top - bottom), strict=True):
        text, color, _ = ends[index]
        look: Any = {"xycoords": "axes fraction", "va": "center", "fontsize": style.SMALL}
        axes.annotate(text, (1.02, y), **look, color=color)
