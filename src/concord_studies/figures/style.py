"""How every figure of a study looks: colors, names and files, in this one place.

Sizes, fonts and the first colors are those of all pictures (``concord.pictures.look``). Each color
also has a marker of its own, so that gray prints can be read.

One code has one meaning in all figures. A color is a sampler's or a network's, and no network has a
sampler's; a paper's own methods have the colors that its folder states (``colors``); agents, which
are exchangeable, are steps of one blue-gray ramp with markers; readings are gray, filled
(equations) or hollow (released code); numbers are steps of a ramp from violet to green, and values
of any other label of one from blue to red, which mean nothing beyond the figure.
Dashed is the agents' average, dotted a floor, open circles are what authors recorded, black
hairlines that leave the panel what is printed.
Where the exact law is known it is the line, and its estimate a pale line beneath.
"""

import functools
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.mathtext import MathTextParser

from concord.errors import ConcordError, short
from concord.pictures.look import AGENTS as AGENTS
from concord.pictures.look import AVERAGE_STYLE as AVERAGE_STYLE
from concord.pictures.look import BAND as BAND
from concord.pictures.look import BLACK as BLACK
from concord.pictures.look import BLUE as BLUE
from concord.pictures.look import COLUMN as COLUMN
from concord.pictures.look import FLOOR as FLOOR
from concord.pictures.look import FULL as FULL
from concord.pictures.look import GRAY as GRAY
from concord.pictures.look import GREEN as GREEN
from concord.pictures.look import MARKERS as MARKERS
from concord.pictures.look import ORANGE as ORANGE
from concord.pictures.look import PALETTE as PALETTE
from concord.pictures.look import PURPLE as PURPLE
from concord.pictures.look import RC as RC
from concord.pictures.look import SKY as SKY
from concord.pictures.look import SMALL as SMALL
from concord.pictures.look import VERMILION as VERMILION
from concord.pictures.look import Picture as Picture
from concord.pictures.look import darken as darken
from concord.pictures.look import lighten as lighten
from concord.pictures.look import mix as mix
from concord.pictures.look import styled as styled
from concord_studies import results, words
from concord_studies.io import whole_file


@functools.cache
@styled
def _parse_formulas(text: str) -> None:
    """Parse the formulas in a text as matplotlib does, or raise its error."""
    MathTextParser("path").parse(text)


def check_formulas(texts: Any, where: str) -> None:
    """Raise a ConcordError if matplotlib cannot draw a formula in the texts of some options.

    texts: a text, or nested lists and mappings of texts. where: the options' place in messages.
    """
    if isinstance(texts, str) and "$" in texts:
        try:
            _parse_formulas(texts)
        except (ValueError, RecursionError) as error:
            raise ConcordError(
                f"{where}: {short(texts)} is not text with formulas that matplotlib can draw; "
                r"correct what is between dollar signs, or write \$ for the sign itself"
            ) from error
    elif isinstance(texts, Mapping):
        for key, value in texts.items():
            check_formulas(value, f"{where}.{key}")
    elif isinstance(texts, (list, tuple)):
        for number, value in enumerate(texts):
            check_formulas(value, f"{where}[{number}]")


# Where there are more values than colors: Paul Tol's muted colors, darkened where too pale, and a
# red, which is no sampler's and so the first of plug-ins.
MORE = (
    *("#332288", "#882255", "#8A8A2B", "#117733", "#2F8F80", "#AA4499"),
    *("#661100", "#C1121F", "#6B6B6B"),
)
# Ordered values take ordered colors: matplotlib's viridis at even steps, without its pale half.
ORDERED = ("#440154", "#46327E", "#365C8D", "#277F8E", "#1FA187")
# Values of labels that name no sampler: matplotlib's plasma, without its pale part.
VALUES = ("#0D0887", "#6A00A8", "#A72197", "#CC4778", "#E16462")
NOTE = "#555555"  # the color of what is written beside lines
MUTED = "#949494"  # lines that stand back

SAMPLERS = {
    "de_sgld": (BLUE, "o"),
    "de_sghmc": (PURPLE, "s"),
    "d_ula": (GREEN, "^"),
    "admm": (BLACK, "D"),
    "c_admm": (BLACK, "D"),
    "d_admms": (VERMILION, "v"),
    "c_ula": (MORE[6], "P"),
    "extra_sgld": (MORE[1], "P"),
    "diging_sgld": (MORE[0], "v"),
    "local_sgld": (MORE[2], "D"),
    "gossip_ula": (SKY, "X"),
    "sgd": (GRAY, "o"),
    "graph_gibbs": (ORANGE, "o"),
    "push_sum_sgld": (BLACK, "^"),
    "d_mala": (MORE[3], "s"),
    "dg_lmc": (MORE[8], "P"),
    "fsgld": (MORE[6], "X"),
    "local_sgld_one_step": (MORE[4], "D"),
    "choco_sgld": (MORE[5], "v"),
    "qlsd": ("#6520B0", "v"),
}
ENTRIES = {**SAMPLERS, "admm": SAMPLERS["d_admms"]}  # of the arena
PAPERS = "_paper"  # ends the name of an entry with a paper's own settings: hollow markers
_NETWORKS = ("complete", "ring", "no_edges", "star", "path", "grid", "erdos_renyi", "edge_list")
_EARTH = ["#5D4037", "#D81B60", "#689F38", "#00838F", "#6A1B9A", "#A1662F", "#455A64", "#8D7B68"]
TOPOLOGIES = dict(zip(_NETWORKS, zip(_EARTH, (*MARKERS, "o"), strict=True), strict=True))
# Ways to train: two samplers' colors, and those of gossip that sends less.
TRAININGS = {
    "synchronous": SAMPLERS["d_ula"],
    "gossip": SAMPLERS["gossip_ula"],
    "triggered": (ORANGE, "v"),
    "isolated": (GRAY, "o"),
}
LOOKS = {
    **{"sampler": SAMPLERS, "method": SAMPLERS, "chain": SAMPLERS, "entry": ENTRIES},
    **{"topology": TOPOLOGIES, "training": TRAININGS},
}
# Colors of values without a look of their own, by label.
POOLS = dict.fromkeys(LOOKS, (*PALETTE, *MORE)) | {"topology": tuple(reversed(_EARTH))}
READINGS = {
    "published": "equations",
    "corrected": "corrected equations",
    "released": "released code",
}
POINT: dict[str, Any] = {"color": GRAY, "linewidth": 0.8, "linestyle": "-"}
PRINTED: dict[str, Any] = {"color": BLACK, "linewidth": 0.6, "linestyle": "-"}
HOLLOW: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "linestyle": ""}
CIRCLE: dict[str, Any] = {**HOLLOW, "markersize": 3.2, "markeredgewidth": 0.8}
CROSS: dict[str, Any] = {"marker": "x", "markersize": 5, "markeredgewidth": 1.3, "linestyle": ""}
# Behind what is written over curves.
PLATE: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}

SYMBOLS = {
    "agents": "$N$",
    "batch_size": "$b$",
    "step_size": r"$\eta$",
    "friction": r"$\gamma$",
    "penalty": r"$\rho$",
    "rho": r"$\rho$",
}


@styled
def lay_out(figure: Figure) -> None:
    """Lay out a figure so that nothing overlaps and long labels of axes wrap.

    A label is long if it is longer than its panel. Formulas and the labels of axes that are in no
    grid stay as they are, as does the layout of a figure that has an engine of its own.
    """
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    renderer, dpi, added = FigureCanvasAgg(figure).get_renderer(), figure.dpi, 0
    legends = sum(legend.get_window_extent(renderer).height for legend in figure.legends)
    size = figure.get_size_inches() - [0, legends / dpi]
    for axes in figure.axes:
        if (place := axes.get_subplotspec()) is None:
            continue
        grid = place.get_gridspec()
        along: Any = (axes.xaxis, grid.get_width_ratios(), place.colspan)
        across: Any = (axes.yaxis, grid.get_height_ratios(), place.rowspan)
        for side, (axis, ratios, span) in enumerate((along, across)):
            part = sum(ratios[n] for n in span) / sum(ratios)
            above = side and axes.get_title(loc="left")  # into which a label may reach
            room = size[side] * part - (0.3 if above else 0.45)  # beside a panel are numbers
            text, width = axis.label.get_text(), len(axis.label.get_text())
            while width > 8 and axis.label.get_window_extent(renderer).size[side] > room * dpi:
                width -= 1
                axis.label.set_text(wrap_label(text, width))
            if axis is axes.xaxis:
                added = max(added, axis.label.get_text().count("\n") - text.count("\n"))
    figure.set_figheight(figure.get_figheight() + 0.15 * added)


def wrap_label(text: str, width: int) -> str:
    """Wrap a text into lines of at most ``width`` characters, at a bracket if that is enough.

    A formula stays on one line.
    """
    head, bracket, rest = text.partition(" (")
    if bracket and max(len(head), len(rest) + 1) <= width:
        return f"{head}\n({rest}"
    whole = re.sub(r"\$[^$]*\$", lambda formula: formula[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(whole, max(width, 1), break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


def drawing(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Decorate a figure plug-in's ``draw``: use the house style, and name its kind in errors."""

    @functools.wraps(draw)
    @styled
    def draw_in_style(params: Any, runs: Sequence[results.Measured]) -> Figure:
        """Draw the figure in the house style, and name its kind in errors."""
        with results.name_in_errors("figure", draw):
            return draw(params, runs)

    return draw_in_style


def marks_divergence(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Decorate as ``drawing`` does, and name the diverged runs on top of the figure.

    Diverged runs are not drawn, and have no entry in a legend.
    """

    @drawing
    @functools.wraps(draw)
    def draw_and_name(params: Any, runs: Sequence[results.Measured]) -> Figure:
        """Draw the figure, and name the diverged runs above it."""
        figure = draw(params, runs)
        name_diverged(figure, params, runs)
        return figure

    return draw_and_name


def name_diverged(figure: Figure, params: Any, runs: Sequence[results.Measured]) -> None:
    """Write the names of diverged runs on top of a figure, if there are any."""
    if (text := results.divergence_note(params, runs)) is None:
        return
    lines = textwrap.wrap(text, int(20 * figure.get_figwidth()))
    look: dict[str, Any] = {"ha": "left", "fontsize": SMALL, "color": "#8a3b00"}
    figure.suptitle("\n".join(lines), x=0.01, parse_math=False, **look)
    figure.set_figheight(figure.get_figheight() + (1.25 * SMALL * len(lines) + 4) / 72)


@dataclass(frozen=True)
class Look:
    """Color and marker of one line, fixed by the value that it represents."""

    color: str
    marker: str
    hollow: bool = False

    @property
    def line(self) -> dict[str, Any]:
        """The matplotlib options that draw the line and its markers."""
        edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.4}
        if self.hollow:
            edge = {"markerfacecolor": "white", "markeredgewidth": 0.8}
        return {"color": self.color, "marker": self.marker, **edge}


def looks(key: str, values: Sequence[Any], colors: Mapping[str, str] | None = None) -> list[Look]:
    """Return the look of each value of a label; agents and samplers look the same in all figures.

    A plug-in looks like the kind that has its name, unless that is among the values. Numbers get an
    ordered color scale, and so do the values of a label that names neither samplers nor networks;
    others without a look of their own take the palette's colors in order, those not yet in use
    first. key: the label. colors: the study's own, by value.
    """
    if key == "agent":
        return [_agent_look(value) for value in values]
    if key == "reading":
        released = [str(value).startswith("released") for value in values]
        return [
            Look("#444444", MARKERS[place % len(MARKERS)], hollow)
            for place, hollow in enumerate(released)
        ]
    if len(values) > 1 and all(words.is_number(value) for value in values):
        return _rank_looks(values)
    if (label := key.split(".")[0]) not in LOOKS:
        ramp = [_mix_along(VALUES, place) for place in np.linspace(0, 1, max(len(values), 2))]
        own = colors or {}
        return [
            Look(own.get(str(value), color), MARKERS[place % len(MARKERS)])
            for place, (value, color) in enumerate(zip(values, ramp, strict=False))
        ]
    fixed = {name: Look(*look) for name, look in LOOKS[label].items()}
    for place, (name, color) in enumerate((colors or {}).items()):
        fixed[name] = Look(color, MARKERS[place % len(MARKERS)])
    fixed |= {f"{name}{PAPERS}": replace(look, hollow=True) for name, look in fixed.items()}
    texts = {str(value) for value in values}
    for text in texts - fixed.keys():
        called = words.kind_in_sentence(key, text)
        same = [n for n in fixed if n not in texts and words.kind_in_sentence(key, n) == called]
        if same:
            fixed[text] = fixed[same[-1]]
    used = {fixed[text].color for text in texts & fixed.keys()}
    others = sum(str(value) not in fixed for value in values)
    pool = [color for color in POOLS[label] if color not in used]
    taken = {look.color for look in fixed.values()}
    pool = sorted(pool, key=taken.__contains__)  # colors that mean something else come last
    free = (Look(pool[n % len(pool)], MARKERS[-1 - n % len(MARKERS)]) for n in range(others))
    return [fixed[str(value)] if str(value) in fixed else next(free) for value in values]


def _agent_look(agent: Any) -> Look:
    """Return the color and marker of an agent; the average is black without marker."""
    if not isinstance(agent, int):
        return Look(BLACK, "")
    return Look(AGENTS[agent % len(AGENTS)], MARKERS[agent % len(MARKERS)])


def _rank_looks(values: Sequence[float]) -> list[Look]:
    """Return a look for each number, with colors of one scale in the numbers' order."""
    looks = []
    for rank in map(sorted(values).index, values):
        color = _mix_along(ORDERED, rank / (len(values) - 1))
        looks.append(Look(color, MARKERS[rank % len(MARKERS)]))
    return looks


def _mix_along(ramp: Sequence[str], place: float) -> str:
    """Return the color at a place of a ramp, from 0 to 1."""
    parts, steps = np.array([to_rgb(color) for color in ramp]).T, np.linspace(0, 1, len(ramp))
    color: Any = [np.interp(place, steps, part) for part in parts]
    return to_hex(color)


def contrast(color: Any, other: Any = "white") -> float:
    """Return the contrast ratio of two colors, between 1 and 21, as WCAG 2 defines it."""

    def luminance(of: Any) -> float:
        """Return the relative luminance of a color."""
        parts = np.array(to_rgb(of))
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted((luminance(color), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def choose_ink(color: Any) -> str:
    """Return white or black, whichever can be read better on a color."""
    return max(("white", BLACK), key=lambda ink: contrast(ink, color))


def name(key: str, value: Any, names: Mapping[str, Any] | None = None) -> str:
    """Return the text for a value of the label ``key``, such as "No edges" or "$b$ = 5".

    ``names`` comes from the paper's YAML: another text for a value, or another symbol for a key.
    """
    numbered = key == "agent" and str(value).isdigit()  # names are those of other labels' values
    if not numbered and (text := words.study_text(key, value, names)):
        return text
    if key == "agent":
        return words.agent(value)
    if key == "reading" and value in READINGS:
        return READINGS[value]
    if words.is_number(value):
        last = key.split(".")[-1]
        symbol = SYMBOLS.get(last, last.replace("_", " "))
        symbol = (names or {}).get(key, (names or {}).get(last, symbol))
        return f"{symbol} = {number(value)}"
    return words.name(key, value)


def number(value: float) -> str:
    """Return a number as text: 0.0025, but 2.5 x 10^-5 for small ones."""
    digits, _, power = f"{value:g}".partition("e")
    return rf"${digits}\times 10^{{{int(power)}}}$" if power else digits


def round_number(value: float) -> str:
    """Return a number as text with two significant digits: 0.10, but 2.5 x 10^-5 for small ones."""
    text = f"{value:#.2g}".rstrip(".")
    return number(float(text)) if "e" in text else text


def entry(text: str, **line: Any) -> Line2D:
    """Return a legend's entry; ``line`` are matplotlib options of the line or marker beside it."""
    return Line2D([], [], label=text, **line)


def legend_of(figure: Figure, handles: Sequence[Artist], references: Sequence[Artist] = ()) -> None:
    """Put one legend below all panels, and make the figure higher by the legend's height.

    references: entries of references, such as floors, which begin a new row.
    """
    groups = [group for group in (handles, references) if len(group)]
    if not groups:
        return
    heights = [_add_legend(figure, [*handles, *references])]
    if len(groups) > 1 and heights[0] > 2.5 * SMALL / 72:  # no room for all in one row
        figure.legends[0].remove()
        heights = [_add_legend(figure, group) for group in groups]
    first, *others = list[Any](figure.legends)
    for more in others:  # into one box, so that the layout leaves room for all of it
        more.remove()
        first._legend_box.get_children().append(more._legend_handle_box)
        first.texts += more.texts
        first.legend_handles += more.legend_handles
    figure.set_figheight(figure.get_figheight() + sum(heights) + 0.05)


def _add_legend(figure: Figure, handles: Sequence[Artist]) -> float:
    """Add a legend with as many columns as fit into the figure; return its height in inches."""
    renderer, width = FigureCanvasAgg(figure).get_renderer(), figure.get_figwidth() - 0.1
    columns = min(len(handles), 8)
    while True:
        rows = -(-len(handles) // columns)
        columns = -(-len(handles) // rows)  # as few as these rows need: no ragged last column
        # matplotlib fills columns first, readers read rows.
        by_rows = [handle for column in range(columns) for handle in handles[column::columns]]
        legend = figure.legend(handles=by_rows, ncols=columns, loc="outside lower center")
        box = legend.get_window_extent(renderer)
        if columns == 1 or box.width <= width * figure.dpi:
            return box.height / figure.dpi
        legend.remove()
        columns -= 1


@styled
def save(figure: Figure, paths: Iterable[Path | str], watermark: bool = False) -> None:
    """Write the figure to each path (.pdf, .svg or .png), the same bytes every time.

    figure: of a kind's ``draw``.
    paths: files to write; the suffix sets the format. No file carries a date or a version.
    watermark: print SMOKE SCALE across the figure, for results that are not the paper's.
    A ConcordError for a suffix that is none of the three.
    """
    targets = [Path(path) for path in paths]
    for path in targets:
        if path.suffix not in _METADATA:
            raise ConcordError(f"{path}: figures are written as .pdf, .svg or .png; rename it")
    # Lay out once, so that three formats show one picture and only one of them pays for it.
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine(None)  # no engine at all: "none" would draw every format twice
    mark = _add_watermark(figure) if watermark else None
    _simplify_bands(figure)
    for path in targets:
        # Into memory, since PDF on a full disk ends in an error of Matplotlib's own.
        image = io.BytesIO()
        figure.savefig(image, format=path.suffix[1:], metadata=_METADATA[path.suffix])
        data = image.getvalue()
        with whole_file(path) as part:
            part.write_bytes(_shorten_svg(data) if path.suffix == ".svg" else data)
    if mark is not None:
        mark.remove()


def _simplify_bands(figure: Figure) -> None:
    """Leave out corners of shaded bands that are too close to be seen."""
    for band in figure.findobj(PolyCollection):
        shown = band.get_transform()
        paths = [shown.transform_path(path).cleaned(simplify=True) for path in band.get_paths()]
        corners = (np.asarray(path.vertices)[:-1] for path in paths)
        band.set_verts([shown.inverted().transform(of) for of in corners])


def _round_number(number: re.Match[bytes]) -> bytes:
    """Return a number in the text of an SVG file with two decimals."""
    return b"%.2f" % float(number[0])


def _shorten_svg(svg: bytes) -> bytes:
    """Return an SVG with coordinates rounded to a hundredth of a point, and fallback fonts.

    The fallback is Verdana, whose letters are about as wide.
    """
    number = re.compile(rb"-?\d+\.\d{3,}")
    tags = re.sub(rb"<[^>]+>", lambda tag: number.sub(_round_number, tag[0]), svg)
    return re.sub(rb"'DejaVu Sans'(, sans-serif)?", rb"'DejaVu Sans', Verdana, sans-serif", tags)


_METADATA: dict[str, dict[str, Any]] = {
    ".pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    ".svg": {"Creator": None, "Date": None},
    ".png": {"Software": None},
}


def _add_watermark(figure: Figure) -> Artist:
    """Write "SMOKE SCALE" across a figure, and return the text."""
    width, height = figure.get_size_inches()
    look: dict[str, Any] = {"fontweight": "bold", "color": GRAY, "alpha": 0.3, "zorder": 1000}
    look |= {"fontsize": min(9 * width, 20 * height), "rotation": min(30.0, 45 * height / width)}
    return figure.text(0.5, 0.5, "SMOKE SCALE", ha="center", va="center", **look)
