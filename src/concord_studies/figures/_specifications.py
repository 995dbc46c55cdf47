"""Pictures of a multiverse: a specification curve per claim, and which universes turn which claims.

A specification curve (Simonsohn, Simmons and Nelson 2020) shows the number that decides a verdict
in all universes, sorted, above the assumptions that each of them changes. It shows one case of the
claim, that whose verdict most universes change.
"""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from concord_studies import words
from concord_studies.claims.robustness import BASE, SEED, Row, find_robustness, outcome
from concord_studies.figures import style
from concord_studies.figures._axes import label_log_axis

Texts = Mapping[str, str]
COLORS = {"holds": style.BLUE, "open": "#8a8a8a", "fails": style.VERMILION, "": style.BLACK}
MARKERS = {"holds": "o", "open": "D", "fails": "s", "": "o"}
WORDS = {"holds": "holds", "open": "inconclusive", "fails": "does not hold"}
NONE = "#f3f3f3"  # nothing that the claim reads is changed
OURS = "as configured"
_RULE: dict[str, Any] = {"color": "#444444", "linewidth": 0.8, "linestyle": (0, (4, 2))}
_PRINTED: dict[str, Any] = {"color": style.GREEN, "linewidth": 1.0}
_RING: dict[str, Any] = {"color": "none", "marker": "o", "markersize": 7, "markeredgecolor": "k"}


def save(
    rows: Sequence[Row], names: Texts, says: Texts, folder: Path, watermark: bool
) -> list[Path]:
    """Draw the overview and each claim's curve into a folder, and return the files.

    rows: of the table of the multiverse, one for each claim, case, reading and universe.
    names, says: texts of each universe's change, and of each claim, by their keys.
    watermark: whether to print SMOKE SCALE across the figures.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, figure in _draw_all(rows, names, says):
        suffixes = (".pdf", ".svg", ".png") if name == "overview" else (".pdf", ".svg")
        paths = [folder / f"{name}{suffix}" for suffix in suffixes]
        style.save(figure, paths, watermark)
        files += paths
    return files


def _draw_all(rows: Sequence[Row], names: Texts, says: Texts) -> Iterator[tuple[str, Figure]]:
    """Yield names and figures of the overview, and of claims judged in several universes.

    says: the sentence of each claim.
    """
    if any(outcome(row["verdict"]) for row in rows):
        yield "overview", draw_overview(rows, list(names))
    for claim in dict.fromkeys(row["claim"] for row in rows):
        of_claim = [row for row in rows if row["claim"] == claim]
        if any(row["universe"] != BASE for row in of_claim):
            yield f"claim_{claim}", draw_curve(says[claim], of_claim, names)


def _find_case(rows: Sequence[Row]) -> str:
    """Return the first case whose verdict differs in the most universes from the study's own."""
    base = [row for row in rows if row["universe"] == BASE]
    study = {(row["case"], row["reading"]): outcome(row["verdict"]) for row in base}
    turned = Counter(dict.fromkeys((case for case, _ in study), 0))
    for row in rows:
        same = study[row["case"], row["reading"]]
        turned[row["case"]] += outcome(row["verdict"]) not in ("", same)
    return turned.most_common(1)[0][0]


@style.styled
def draw_curve(says: str, rows: Sequence[Row], names: Texts) -> Figure:
    """Draw a claim's specification curve: its number in each universe, a column per reading.

    says: the sentence of the claim.
    """
    case = _find_case(rows)
    shown = [row for row in rows if row["case"] == case]
    readings = list(dict.fromkeys(row["reading"] for row in shown))
    lines = _list_lines({row["universe"] for row in shown}, names)
    height = 0.115 * len(lines) + 0.1
    figure = Figure(figsize=(style.FULL, 2.2 + height), layout="constrained")
    grid: Any = {"gridspec_kw": {"height_ratios": [1.6, height]}, "squeeze": False}
    axes = figure.subplots(2, len(readings), sharex="col", sharey="row", **grid)
    for reading, (top, below) in zip(readings, axes.T, strict=True):
        of_reading = [row for row in shown if row["reading"] == reading]
        of_reading.sort(key=lambda row: (_sort_value(row), row["universe"] != BASE))
        _draw_numbers(top, of_reading)
        _draw_dots(below, of_reading, lines)
        top.set_title(reading)
    _set_scale(axes[0, 0], [row for row in shown if row["value"] is not None])
    what = next((row["what"] for row in shown if row["what"]), "")
    axes[0, 0].set_ylabel("\n".join(textwrap.wrap(what, 34)), parse_math=False)
    axes[1, 0].set_yticks(range(len(lines)), lines.values(), parse_math=False)
    axes[1, 0].set_ylim(len(lines) - 0.5, -0.5)
    label = f"{says.rstrip('.')}: {words.case(case)}" if case else says
    title = textwrap.wrap(" ".join(label.split()), 112)
    figure.set_figheight(figure.get_figheight() + 0.13 * (len(title) - 1))
    figure.suptitle("\n".join(title), x=0.01, ha="left", fontsize=8, parse_math=False)
    ways = {outcome(row["verdict"]) for row in shown}
    handles = [
        style.entry(text, color=COLORS[w], marker=MARKERS[w], linestyle="")
        for w, text in WORDS.items()
        if w in ways
    ]
    handles.append(style.entry(OURS, linestyle="", **_RING))
    if _rule_ends(shown):
        handles.append(style.entry("the rule", **_RULE))
    if any(row["printed"] is not None for row in shown):
        handles.append(style.entry("print", **_PRINTED))
    style.legend_of(figure, handles)
    return figure


def _sort_value(row: Row) -> float:
    """Return the number that decides a row's verdict; infinity where there is none."""
    value = row["value"]
    return float("inf") if value is None or np.isnan(value) else value


def _draw_numbers(axes: Axes, rows: Sequence[Row]) -> None:
    """Draw each universe's number with its interval, and lines at the ends of the claim's rule."""
    axes.grid(False, axis="x")
    for place, row in enumerate(rows):
        judged = outcome(row["verdict"])
        color, marker = COLORS[judged], MARKERS[judged]
        if not np.isfinite(_sort_value(row)):
            text = "no number" if judged else "not run"
            text = "infinite" if row["value"] is not None else text
            bottom = axes.get_xaxis_transform()
            look: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": style.SMALL}
            axes.text(place, 0.04, text, transform=bottom, rotation=90, color=color, **look)
            continue
        axes.vlines(place, row["lo"], row["hi"], color=color, linewidth=1.0)
        axes.plot(place, row["value"], color=color, marker=marker, markersize=3.2, linestyle="")
        if row["universe"] == BASE:
            axes.plot(place, row["value"], **_RING)
    for end in _rule_ends(rows):
        axes.axhline(end, zorder=0.9, **_RULE)
    for printed in dict.fromkeys(row["printed"] for row in rows):
        if printed is not None:
            axes.axhline(printed, zorder=0.9, **_PRINTED)
    axes.set_xlim(-0.7, len(rows) - 0.3)
    axes.tick_params(axis="x", bottom=False, labelbottom=False)


def _rule_ends(rows: Sequence[Row]) -> list[float]:
    """Return the finite ends of the ranges in which the claim's rule holds, each once."""
    ends = {row[key] for row in rows for key in ("low", "high") if row[key] is not None}
    return sorted(filter(np.isfinite, ends))


def _set_scale(axes: Axes, rows: Sequence[Row]) -> None:
    """Set a logarithmic axis where numbers are positive and of different magnitude."""
    values = np.array([row["value"] for row in rows], float)
    marked = np.array([*values[np.isfinite(values)], *_rule_ends(rows)])
    if len(marked) and marked.min() > 0 and marked.max() > 20 * marked.min():
        axes.set_yscale("log")
        label_log_axis(axes.yaxis)


def _list_lines(universes: set[str], names: Texts) -> dict[str, str]:
    """Return the lines below a specification curve, {change: text}; all seeds share one."""
    parts = dict.fromkeys(part for name in names if name in universes for part in name.split("+"))
    lines = {BASE: OURS}
    for part in parts:
        if not part.startswith(SEED):
            text = f"{part.partition('.')[0].replace('_', ' ')}: {names[part]}"
            lines[part] = textwrap.shorten(text, 52, placeholder=" ...")
    if any(part.startswith(SEED) for part in parts):
        lines[SEED] = "another master seed"
    return lines


def _draw_dots(axes: Axes, rows: Sequence[Row], lines: Texts) -> None:
    """Mark below every number what its universe changes: dots on ``lines``, or a seed's number."""
    axes.grid(False)
    for line in range(0, len(lines), 2):
        axes.axhspan(line - 0.5, line + 0.5, color="#f5f5f5", zorder=0)
    places = {part: line for line, part in enumerate(lines)}
    middle: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": style.SMALL}
    for place, row in enumerate(rows):
        color = COLORS[outcome(row["verdict"])]
        for part in row["universe"].split("+"):
            if part.startswith(SEED):
                axes.text(place, places[SEED], part.removeprefix(SEED), color=color, **middle)
            else:
                axes.plot(place, places[part], marker="o", markersize=3.2, color=color)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=style.SMALL, labelbottom=False)


@style.styled
def draw_overview(rows: Sequence[Row], universes: Sequence[str]) -> Figure:
    """Draw claims over assumptions as a map, dark where an alternative changes the verdict.

    A column is an assumption, divided into its alternatives; the last one the master seeds.
    rows: of all verdicts. universes: names of the alternatives, in the columns' order.
    """
    judged = {key: of for key, of in find_robustness(rows).items() if of.outcomes.get(BASE)}
    claims = list(dict.fromkeys(claim for claim, _ in judged))
    readings = list(dict.fromkeys(reading for _, reading in judged))
    columns: dict[str, list[str]] = {OURS: [BASE]}
    for name in universes:
        if "+" not in name:
            column = "master seed" if name.startswith(SEED) else name.partition(".")[0]
            columns.setdefault(column, []).append(name)
    # Small text is of another width at 100 dpi, where figures are laid out.
    figure = Figure(figsize=(style.FULL, 1.3 + 0.115 * len(claims)), dpi=200)
    figure.set_layout_engine("constrained", w_pad=0.1)
    panels = figure.subplots(1, len(readings), squeeze=False, sharey=True)[0]
    parts = [len(names) for names in columns.values()]
    starts = [i + np.linspace(0, 1, part, endpoint=False) for i, part in enumerate(parts)]
    edges = np.append(np.concatenate(starts), len(columns))
    cells = [name for names in columns.values() for name in names]
    for axes, reading in zip(panels, readings, strict=True):
        image = np.ones((len(claims), len(cells), 3))
        for r, c in np.ndindex(image.shape[:2]):
            claim, name = judged.get((claims[r], reading)), cells[c]
            if claim is None:
                continue
            if name in claim.outcomes:
                pale = name != BASE and claim.outcomes[name] == claim.outcomes[BASE]
                color = COLORS[claim.outcomes[name]]
                image[r, c] = to_rgb(style.mix(color, "white", 0.3 if pale else 1.0))
            elif name in claim.verdicts:
                at = (edges[c] + edges[c + 1]) / 2, r + 0.5
                axes.plot(*at, "x", color="k", markersize=2, markeredgewidth=0.4)
            else:
                image[r, c] = to_rgb(NONE)
        axes.pcolormesh(edges, np.arange(len(claims) + 1), image, zorder=0)
        axes.hlines(range(len(claims) + 1), 0, len(columns), color="white", linewidth=0.8)
        axes.vlines(range(len(columns) + 1), 0, len(claims), color="white", linewidth=2.0)
        heads = [name.replace("_", " ") for name in columns]
        axes.set_xticks(np.arange(len(heads)) + 0.5, heads, rotation=90, parse_math=False)
        axes.xaxis.tick_top()
        axes.set_title(reading, loc="center")
        axes.grid(False)
        axes.tick_params(length=0, labelsize=style.SMALL)
        axes.spines[:].set_visible(False)
        axes.set_ylim(len(claims), 0)
    panels[0].set_yticks(np.arange(len(claims)) + 0.5, claims, parse_math=False)
    handles: list[Artist] = [Patch(color=COLORS[w], label=text) for w, text in WORDS.items()]
    handles += [
        Patch(color=style.mix(style.BLUE, "white", 0.3), label="pale: as configured"),
        Patch(color=NONE, label="reads nothing that is changed"),
        style.entry("not run", color="k", marker="x", markersize=3, linestyle=""),
    ]
    style.legend_of(figure, handles)
    return figure
