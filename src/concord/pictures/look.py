"""How every picture looks: settings and colors, which figures of studies share.

A column of print is 3.4 in wide, a page 7 in; text has 8 pt and never below 6.5 pt. Colors are
those of Okabe and Ito, darkened where their contrast on white was below 3:1. Nothing uses pyplot or
leaves global settings changed: ``RC`` holds within ``styled`` functions only.
"""

from typing import Any

import matplotlib.style
import numpy as np
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

COLUMN, FULL = 3.4, 7.0  # inches: of a column, and of a page
SMALL = 6.5  # points, the smallest text

RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "mathtext.fontset": "dejavusans",
    "axes.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.4,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.4,
    "legend.labelspacing": 0.35,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    # Text stays text, in PDF with its font; ids in SVG come from this salt instead of from chance.
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "concord",
}

# A decorator: the function runs under RC and else matplotlib's own defaults, whatever the user's
# matplotlibrc says. matplotlib reads settings while drawing as well as while building.
styled = matplotlib.style.context(["default", RC])

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#C2679A"
ORANGE, SKY, BLACK, GRAY = "#B87A00", "#2B8CC4", "#000000", "#7F7F7F"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
AGENTS = ("#0B2545", "#3F75A0", "#7A93A8", "#14406B", "#5585AB", "#6B7F91")
AVERAGE_STYLE: Any = (0, (3.5, 1.6))
FLOOR: dict[str, Any] = {"color": "#444444", "linewidth": 1.0, "linestyle": (0, (1, 1.6))}
BAND: dict[str, Any] = {"alpha": 0.2, "linewidth": 0}


class Picture(Figure):
    """A figure that notebooks show, in the style of Concord's figures."""

    @styled
    def _repr_png_(self) -> bytes:
        """Return the figure as a PNG, which notebooks show."""
        from io import BytesIO

        image = BytesIO()
        super().savefig(image, format="png")
        return image.getvalue()

    @styled
    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure to a file whose suffix sets the format, such as .pdf, .svg or .png."""
        super().savefig(fname, **options)


def mix(color: str, other: str, part: float) -> str:
    """Mix two colors: ``part`` (0 to 1) of ``color``, the rest of ``other``."""
    return to_hex(part * np.array(to_rgb(color)) + (1 - part) * np.array(to_rgb(other)))  # type: ignore[arg-type]


def darken(color: str) -> str:
    """Return the darker shade of a color, for outlines and numbers."""
    return mix(color, BLACK, 0.4)


def lighten(color: str) -> str:
    """Return the paler shade of a color, for estimates beneath an exact law and intervals."""
    return mix(color, "white", 0.45)
