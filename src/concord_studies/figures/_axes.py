"""Axes: what x counts, ticks of log scales, and marks at the edges of a panel."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.axis import Axis

from concord_studies import metrics, results
from concord_studies.figures import style
from concord_studies.results import Measured

EDGE = 0.93  # of a panel: beyond it a line ends at the right edge
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
    """Write the numbers of a panel's x axis with the unit of its price, such as 2 kB.

    Iterations are whole numbers.
    """
    if price == ITERATION and axes.get_xscale() == "linear":
        axes.locator_params(axis="x", integer=True)
    if (paid := metrics.prices().get(price)) is not None:
        axes.xaxis.set_major_formatter(ticker.EngFormatter(unit=paid.unit, sep=" "))


def label_log_axis(axis: Axis) -> None:
    """Label a log axis, with its limits set, at decades; 1 and 3, or 1, 2 and 5 of each if few."""
    low, high = sorted(axis.get_view_interval())
    if not 0 < low < high:
        return
    ends = np.log10([low, high])
    powers = np.arange(np.floor(ends[0]), np.ceil(ends[1]) + 1)
    for parts in ((1,), (1, 3), (1, 2, 5), range(1, 10)):
        ticks = np.sort(np.outer(10.0**powers, parts).ravel())
        ticks = ticks[(ticks >= low * 0.999) & (ticks <= high * 1.001)]
        if len(ticks) > 1:
            break
    else:  # less than a decade
        ticks = np.asarray(ticker.MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low, high))
    ticks = ticks[:: -(-len(ticks) // 6)]  # a panel has room for six labels
    plain = low >= 1e-4 and high <= 1e5
    axis.set_major_locator(ticker.FixedLocator(ticks.tolist()))
    axis.set_major_formatter(
        ticker.FuncFormatter(lambda value, _: f"{value:g}" if plain else _format_power(value))
    )
    if isinstance(axis.get_minor_locator(), ticker.LogLocator):
        axis.set_minor_locator(ticker.LogLocator(subs=range(2, 10), numticks=20))
    axis.set_minor_formatter(ticker.NullFormatter())


def _format_power(value: float) -> str:
    """Return a number in powers of ten, such as 10^-4 or 3 x 10^-4."""
    digits, _, power = f"{value:.1e}".partition("e")
    factor = "" if float(digits) == 1 else rf"{float(digits):g}\times "
    return rf"${factor}10^{{{int(power)}}}$"


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


class End(NamedTuple):
    """What is written at the end of a line: its text and color, and the line's last point."""

    text: str
    color: str
    x: float
    y: float


def label_ends(axes: Axes, ends: Sequence[End]) -> None:
    """Write names and last values where lines end, beside each other without overlaps.

    They are at the right edge of a panel, or right of the last points of lines that end before it.
    Lines that end left of the panel have none.
    """
    inside = axes.transData + axes.transAxes.inverted()
    placed = [(float(inside.transform((end.x, end.y))[0]), end) for end in ends]
    placed = sorted((pair for pair in placed if pair[0] >= 0), key=lambda pair: pair[0])
    places = [place for place, _ in placed]
    groups: dict[float, list[End]] = {}
    for place, end in placed:
        near = next((x for x in groups if place - x < 0.1), place)  # room for four digits
        groups.setdefault(1.02 if place > EDGE else near, []).append(end)
    for place, group in groups.items():
        look: dict[str, Any] = {
            "xycoords": "axes fraction",
            "va": "center",
            "fontsize": style.SMALL,
        }
        look |= {"bbox": style.PLATE, "zorder": 4} if place < EDGE else {}
        x = place if place > 1 else max(p for p in places if p - place < 0.1) + 0.02
        for end, y in zip(group, _spread(axes, [end.y for end in group]), strict=True):
            axes.annotate(end.text, (x, y), **look, color=end.color)


def _spread(axes: Axes, values: Sequence[float]) -> np.ndarray:
    """Return heights of lines of text, in parts of a panel, that are nearest to y values."""
    places = np.array([axes.transData.transform((1, y))[1] for y in values])
    height = style.SMALL * 1.25 * axes.get_figure(root=True).dpi / 72  # type: ignore[union-attr]
    order, bottom, top = np.argsort(places), axes.bbox.y0, axes.bbox.y1
    above = height * np.arange(len(order))  # what names below a name need
    blocks: list[list[float]] = []  # of names that touch: scipy's regression loads for 0.3 s
    for place in (places[order] - above).tolist():
        blocks.append([place])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [[*blocks[-2], *blocks[-1]]]
    spread = np.concatenate([np.full(len(block), np.mean(block)) for block in blocks])
    spread = spread.clip(bottom, top - height * (len(order) - 1)) + above
    heights = np.empty(len(order))
    heights[order] = (spread - bottom) / (top - bottom)
    return heights
