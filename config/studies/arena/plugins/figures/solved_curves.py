"""What share of tasks and targets a sampler has solved, against what it has paid.

A step for each (task, target) at the price from which the score stays at the target or below, over
all of them: what is not solved within the budget, diverged or does not apply counts as unsolved.
What a researcher writes in a study's YAML::

    prices: [gradients, bytes]
    targets: [1, 0.1, 0.01]
"""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from matplotlib.figure import Figure

from concord.options import Options, Positive, Some
from concord_studies import scores, selection
from concord_studies.contracts import PRICES, Read
from concord_studies.figures import style
from concord_studies.figures._axes import End, label_ends, label_log_axis
from concord_studies.figures.panels import Names, Panels, arrange_panels
from concord_studies.results import Measured

BEST = 5  # named and colored
LABELS = {name: price.axis for name, price in PRICES.items()}


class Params(Options):
    """Options of curves of the share of tasks and targets solved against the price paid."""

    prices: Annotated[Some[str], "prices, a panel for each"]
    targets: Annotated[Some[Positive], "targets of the score"]
    names: Names = None


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs of the figure must have."""
    return [f"{price}_to_{target:g}" for price in params.prices for target in params.targets]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the share of tasks and targets solved against the price, a panel for each price.

    The five that have solved most, and whoever leads at some price, are named at their ends; the
    others are gray.
    """
    shown = selection.select(runs, None)
    cells = arrange_panels((f"by {price}", shown) for price in params.prices)
    panels = Panels(cells, 2.5 if len(cells) == 1 else 3.0, width="full")
    groups = selection.split(shown, "entry")
    names = [style.name("entry", value, params.names) for value, _ in groups]
    looks = style.looks("entry", [value for value, _ in groups])
    ends = []
    for price, ax in zip(params.prices, panels.axes, strict=True):
        paid = [_read_prices(price, params, entry_runs) for _, entry_runs in groups]
        # One sampler's data sets are all samplers': what does not apply is unsolved on each.
        sets = max((len(values) for each in paid for values in each), default=1) or 1
        total = [max(len(each) * sets, 1) for each in paid]
        solved = [np.sort(np.concatenate(each)) for each in paid]
        solved = [values[np.isfinite(values)] for values in solved]
        finite = np.concatenate(solved)
        low, high = (finite.min(), finite.max()) if len(finite) else (1.0, 10.0)
        last = [len(values) / count for values, count in zip(solved, total, strict=True)]
        order = np.argsort(last, kind="stable")[::-1]
        along = np.geomspace(low, high, 200)
        counts = [np.searchsorted(solved[place], along, "right") / total[place] for place in order]
        leaders = np.argmax(counts, axis=0)
        best = {*order[:BEST].tolist(), *order[leaders].tolist()}
        for place, (look, values) in enumerate(zip(looks, solved, strict=True)):
            share = np.arange(len(values) + 1) / total[place]
            color, width = (look.color, 1.3) if place in best else (style.MUTED, 0.7)
            x = np.concatenate([[low / 1.1], values, [high * 1.1]])
            line: dict[str, Any] = {"drawstyle": "steps-post", "color": color, "lw": width}
            ax.plot(x, np.append(share, share[-1]), zorder=2 + (place in best), **line)
        ax.set(xscale="log", xlim=(low / 1.1, high * 1.1), xlabel=LABELS.get(price, price))
        label_log_axis(ax.xaxis)
        ends.append([End(names[i], looks[i].color, high * 1.1, last[i]) for i in sorted(best)])
    highest = max(0.1, *(end.y for each in ends for end in each))
    ylabel = "share of tasks and targets solved"
    panels.axes[0].set(ylim=(0, min(1, 1.1 * highest)), ylabel=ylabel)
    for each, ax in zip(ends, panels.axes, strict=True):
        label_ends(ax, each)
    return panels.figure


def _read_prices(price: str, params: Params, runs: Sequence[Measured]) -> list[np.ndarray]:
    """Return, for each run and target, the price until it was reached, (data sets,)."""
    metrics = [f"{price}_to_{target:g}" for target in params.targets]
    return [scores.read_scores(run, metric, "worst") for run in runs for metric in metrics]
