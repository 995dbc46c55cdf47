"""Maps of the sampler with the lowest score, and of how many times larger the second's is.

Over two labels of the runs, ``rows`` and ``columns``, with a panel for each metric. The color is
that of the best one; the cell has its code, by which the legend names it. Hatched: no score is
finite. What a researcher writes in a study's YAML::

    { rows: zeta, columns: topology, metric: [b2_by_gradients, b2_by_bytes] }
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord.options import Options, Some
from concord_studies import selection, words
from concord_studies.figures import style
from concord_studies.figures._maps import CellMap, draw_maps, explain_hatches
from concord_studies.figures.panels import Names
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured

from ..formats import format_ratio, index_runs


class Params(Options):
    """Options of a map of the best sampler; see the module's text for an example."""

    metric: Annotated[Some[str], "metrics, a panel for each"]
    rows: Annotated[str, NamesLabel("label along the y axis")]
    columns: Annotated[str, NamesLabel("label along the x axis")]
    titles: Annotated[dict[str, str], "titles of panels: {metric: text}"] = {}  # noqa: RUF012
    xlabel: Annotated[str | None, "text of the x axis; none: the label"] = None
    ylabel: Annotated[str | None, "text of the y axis; none: the label"] = None
    names: Names = None


def reads(params: Params) -> Sequence[str]:
    """Return the metrics that some of the figure's runs must have."""
    return params.metric


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw maps that name the entry with the lowest score, a panel for each metric."""
    maps, handles = _map_best(params, runs)
    panels = draw_maps(maps, runs, 1.2 + 0.3 * len(maps[0].rows), upwards=True)
    axes = words.axis(params.columns), words.axis(params.rows)
    panels.label(params.xlabel or axes[0], params.ylabel or axes[1])
    return panels.with_legend([*handles, *explain_hatches(maps, "no finite score")])


def _map_best(params: Params, runs: Sequence[Measured]) -> tuple[list[CellMap], list[Artist]]:
    """Return a map per metric that names the entry with the lowest score, and legend entries."""
    keys = (params.rows, params.columns, "entry")
    values = [selection.distinct(runs, key) for key in keys]
    looks = style.looks("entry", values[2])
    names = [style.name("entry", entry, params.names) for entry in values[2]]
    by_labels = index_runs(runs, *keys)
    table = {metric: np.full([len(v) for v in values], np.inf) for metric in params.metric}
    for metric, score in table.items():
        for place in np.ndindex(score.shape):
            labels = tuple(str(of[i]) for of, i in zip(values, place, strict=True))
            run = by_labels.get(labels)
            last = np.empty(0) if run is None else run.values(metric, "worst")[-1:]
            score[place] = last[0] if np.isfinite(last).any() else np.inf
    winners = {metric: score.argmin(axis=-1) for metric, score in table.items()}
    scored = {metric: np.isfinite(score).any(axis=-1) for metric, score in table.items()}
    shown = np.unique(np.concatenate([winners[metric][scored[metric]] for metric in table]))
    codes = _choose_codes({int(place): names[place] for place in shown})
    ticks = [[_format_tick(key, v, params) for v in values[i]] for i, key in enumerate(keys[:2])]
    maps = []
    for metric, score in table.items():
        panel = CellMap(params.titles.get(metric, ""), *ticks)
        panel.hatched = ~scored[metric]
        for r, c in zip(*np.nonzero(scored[metric]), strict=True):
            best, second = np.sort(np.append(score[r, c], np.inf))[:2]
            winner = int(winners[metric][r, c])
            ratio = second / best if best > 0 else np.inf
            panel.texts[r, c] = f"{codes[winner]}\n×{format_ratio(ratio)}"
            panel.colors[r, c] = to_rgb(style.mix(looks[winner].color, "white", 0.75))
        maps.append(panel)
    return maps, [
        Patch(color=style.mix(looks[place].color, "white", 0.75), label=f"{code}: {names[place]}")
        for place, code in codes.items()
    ]


def _choose_codes(names: Mapping[int, str]) -> dict[int, str]:
    """Return the shortest beginnings of names, of two letters or more, that tell them apart."""
    letters = {place: re.sub(r"\W", "", name) for place, name in names.items()}
    codes = {}
    for place, text in letters.items():
        others = [other for at, other in letters.items() if at != place]
        beginnings = (text[:n] for n in range(2, len(text)))
        alone = (code for code in beginnings if not any(o.startswith(code) for o in others))
        codes[place] = next(alone, text)
    return codes


def _format_tick(key: str, value: object, params: Params) -> str:
    """Return a tick's text for a value of a label: a number alone, or else the value's name."""
    if isinstance(value, (int, float)) and str(value) not in (params.names or {}):
        return f"{value:g}"
    return style.name(key, value, params.names)
