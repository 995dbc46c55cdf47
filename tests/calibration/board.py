"""What the tests of calibration saw, as a table of rank histograms and as a figure."""

import csv
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy.stats import binom

from calibration.models import MODELS
from calibration.ranks import p_value
from calibration.settings import SLACK
from concord_studies.figures import style

BINS, FINE = 20, 100
AT = np.arange(1, 50) / 50
METHODS = ("exact law", "posterior", "SBC")
MODEL_COLORS = dict(zip(MODELS, (style.BLUE, style.GREEN, style.PURPLE), strict=True))
# The band is that of so many ranks; scaled by the root of their number, others differ by 3 %.
BAND_RANKS, BAND_DRAWS = 1000, 20_000
HEAD = ("method", "sampler", "line", "quantity", "tests", "ranks", "least_p")


@dataclass
class Seen:
    """The ranks of one quantity, pooled: how many in each bin, and the least p of a test."""

    tests: int = 0
    least: float = 1.0
    counts: np.ndarray = field(default_factory=lambda: np.zeros(FINE, dtype=int))

    def add(self, u: np.ndarray, slack: float) -> None:
        """Add the ranks of one test."""
        self.tests += 1
        self.least = min(self.least, p_value(u, slack))
        self.counts += np.histogram(u, FINE, (0.0, 1.0))[0]

    @property
    def difference(self) -> np.ndarray:
        """The share of ranks below u, less u, at AT."""
        step = FINE // (len(AT) + 1)
        below = np.cumsum(self.counts)[step - 1 : -1 : step]
        return below / self.counts.sum() - AT


class Board:
    """Ranks by method (or method and fault), sampler, line of the figure, and quantity."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.seen: dict[tuple[str, str, str, str], Seen] = {}

    def add(self, method: str, sampler: str, line: str, ranks: Mapping[str, np.ndarray]) -> None:
        """Note the ranks of one test, by quantity."""
        for quantity, u in ranks.items() if self.keep else ():
            key = method, sampler, line, quantity.partition(", ")[2] or quantity
            slack = 0.0 if method.startswith("exact law") else SLACK
            self.seen.setdefault(key, Seen()).add(u, slack)

    def write(self, path: Path) -> None:
        """Write the histograms as CSV, a row per quantity."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*HEAD, *(f"up_to_{(i + 1) / BINS:g}" for i in range(BINS))])
            for key, seen in self.seen.items():
                bins = seen.counts.reshape(BINS, -1).sum(axis=1)
                row = [*key, seen.tests, seen.counts.sum(), f"{seen.least:.3g}"]
                writer.writerow([*row, *bins])

    def lines(self, method: str, sampler: str | None = None) -> dict[tuple[str, str], Seen]:
        """Return what the figure shows of a method: by sampler and line."""
        shown = "distance" if method.startswith("exact law") else "density"
        return {
            (kind, line): seen
            for (m, kind, line, quantity), seen in self.seen.items()
            if m == method and quantity == shown and sampler in (None, kind)
        }

    @style.styled
    def draw(self, paths: Iterable[Path]) -> None:
        """Draw a row of panels for each method, a column for each sampler, and a row of faults.

        Ranks are within chance, and the bias that is allowed, except in the last row.
        """
        samplers = sorted({key[1] for key in self.seen if key[0] in METHODS})
        samplers.sort(key=lambda kind: -sum(bool(self.lines(method, kind)) for method in METHODS))
        faults = list(dict.fromkeys(key[0] for key in self.seen if key[0] not in METHODS))
        rows, columns = len(METHODS) + 1, max(len(samplers), len(faults))
        figure = Figure(figsize=(style.FULL, 1.1 * rows + 0.4), layout="constrained")
        table = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey="row")
        for axes in table.ravel():
            axes.set_visible(False)
        for row, method in zip(table, METHODS, strict=False):
            row[0].set_ylabel(f"{method}: $\\sqrt{{n}}\\,\\Delta$")
            for axes, sampler in zip(row, samplers, strict=False):
                self._within_chance(axes, method, self.lines(method, sampler))
        for axes, sampler in zip(table[0], samplers, strict=False):
            axes.set_title(style.name("sampler", sampler))
        table[-1, 0].set_ylabel("known fault: $\\Delta$")
        for axes, fault in zip(table[-1], faults, strict=False):
            axes.set_visible(True)
            axes.axhline(0, color="#dddddd", linewidth=2, zorder=0)
            for (_, line), seen in self.lines(fault).items():
                axes.plot(AT, seen.difference, **look(line))
            method, _, what = fault.partition(", ")
            title = [method, *textwrap.wrap(what, 13)]
            axes.set_title("\n".join(title), fontsize=6.5)
            axes.set_ylim(-0.5, 0.5)  # another network may be farther off
        style.legend_of(figure, LEGEND)
        style.save(figure, paths)

    def _within_chance(self, axes: Axes, method: str, lines: Mapping[Any, Seen]) -> None:
        if not lines:
            return
        axes.set_visible(True)
        axes.set_xticks([0, 0.5, 1], ["0", "$u$", "1"])
        low, high = band(1 - 0.05 / len(lines))
        axes.fill_between(AT, low, high, color="#dddddd", linewidth=0, zorder=0)
        if method != "exact law":
            slack = SLACK * np.sqrt(max(seen.counts.sum() for seen in lines.values()))
            for edge in (low - slack, high + slack):
                axes.plot(AT, edge, color=style.GRAY, linewidth=0.6, linestyle=":")
        for (_, line), seen in lines.items():
            axes.plot(AT, np.sqrt(seen.counts.sum()) * seen.difference, **look(line))


def look(line: str) -> dict[str, Any]:
    """Return color and dashes of a line, named "model, place, ..." or "network, gradients"."""
    first, second, *_ = [*line.split(", "), ""]
    dashed = second in ("average", "mini-batches")
    color = MODEL_COLORS.get(first, "#404040")
    return {"color": color, "linewidth": 0.8, "linestyle": "--" if dashed else "-"}


LEGEND: list[Any] = [
    Patch(color="#dddddd", label="chance (95 % for a panel)"),
    Line2D([], [], color=style.GRAY, linewidth=0.6, linestyle=":", label="chance and bias"),
    *(
        Line2D([], [], color=color, label=model.replace("_", " "))
        for model, color in MODEL_COLORS.items()
    ),
    Line2D([], [], color="#404040", label="agent 0; full gradients"),
    Line2D([], [], color="#404040", linestyle="--", label="average; mini-batches"),
]


@cache
def band(level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a band that holds root n times a whole ``difference`` with this probability.

    Its intervals of single points have one probability, which is simulated: Säilynoja, Bürkner,
    Vehtari 2022.
    """
    rng = np.random.default_rng(0)
    parts = np.diff([0.0, *AT, 1.0])
    counts = rng.multinomial(BAND_RANKS, parts, size=BAND_DRAWS)[:, :-1].cumsum(axis=1)
    k = np.arange(BAND_RANKS + 1)[:, None]
    tails = np.minimum(binom.cdf(k, BAND_RANKS, AT), binom.sf(k - 1, BAND_RANKS, AT))
    smallest = tails[counts, np.arange(len(AT))].min(axis=1)
    tail = np.quantile(smallest, 1 - level)
    low, high = (binom.ppf(p, BAND_RANKS, AT) / BAND_RANKS for p in (tail, 1 - tail))
    return np.sqrt(BAND_RANKS) * (low - AT), np.sqrt(BAND_RANKS) * (high - AT)
