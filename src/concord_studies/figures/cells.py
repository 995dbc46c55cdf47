"""Maps of cells with numbers: the best of several, ratios to a plain condition, or values.

Over two labels of the runs, ``rows`` and ``columns``, with a panel for each metric:

- ``best``: the color is that of the one with the lowest score; the cell has its code, by which the
  legend names it, and how many times larger the second's score is. Hatched: no score is finite.
- ``ratio``: how many times worse each is than under the plain condition, data set by data set, on a
  log scale of colors. In italics where it is estimated from chains, in brackets where its 95 %
  interval over data sets holds one. ≤: some of the scores are the floor of their chains, so that
  the ratio is at most this; ≥: those of the plain condition are. ∞: diverged; n/r: not run; –:
  nothing to compare with. Hatched: the condition does not apply.

Without either, values of the metrics ``<metric>_<row>_<column>`` of one run and agent a panel, at
the last iteration: numbers of images by true and predicted label, or probabilities. Counts are
colored on a scale of their square roots, so that a few wrong ones can be seen. A panel whose run
lacks the metric is left out, and the text of ``missing`` stands below.

What a researcher writes in a study's YAML::

    { rows: zeta, columns: topology, metric: b2_by_gradients, best: true }
    { rows: entry, columns: fault, metric: b2_by_gradients, ratio: { plain: none } }
    { metric: confusion_mnist, panels: [{ title: SGD, select: { sampler: sgd } }],
      xlabel: predicted label, ylabel: true label }
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, PowerNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from concord.errors import ConcordError, nearest
from concord.options import Options, Some
from concord_studies import scores, selection, words
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._panels import Names, Panels, Select, arrange_panels, name_cells
from concord_studies.option_notes import NamesLabel, NamesRuns
from concord_studies.results import Measured

LACKING = {"not applicable": "", "not run": "n/r"}
FULL = 100.0  # the ratio of the fullest color


class Ratio(Options):
    """How many times worse a score is than under a plain condition, a value of ``columns``."""

    plain: Annotated[str, "condition that the others are divided by"]
    groups: Annotated[dict[str, Some[str]], "conditions under a heading, {heading: values}"] = {}  # noqa: RUF012


class Panel(Options):
    """One map of values, of the run that it selects."""

    title: Annotated[str, "title of the panel"]
    select: Annotated[dict[str, Any] | None, NamesRuns("labels of its run, {label: value}")] = None
    metric: Annotated[str | None, "metric of the map; none: the figure's"] = None


class Params(Options):
    """Options of a figure of cells; see the module's text for examples."""

    metric: Annotated[str | Some[str] | None, "metrics, a panel for each"] = None
    rows: Annotated[str | None, NamesLabel("label along the y axis")] = None
    columns: Annotated[str | None, NamesLabel("label along the x axis")] = None
    best: Annotated[bool, "show the entry with the lowest score"] = False
    ratio: Annotated[Ratio | None, "show ratios to a plain condition"] = None
    panels: Annotated[tuple[Panel, ...], "maps of values, in reading order"] = ()
    missing: Annotated[
        dict[str, Any], "texts for metrics of values that may not have been run, {metric: text}"
    ] = {}  # noqa: RUF012
    titles: Annotated[dict[str, str], "titles of panels: {metric: text}"] = {}  # noqa: RUF012
    xlabel: Annotated[str | None, "text of the x axis; none: the label"] = None
    ylabel: Annotated[str | None, "text of the y axis; none: the label"] = None
    select: Select = None
    names: Names = None

    @property
    def metrics(self) -> list[str]:
        """The metrics, each of a panel."""
        return [self.metric] if isinstance(self.metric, str) else [*(self.metric or ())]

    def title(self, metric: str) -> str:
        """Return the title of a metric's panel; a panel alone needs none."""
        return self.titles.get(metric, metric) if len(self.metrics) > 1 else ""


class CellMap:
    """One panel: its cells, (rows, columns), white and empty at first, and the names beside them.

    colors: RGB, (rows, columns, 3); texts: str objects.
    hatched, italic: masks of cells that have no number, and of numbers that are estimated.
    """

    def __init__(self, title: str, rows: Sequence[str], columns: Sequence[str]) -> None:
        shape = len(rows), len(columns)
        self.title, self.rows, self.columns = title, rows, columns
        self.colors, self.texts = np.ones((*shape, 3)), np.full(shape, "", object)
        self.hatched, self.italic = np.zeros((2, *shape), bool)


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs of the figure must have."""
    if not params.panels:
        return [*params.metrics]
    metrics = [(panel.metric or params.metric, panel) for panel in params.panels]
    return [
        Read(f"{metric}_0_0", panel.select, (0,))
        for metric, panel in metrics
        if metric and metric not in params.missing
    ]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw maps of cells, a panel for each metric, or for each run of values."""
    runs = selection.select(runs, params.select)
    handles: list[Artist] = []
    if params.panels:
        maps, handles = _map_values(params, runs)
    elif params.rows is None or params.columns is None or not (params.best or params.ratio):
        raise ConcordError("it needs panels of values, or rows and columns with best or ratio")
    elif params.best:
        maps, handles = _map_best(params, runs)
    else:
        maps = _map_ratios(params, runs)
    rows, columns = maps[0].texts.shape
    cells = arrange_panels((panel.title, runs) for panel in maps)
    across = 1 + max(cell.column for cell in cells)
    # The most characters of a cell set its width: a column of the page, or all of it.
    full = columns * across * max(len(str(text)) for m in maps for text in m.texts.flat) > 24
    height = 3.1 if params.panels else 1.2 + (0.3 if params.best else 0.2) * rows
    panels = Panels(cells, height, width="full" if full or across > 1 else "column")
    for panel, ax in zip(maps, panels.axes, strict=True):
        ax.imshow(panel.colors, aspect="auto", origin="lower" if params.best else "upper")
        for (r, c), text in np.ndenumerate(panel.texts):
            if panel.hatched[r, c]:
                ax.add_patch(Rectangle((c - 0.5, r - 0.5), 1, 1, **_HATCH))
            ink = style.choose_ink(panel.colors[r, c])
            slant = "italic" if panel.italic[r, c] else "normal"
            look: dict[str, Any] = {"fontsize": style.SMALL, "color": ink, "style": slant}
            ax.text(c, r, text, ha="center", va="center", linespacing=0.95, **look)
        name_cells(ax, panel.columns, panel.rows)
        if params.ratio:
            _head_groups(ax, params, panel.columns)
    axes = words.axis(params.columns or ""), words.axis(params.rows or "")
    panels.label(params.xlabel or axes[0], params.ylabel or axes[1])
    if any(panel.hatched.any() for panel in maps):
        label = "no finite score" if params.best else "does not apply"
        handles = [*handles, Patch(label=label, **_HATCH)]
    return panels.with_legend(handles)


_HATCH: dict[str, Any] = {"facecolor": "white", "edgecolor": "#cccccc", "hatch": "////", "lw": 0}


def _index_runs(runs: Sequence[Measured], *keys: str) -> dict[tuple[str, ...], Measured]:
    """Return the runs by their values of the given labels or keys, as text."""
    return {tuple(str(selection.lookup(run.run, key)) for key in keys): run for run in runs}


def _map_best(params: Params, runs: Sequence[Measured]) -> tuple[list[CellMap], list[Artist]]:
    """Return a map per metric that names the entry with the lowest score, and legend entries."""
    keys = (str(params.rows), str(params.columns), "entry")
    values = [selection.distinct(runs, key) for key in keys]
    looks = style.looks("entry", values[2])
    names = [style.name("entry", entry, params.names) for entry in values[2]]
    by_labels = _index_runs(runs, *keys)
    table = {metric: np.full([len(v) for v in values], np.inf) for metric in params.metrics}
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
        panel = CellMap(params.title(metric), *ticks)
        panel.hatched = ~scored[metric]
        for r, c in zip(*np.nonzero(scored[metric]), strict=True):
            best, second = np.sort(np.append(score[r, c], np.inf))[:2]
            winner = int(winners[metric][r, c])
            ratio = second / best if best > 0 else np.inf
            panel.texts[r, c] = f"{codes[winner]}\n×{_format_ratio(ratio)}"
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


def _format_ratio(ratio: float) -> str:
    """Return a ratio with two digits as text, ">999" from 1000 on."""
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}" if ratio < 1000 else ">999"


def _format_tick(key: str, value: object, params: Params) -> str:
    """Return a tick's text for a value of a label: a number alone, or else the value's name."""
    if isinstance(value, (int, float)) and str(value) not in (params.names or {}):
        return f"{value:g}"
    return style.name(key, value, params.names)


def _map_ratios(params: Params, runs: Sequence[Measured]) -> list[CellMap]:
    """Return a map per metric of scores divided by the scores under the plain condition."""
    ratio, keys = params.ratio, (str(params.rows), str(params.columns))
    assert ratio is not None
    rows, columns = (selection.distinct(runs, key) for key in keys)
    others = [value for value in columns if not selection.is_same(value, ratio.plain)]
    if len(others) == len(columns):
        raise ConcordError(
            f"no run has {keys[1]} {ratio.plain}; {nearest(ratio.plain, map(str, columns))}"
        )
    by_labels = _index_runs(runs, *keys)
    ticks = [[style.name(keys[0], row, params.names) for row in rows]]
    ticks += [[style.name(keys[1], column, params.names) for column in others]]
    norm = LogNorm(1 / FULL, FULL, clip=True)
    maps = []
    for metric in params.metrics:
        panel = CellMap(params.title(metric), *ticks)
        for r, c in np.ndindex(panel.texts.shape):
            row = str(rows[r])
            run, plain = by_labels.get((row, str(others[c]))), by_labels.get((row, ratio.plain))
            score_ratio = scores.ratio(run, plain, metric, "worst")
            panel.texts[r, c], value = _describe_ratio(score_ratio)
            panel.hatched[r, c] = score_ratio == "not applicable"
            panel.italic[r, c] = run is not None and scores.is_estimated(run)
            if not np.isnan(value):
                shade = norm(np.clip(value, 1 / FULL, FULL))
                panel.colors[r, c] = to_rgb(matplotlib.colormaps["RdBu_r"](0.12 + 0.76 * shade))
        maps.append(panel)
    return maps


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
    text = f"{ratio.value:.2g}" if ratio.value < 9.95 else _format_ratio(ratio.value)
    text = {"": "", "<": "≤", ">": "≥"}[ratio.bound] + text
    if ratio.excludes_one or ratio.bound:
        return text, ratio.value if ratio.excludes_one else np.nan
    return f"({text})", ratio.value


def _head_groups(axes: Axes, params: Params, columns: Sequence[str]) -> None:
    """Write headings above groups of columns, and draw white lines between these."""
    assert params.ratio is not None
    above = axes.get_xaxis_transform()
    for heading, values in params.ratio.groups.items():
        names = {style.name(str(params.columns), value, params.names) for value in values}
        if places := [place for place, name in enumerate(columns) if name in names]:
            ends = [min(places) - 0.42, max(places) + 0.42]
            look: dict[str, Any] = {"color": style.BLACK, "linewidth": 0.8, "clip_on": False}
            axes.plot(ends, [1.01, 1.01], transform=above, **look)
            middle: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": style.SMALL}
            axes.text(sum(ends) / 2, 1.02, heading, transform=above, **middle)


def _map_values(params: Params, runs: Sequence[Measured]) -> tuple[list[CellMap], list[Artist]]:
    """Return a map of values per panel, and legend entries for those without values."""
    maps, notes = [], {}
    for options in params.panels:
        metric = options.metric or params.metric
        if not isinstance(metric, str):
            raise ConcordError(
                f"panel {options.title!r} names no metric; give it one, or the figure"
            )
        run = selection.take_single(
            selection.select(runs, options.select), f"panel {options.title!r}"
        )
        values = _read_matrix(run, metric)
        if values is None and metric in params.missing:
            text = str(params.missing[metric])
            notes[text] = style.entry(text, linestyle="")
            continue
        if values is None:
            raise ConcordError(
                f"run {run.name} has no metrics {metric}_* of agent 0; add their family "
                "to the metrics of its experiment, or choose another set"
            )
        counts = np.nanmax(values, initial=0) > 1
        finite = np.isfinite(values)
        norm = PowerNorm(0.5, 0, values[finite].max()) if counts else Normalize(0, 1)
        panel = CellMap(options.title, *([str(i) for i in range(size)] for size in values.shape))
        for place in zip(*np.nonzero(finite), strict=True):
            panel.colors[place] = to_rgb(matplotlib.colormaps["Blues"](norm(values[place])))
            text = f"{values[place]:.0f}" if counts else f"{values[place]:.2f}".lstrip("0")
            panel.texts[place] = "" if text in ("0", ".00") else text
        maps.append(panel)
    return maps, list(notes.values())


def _read_matrix(run: Measured, metric: str) -> np.ndarray | None:
    """Return agent 0's metrics ``<metric>_<row>_<column>`` as a matrix. None if it has none."""
    table = run.metrics[(run.metrics["agent"] == "0").to_numpy()]
    places = table["metric"].str.extract(rf"^{re.escape(metric)}_(\d+)_(\d+)$")
    places = places.set_axis(table["value"]).dropna().astype(int)
    if places.empty:
        return None
    rows, columns = places.to_numpy().T
    values = np.full((rows.max() + 1, columns.max() + 1), np.nan)
    values[rows, columns] = places.index
    return values
