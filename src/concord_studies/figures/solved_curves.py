"""What share of tasks and targets a sampler has solved, against what it has paid.

A step for each (task, target) at the price from which the score stays at the target or below, over
all of them: what is not solved within the budget, diverged or does not apply counts as unsolved.
What a researcher writes in a study's YAML::

    prices: [gradients, bytes]
    targets: [1, 0.1, 0.01]
    lines: entry
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from concord.options import Options, Positive, Some
from concord_studies import scores, selection
from concord_studies.contracts import PRICES, Read
from concord_studies.figures import style
from concord_studies.figures._options import Names, Select
from concord_studies.figures._panels import Panels, listed
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured

LABELS = {name: price.axis for name, price in PRICES.items()}


class Params(Options):
    """Options of curves of the share of tasks and targets solved against the price paid."""

    prices: Annotated[Some[str], "prices, a panel for each"]
    targets: Annotated[Some[Positive], "targets of the score"]
    lines: Annotated[str, NamesLabel("label that colors tell apart")] = "entry"
    level: Annotated[str, "agent whose score it is: worst, average or pooled"] = "worst"
    select: Select = None
    names: Names = None


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs of the figure must have."""
    return [f"{price}_to_{target:g}" for price in params.prices for target in params.targets]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the share of tasks and targets solved against the price, a panel for each price."""
    shown = selection.select(runs, params.select)
    panels = Panels(listed(("", shown) for _ in params.prices), 2.5)
    groups = selection.split(shown, params.lines)
    looks = style.looks(params.lines, [value for value, _ in groups])
    top = 0.1
    for number, (price, ax) in enumerate(zip(params.prices, panels.axes, strict=True)):
        found = [_prices(price, params, own) for _, own in groups]
        # One sampler's data sets are all samplers': what does not apply is unsolved on each.
        most = max(max((sets for _, sets in numbers), default=1) for numbers in found) or 1
        paid = np.concatenate([values for numbers in found for values, _ in numbers])
        finite = paid[np.isfinite(paid)]
        low, high = (finite.min(), finite.max()) if len(finite) else (1.0, 10.0)
        for look, numbers in zip(looks, found, strict=True):
            total = len(numbers) * most
            solved = np.sort(np.concatenate([v[np.isfinite(v)] for v, _ in numbers]))
            top = max(top, len(solved) / len(numbers) / most)
            x = np.concatenate([[low / 1.1], solved, [high * 1.1]])
            share = np.arange(len(solved) + 1) / max(total, 1)
            marked = np.unique(np.linspace(0, len(solved), 6).astype(int))[1:]
            ax.plot(
                x, np.append(share, share[-1]), drawstyle="steps-post", lw=1.1, ms=3,
                markevery=marked.tolist(), **look.line,
            )  # fmt: skip
        ax.set_xscale("log")
        ax.set_xlabel(LABELS.get(price, price))
        ax.set_title(style.panel_title(number, f"by {price}", len(panels.axes)), loc="left")
        ax.set_xlim(low / 1.1, high * 1.1)
    panels.axes[0].set_ylim(0, min(1, 1.1 * top))  # of all of them
    panels.axes[0].set_ylabel("share of tasks and targets solved")
    handles = [
        style.entry(style.name(params.lines, value, params.names), ms=3, **look.line)
        for (value, _), look in zip(groups, looks, strict=True)
    ]
    return panels.with_legend(handles)


def _prices(price: str, params: Params, runs: Sequence[Measured]) -> list[tuple[np.ndarray, int]]:
    """Return, for each run and target, the prices paid on its data sets, and their number."""
    metrics = [f"{price}_to_{target:g}" for target in params.targets]
    found = [scores.of_sets(run, metric, params.level) for run in runs for metric in metrics]
    return [(values, len(values)) for values in found]
