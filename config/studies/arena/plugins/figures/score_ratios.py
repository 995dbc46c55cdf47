"""Maps of ratios to a plain condition: how many times worse each score is than under it.

Over two labels of the runs, ``rows`` and ``columns``; the score is compared data set by data set,
on a log scale of colors, which a bar explains. In italics where it is estimated from chains, in
brackets where its 95 % interval over data sets holds one. ≤: some of the scores are the floor of
their chains, so that the ratio is at most this; ≥: those of the plain condition are. ∞: diverged;
n/r: not run; –: nothing to compare with. Hatched: the condition does not apply. What a researcher
writes in a study's YAML::

    { rows: entry, columns: fault, metric: b2_by_gradients, plain: none }
"""

from collections.abc import Sequence
from typing import Annotated, Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure

from concord.errors import ConcordError, nearest
from concord.options import Options, Positive, Some
from concord_studies import scores, selection, words
from concord_studies.figures import style
from concord_studies.figures._maps import CellMap, draw_maps, explain_hatches
from concord_studies.figures.panels import Names, Select
from concord_studies.option_notes import NamesLabel
from concord_studies.results import Measured

from ..formats import format_ratio, index_runs

SHADES = matplotlib.colormaps["RdBu_r"](np.linspace(0.12, 0.88, 256))
LACKING = {"not applicable": "", "not run": "n/r"}


class Params(Options):
    """Options of a map of ratios; see the module's text for an example."""

    metric: Annotated[str, "the score"]
    rows: Annotated[str, NamesLabel("label along the y axis")]
    columns: Annotated[str, NamesLabel("label along the x axis")]
    plain: Annotated[str, "value of columns that the others are divided by"]
    groups: Annotated[dict[str, Some[str]], "conditions under a heading, {heading: values}"] = {}  # noqa: RUF012
    fullest: Annotated[Positive, "the ratio that has the fullest color, above 1"] = 100.0
    select: Select = None
    names: Names = None


def reads(params: Params) -> list[str]:
    """Return the metrics that some of the figure's runs must have."""
    return [params.metric]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw the map of a score's ratios to the plain condition."""
    runs = selection.select(runs, params.select)
    cells = _map_ratios(params, runs)
    panels = draw_maps([cells], runs, 1.2 + 0.2 * len(cells.rows))
    _head_groups(panels.axes[0], params, cells.columns)
    panels.label(words.axis(params.columns), words.axis(params.rows))
    shades = ScalarMappable(_scale(params), ListedColormap(SHADES))
    bar = panels.figure.colorbar(shades, ax=panels.axes[0], fraction=0.04, pad=0.02, aspect=25)
    ends = 1 / params.fullest, 1.0, params.fullest
    bar.set_ticks(ends, labels=[f"{end:g}" for end in ends])
    bar.ax.minorticks_off()
    plain = style.name(params.columns, params.plain, params.names)
    bar.set_label(f"ratio to {plain}", fontsize=style.SMALL)
    return panels.with_legend([*_explain_texts(cells), *explain_hatches([cells], "does not apply")])


def _scale(params: Params) -> LogNorm:
    """Return the scale by which ratios become shades."""
    return LogNorm(1 / params.fullest, params.fullest, clip=True)


def _explain_texts(panel: CellMap) -> list[Artist]:
    """Return the legend's entries for how numbers are written, of those ways that a map has."""
    texts = [str(text) for text in panel.texts.flat]
    signs = {
        r"\mathit{1.2}": ("estimated from chains", panel.italic.any()),
        "(1.2)": ("95 % interval holds 1", any(text.startswith("(") for text in texts)),
        r"\leq\;\geq": ("bound", any(text[:1] in ("≤", "≥") for text in texts)),
    }
    look: dict[str, Any] = {"color": style.BLACK, "linestyle": "", "markeredgewidth": 0}
    look["markersize"] = 14
    return [
        style.entry(text, marker=f"${sign}$", **look)
        for sign, (text, shown) in signs.items()
        if shown
    ]


def _map_ratios(params: Params, runs: Sequence[Measured]) -> CellMap:
    """Return the map of scores divided by the scores under the plain condition."""
    keys = params.rows, params.columns
    rows, columns = (selection.distinct(runs, key) for key in keys)
    others = [value for value in columns if not selection.is_same(value, params.plain)]
    if len(others) == len(columns):
        raise ConcordError(
            f"no run has {keys[1]} {params.plain}; {nearest(params.plain, map(str, columns))}"
        )
    by_labels = index_runs(runs, *keys)
    ticks = [[style.name(keys[0], row, params.names) for row in rows]]
    ticks += [[style.name(keys[1], column, params.names) for column in others]]
    norm = _scale(params)
    panel = CellMap("", *ticks)
    for r, c in np.ndindex(panel.texts.shape):
        row = str(rows[r])
        run, plain = by_labels.get((row, str(others[c]))), by_labels.get((row, params.plain))
        score_ratio = scores.ratio(run, plain, params.metric, "worst")
        panel.texts[r, c], value = _describe_ratio(score_ratio)
        panel.hatched[r, c] = score_ratio == "not applicable"
        panel.italic[r, c] = run is not None and scores.is_estimated(run)
        if not np.isnan(value):
            panel.colors[r, c] = ListedColormap(SHADES)(norm(value))[:3]
    return panel


def _describe_ratio(ratio: scores.Ratio | str | None) -> tuple[str, float]:
    """Return a cell's text, and the ratio that colors it: nan, for no color, if it may be 1.

    ratio: as ``scores.ratio`` returns it; a text is why there is none.
    """
    if isinstance(ratio, str):
        return LACKING[ratio], np.nan
    if ratio is None:
        return "–", np.nan
    if np.isinf(ratio.value):
        return "∞", ratio.value
    text = f"{ratio.value:.2g}" if ratio.value < 9.95 else format_ratio(ratio.value)
    text = {"": "", "<": "≤", ">": "≥"}[ratio.bound] + text
    if ratio.excludes_one or ratio.bound:
        return text, ratio.value if ratio.excludes_one else np.nan
    return f"({text})", ratio.value


def _head_groups(axes: Axes, params: Params, columns: Sequence[str]) -> None:
    """Write headings above groups of columns, and draw white lines between these."""
    above = axes.get_xaxis_transform()
    for heading, values in params.groups.items():
        names = {style.name(params.columns, value, params.names) for value in values}
        if places := [place for place, name in enumerate(columns) if name in names]:
            ends = [min(places) - 0.42, max(places) + 0.42]
            look: dict[str, Any] = {"color": style.BLACK, "linewidth": 0.8, "clip_on": False}
            axes.plot(ends, [1.01, 1.01], transform=above, **look)
            middle: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": style.SMALL}
            axes.text(sum(ends) / 2, 1.02, heading, transform=above, **middle)
