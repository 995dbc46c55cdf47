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
from dataclasses import dataclass
from typing import Annotated, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, PowerNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from concord.errors import ConcordError, nearest
from concord.options import Options, Some
from concord_studies import scores, selection, words
from concord_studies.contracts import Read
from concord_studies.figures import style
from concord_studies.figures._options import Names, Select
from concord_studies.figures._panels import Panels, arrange_panels, name_cells
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


@dataclass
class CellMap:
    """One panel: colors and texts of its cells, (rows, columns), and the names beside them.

    hatched: cells that have no number; italic: numbers that are estimated.
    """

    title: str
    rows: list[str]
    columns: list[str]
    colors: np.ndarray
    texts: np.ndarray
    hatched: np.ndarray
    italic: np.ndarray

    @classmethod
    def blank(cls, title: str, rows: Sequence[str], columns: Sequence[str]) -> "CellMap":
        """Return a map of white cells without text."""
        shape = len(rows), len(columns)
        masks = (np.zeros(shape, bool) for _ in range(2))
        return cls(
            title,
            list(rows),
            list(columns),
            np.ones((*shape, 3)),
            np.full(shape, "", object),
            *masks,
        )


def reads(params: Params) -> list[Read | str]:
    """Return the metrics that the runs of the figure must have."""
    if not params.panels:
        return [*params.metrics]
    named = [(panel.metric or params.metric, panel) for panel in params.panels]
    return [
        Read(f"{metric}_0_0", panel.select, (0,))
        for metric, panel in named
        if metric and metric not in params.missing
    ]


@style.marks_divergence
def draw(params: Params, runs: Sequence[Measured]) -> Figure:
    """Draw maps of cells, a panel for each metric, or for each run of values."""
    runs = selection.select(runs, params.select)
    notes: list[str] = []
    handles: list[Patch] = []
    if params.panels:
        maps, notes = _map_values(params, runs)
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
    hatch = False
    for panel, ax in zip(maps, panels.axes, strict=True):
        ax.imshow(panel.colors, aspect="auto", origin="lower" if params.best else "upper")
        for (r, c), text in np.ndenumerate(panel.texts):
            if panel.hatched[r, c]:
                hatch = True
                ax.add_patch(Rectangle((c - 0.5, r - 0.5), 1, 1, **_HATCH))
            ink = style.choose_ink(panel.colors[r, c])
            slant = "italic" if panel.italic[r, c] else "normal"
            look: dict[str, Any] = {"fontsize": style.SMALL, "color": ink, "style": slant}
            ax.text(c, r, text, ha="center", va="center", linespacing=0.95, **look)
        name_cells(ax, panel.columns, panel.rows)
        if params.ratio:
            _head_groups(ax, params, [str(key) for key in panel.columns])
    axes = words.axis(params.columns or ""), words.axis(params.rows or "")
    panels.label(params.xlabel or axes[0], params.ylabel or axes[1])
    if hatch:
        label = "no finite score" if params.best else "does not apply"
        handles = [*handles, Patch(label=label, **_HATCH)]
    return panels.with_legend([*handles, *(style.entry(note, linestyle="") for note in notes)])


_HATCH: dict[str, Any] = {"facecolor": "white", "edgecolor": "#cccccc", "hatch": "////", "lw": 0}


def _map_best(params: Params, runs: Sequence[Measured]) -> tuple[list[CellMap], list[Patch]]:
    """Return maps of the entry with the lowest score, and the legend's entries."""
    keys = (str(params.rows), str(params.columns), "entry")
    values = [selection.distinct(runs, key) for key in keys]
    entries = values[2]
    looks = style.looks("entry", entries)
    names = [style.name("entry", entry, params.names) for entry in entries]
    table = {metric: np.full([len(v) for v in values], np.inf) for metric in params.metrics}
    for run in runs:
        own = [selection.lookup(run.run, key) for key in keys]
        place = tuple(
            [selection.is_same(value, wanted) for value in of].index(True)
            for wanted, of in zip(own, values, strict=True)
        )
        for metric, score in table.items():
            found = run.values(metric, "worst")
            if len(found) and np.isfinite(found[-1]):
                score[place] = found[-1]
    shown = [score.argmin(axis=-1)[np.isfinite(score).any(axis=-1)] for score in table.values()]
    codes = _choose_codes({int(place): names[place] for place in np.unique(np.concatenate(shown))})
    maps = []
    for metric, score in table.items():
        texts = [
            [_format_tick(key, value, params) for value in of]
            for key, of in zip(keys[:2], values[:2], strict=True)
        ]
        panel = CellMap.blank(params.title(metric), *texts)
        for r, c in np.ndindex(panel.texts.shape):
            ordered = np.append(np.sort(score[r, c]), np.inf)
            winner = int(score[r, c].argmin())
            panel.hatched[r, c] = not np.isfinite(ordered[0])
            if not panel.hatched[r, c]:
                ratio = ordered[1] / ordered[0] if ordered[0] > 0 else np.inf
                panel.texts[r, c] = f"{codes[winner]}\n×{_format_ratio(ratio)}"
                panel.colors[r, c] = to_rgb(style.mix(looks[winner].color, "white", 0.75))
        maps.append(panel)
    handles = [
        Patch(color=style.mix(looks[place].color, "white", 0.75), label=f"{code}: {names[place]}")
        for place, code in codes.items()
    ]
    return maps, handles


def _choose_codes(names: Mapping[int, str]) -> dict[int, str]:
    """Return the shortest beginnings of names, of two letters or more, that tell them apart."""
    letters = {place: re.sub(r"\W", "", name) for place, name in names.items()}
    size = {}
    for place, text in letters.items():
        others = [other for at, other in letters.items() if at != place]
        size[place] = next(
            (n for n in range(2, len(text)) if not any(o.startswith(text[:n]) for o in others)),
            len(text),
        )
    return {place: letters[place][:n] for place, n in size.items()}


def _format_ratio(ratio: float) -> str:
    """Return a ratio with two digits; from 1000 on, that it is larger."""
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}" if ratio < 1000 else ">999"


def _format_tick(key: str, value: object, params: Params) -> str:
    """Return the text of a tick for a value of a key, a number alone where it is one."""
    if isinstance(value, (int, float)) and str(value) not in (params.names or {}):
        return f"{value:g}"
    return style.name(key, value, params.names)


def _map_ratios(params: Params, runs: Sequence[Measured]) -> list[CellMap]:
    """Return maps of ratios: scores over the scores under the plain condition."""
    ratio, (row_key, column_key) = params.ratio, (str(params.rows), str(params.columns))
    assert ratio is not None
    rows, columns = (selection.distinct(runs, key) for key in (row_key, column_key))
    plain = [v for v in columns if selection.is_same(v, ratio.plain)]
    if not plain:
        raise ConcordError(
            f"no run has {column_key} {ratio.plain}; {nearest(ratio.plain, map(str, columns))}"
        )
    others = [v for v in columns if not selection.is_same(v, ratio.plain)]
    by = {
        tuple(str(selection.lookup(run.run, key)) for key in (row_key, column_key)): run
        for run in runs
    }
    norm = LogNorm(1 / FULL, FULL, clip=True)
    maps = []
    for metric in params.metrics:
        names = (
            [style.name(row_key, row, params.names) for row in rows],
            [style.name(column_key, column, params.names) for column in others],
        )
        panel = CellMap.blank(params.title(metric), *names)
        for (r, row), (c, column) in ((a, b) for a in enumerate(rows) for b in enumerate(others)):
            run, base = by.get((str(row), str(column))), by.get((str(row), str(plain[0])))
            found = scores.ratio(run, base, metric, "worst")
            text, value = _describe_ratio(found)
            panel.texts[r, c], panel.hatched[r, c] = text, found == "not applicable"
            panel.italic[r, c] = run is not None and scores.is_estimated(run)
            if not np.isnan(value):
                shown = norm(np.clip(value, 1 / FULL, FULL))
                panel.colors[r, c] = to_rgb(matplotlib.colormaps["RdBu_r"](0.12 + 0.76 * shown))
        maps.append(panel)
    return maps


def _describe_ratio(found: scores.Ratio | str | None) -> tuple[str, float]:
    """Return a cell's text, and the ratio that colors it.

    A bound that does not tell on which side of one the ratio is has no color.
    """
    if isinstance(found, str):
        return LACKING[found], np.nan
    if found is None:
        return "–", np.nan
    value = found.value
    if np.isinf(value):
        return "∞", value
    text = f"{value:.2g}" if value < 9.95 else _format_ratio(value)
    text = {"": "", "<": "≤", ">": "≥"}[found.bound] + text
    if not found.excludes_one and not found.bound:
        text = f"({text})"
    return text, value if found.excludes_one or not found.bound else np.nan


def _head_groups(axes: Axes, params: Params, columns: Sequence[str]) -> None:
    """Write headings above groups of columns, and draw white lines between these."""
    assert params.ratio is not None
    for heading, values in params.ratio.groups.items():
        names = {style.name(str(params.columns), value, params.names) for value in values}
        places = [place for place, name in enumerate(columns) if name in names]
        if places:
            look: dict[str, Any] = {"color": style.BLACK, "linewidth": 0.8, "clip_on": False}
            across = [min(places) - 0.42, max(places) + 0.42]
            axes.plot(across, [1.01, 1.01], transform=axes.get_xaxis_transform(), **look)
            axes.text(
                sum(across) / 2,
                1.02,
                heading,
                transform=axes.get_xaxis_transform(),
                ha="center",
                va="bottom",
                fontsize=style.SMALL,
            )


def _map_values(params: Params, runs: Sequence[Measured]) -> tuple[list[CellMap], list[str]]:
    """Return maps of values, one for each panel's run and agent, and texts of what was not run."""
    maps, lacking = [], []
    for own in params.panels:
        metric = own.metric or params.metric
        if not isinstance(metric, str):
            raise ConcordError(f"panel {own.title!r} names no metric; give it one, or the figure")
        run = selection.only(selection.select(runs, own.select), f"panel {own.title!r}")
        values = _read_matrix(run, metric)
        if values is None and metric in params.missing:
            lacking.append(str(params.missing[metric]))
            continue
        if values is None:
            raise ConcordError(
                f"run {run.name} has no metrics {metric}_* of agent 0; add their family "
                "to the metrics of its experiment, or choose another set"
            )
        counts = np.nanmax(values, initial=0) > 1
        finite = np.isfinite(values)
        norm = PowerNorm(0.5, 0, values[finite].max()) if counts else Normalize(0, 1)
        names = [[str(i) for i in range(size)] for size in values.shape]
        panel = CellMap.blank(own.title, *names)
        for place in zip(*np.nonzero(finite), strict=True):
            shade = matplotlib.colormaps["Blues"](norm(values[place]))
            panel.colors[place] = to_rgb(shade)
            text = f"{values[place]:.0f}" if counts else f"{values[place]:.2f}".lstrip("0")
            panel.texts[place] = "" if text in ("0", ".00") else text
        maps.append(panel)
    return maps, list(dict.fromkeys(lacking))


def _read_matrix(run: Measured, metric: str) -> np.ndarray | None:
    """Return agent 0's values of ``<metric>_<row>_<column>``, (rows, columns), or None."""
    table = run.metrics[(run.metrics["agent"] == "0").to_numpy()]
    places = table["metric"].str.extract(rf"^{re.escape(metric)}_(\d+)_(\d+)$")
    found = places.notna().all(axis=1).to_numpy()
    if not found.any():
        return None
    rows, columns = places[found].astype(int).to_numpy().T
    values = np.full((rows.max() + 1, columns.max() + 1), np.nan)
    values[rows, columns] = table["value"].to_numpy()[found]
    return values
