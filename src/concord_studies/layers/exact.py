"""The exact law, ``<metric>_exact``: it is the line, and the estimate a pale line beneath."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from concord_studies.figures import style
from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import Line, LinePanel


class Params(Layer):
    """The exact law, where a run has one."""

    companion: ClassVar[str] = "exact"

    def show_line(self, line: Line) -> Line:
        """Return the line with the law in its estimate's place."""
        return replace(line, law=line.read(self.companion))

    def draw(self, panel: LinePanel, axes: Axes) -> None:
        """Draw the runs' estimates in pale lines behind the curves of the exact laws."""
        for line in panel.lines:
            if line.law is not None and not line.is_muted and not panel.params.x.over:
                at, color = line.estimate, style.lighten(line.look.color)
                marker = "." if len(at.value) == 1 else ""
                look = {"color": color, "linestyle": line.pattern, "linewidth": 0.7, "zorder": 1.9}
                look |= {"marker": marker, "label": f"_estimate {line.name}"}
                axes.plot(at.iteration, at.value, **look)

    def legend(self, panels: Sequence[LinePanel], labels: Collection[Any]) -> Iterator[Artist]:
        """Yield entries where some lines are laws and others estimates, or pale lines have none."""
        lines = [line for panel in panels for line in panel.lines]
        known = {line.law is not None for line in lines}
        if len(known) == 2:
            yield style.entry("exact law, if with a pale estimate", color=style.GRAY)
        elif True in known and lines[0].has_interval:
            yield style.entry("exact law (with a pale estimate)", color=style.GRAY)
        elif True in known:
            says = "one chain" if lines[0].run.run.get("chains") == 1 else "estimate"
            yield style.entry(says, color=style.lighten(style.GRAY), linewidth=0.7)
