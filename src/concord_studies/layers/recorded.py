"""Values that a paper's authors recorded of the run, ``<metric>_recorded``, as open circles."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from concord_studies.figures import style
from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import Line, LinePanel


class Params(Layer):
    """The authors' values, where there is a record of the run."""

    companion: ClassVar[str] = "recorded"

    def show_line(self, line: Line) -> Line:
        """Return the line with the authors' values beside it."""
        record = line.read(self.companion)
        added = {} if record is None else {"recorded": record}
        return replace(line, companions={**line.companions, **added})

    def draw(self, panel: LinePanel, axes: Axes) -> None:
        """Draw some fourteen circles for each line with a record."""
        for index, line in enumerate(panel.lines):
            if (record := line.companions.get("recorded")) is not None:
                at = record.take(panel.choose_places(index, record.iteration, 14))
                look = {**style.CIRCLE, "markeredgecolor": line.look.color, "zorder": 3.2}
                axes.plot(at.iteration, at.value, **look, label=f"_recorded {line.name}")

    def legend(self, panels: Sequence[LinePanel], labels: Collection[Any]) -> Iterator[Artist]:
        """Yield an entry if there is a record of a run shown."""
        if any("recorded" in line.companions for panel in panels for line in panel.lines):
            yield style.entry("recorded by the authors", **style.CIRCLE, markeredgecolor=style.GRAY)
