"""Which of several is best over two labels, and by how much: a phase diagram.

The color is that of the one with the lowest score, darker the larger the ratio of the second's to
its own; what the second is is written in. What a researcher writes in a study's YAML::

    rows: problem.heterogeneity
    columns: topology
    metric: b2_by_gradients
    among: entry
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord.options import Options, Positive, Some
from concord_studies import selection
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._options import Names, Select
from concord_studies.figures._panels import Panels, listed, name_cells
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured


class Params(Options):
    """Options of maps that show which entry is best."""

    rows: Annotated[str, NamesLabel("label along the y axis")]
    columns: Annotated[str, NamesLabel("label along the x axis")]
    metric: Annotated[Some[str], "scores, a panel for each; the lowest is best"]
    among: Annotated[str, NamesLabel("label that tells apart what is compared")] = "entry"
    level: Annotated[int | str, "agent whose score it is"] = "worst"
    factor: Annotated[Positive, "ratio to the second from which the color is full"] = 4.0
    titles: Annotated[dict[str, str] | None, "titles of panels: {metric: text}"] = None
    xlabel: Annotated[str | None, "text of the x axis; none: the label"] = None
    ylabel: Annotated[str | None, "text of the y axis; none: the label"] = None
    select: Select = None
    names: Names = None


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs of the figure must have."""
    return list(params.metric)


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw a map of the best entry by rows and columns; white where no score is finite."""
    shown = selection.select(runs, params.select)
    titles = params.titles or {}
    rows, columns = (selection.distinct(shown, key) for key in (params.rows, params.columns))
    cells = listed((titles.get(metric, metric), shown) for metric in params.metric)
    panels = Panels(cells, 0.9 + 0.3 * len(rows))
    entries = selection.distinct(shown, params.among)
    looks = style.looks(params.among, entries)
    used: set[int] = set()
    for metric, ax in zip(params.metric, panels.axes, strict=True):
        scores = np.full((len(rows), len(columns), len(entries)), np.inf)
        for run in shown:
            place = [
                next(i for i, value in enumerate(values) if selection.same(value, own))
                for values, own in (
                    (rows, selection.lookup(run.run, params.rows)),
                    (columns, selection.lookup(run.run, params.columns)),
                    (entries, selection.lookup(run.run, params.among)),
                )
            ]
            found = run.values(metric, params.level)
            if len(found) and np.isfinite(found[-1]):
                scores[tuple(place)] = found[-1]
        order = np.argsort(scores, axis=-1, kind="stable")
        image = np.ones((len(rows), len(columns), 3))
        for r, c in np.ndindex(len(rows), len(columns)):
            best = order[r, c, 0]
            if not np.isfinite(scores[r, c, best]):
                continue
            used.add(int(best))
            own = scores[r, c, best]
            second = scores[r, c, order[r, c, 1]] if len(entries) > 1 else np.inf
            ratio = second / own if own > 0 else np.inf
            part = float(np.clip(np.log(ratio) / np.log(params.factor), 0, 1)) if ratio > 1 else 0.0
            color = style.mix(looks[best].color, "white", 0.35 + 0.65 * part)
            image[r, c] = to_rgb(color)
            text = f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}" if ratio < 1000 else ">999"
            dark = image[r, c] @ [0.3, 0.59, 0.11] < 0.5
            ax.text(
                c, r, text, ha="center", va="center", fontsize=6, color="white" if dark else "k"
            )
        ax.imshow(image, aspect="auto", origin="lower")
        name_cells(
            ax,
            [_short(params.columns, value, params) for value in columns],
            [_short(params.rows, value, params) for value in rows],
        )
    panels.label(params.xlabel or params.columns, params.ylabel or params.rows)
    handles = [
        Patch(color=looks[i].color, label=style.name(params.among, entries[i], params.names))
        for i in sorted(used)
    ]
    return panels.with_legend(handles)


def _short(key: str, value: object, params: Params) -> str:
    """Return the text of a tick for a value of a key, a number alone where it is one."""
    if isinstance(value, (int, float)) and str(value) not in (params.names or {}):
        return f"{value:g}"
    return style.name(key, value, params.names)
