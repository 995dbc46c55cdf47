"""A floor, ``<metric>_floor`` or another metric: what as many exact draws would show.

Runs estimate the floor of one posterior each for itself; estimates that agree to 5 % are drawn
once. A floor that is named is the first run's.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from matplotlib.artist import Artist

from concord_studies.figures import style
from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import Level, LinePanel


class Params(Layer):
    """Dotted lines at the floors of the runs."""

    companion: ClassVar[str] = "floor"
    metric: Annotated[str | None, "metric that is the floor; none: that of the panel's"] = None

    def reads(self, select: Mapping[str, Any], agents: Sequence[Any]) -> Sequence[str]:
        """Return the metric that the option names, if any."""
        return [self.metric] if self.metric else []

    def show(self, panel: LinePanel) -> LinePanel:
        """Return the panel with its floors, each with its number of draws (0 if not known)."""
        metric = self.metric or f"{panel.params.metric}_floor"
        floors: dict[float, int] = {}
        for run in panel.cell.runs[:1] if self.metric else panel.cell.runs:
            for value in run.values(metric)[-1:].tolist():
                if not any(math.isclose(value, other, rel_tol=0.05) for other in floors):
                    # Others than w2_floor are of draws over time, too.
                    floors[value] = int(run.run["chains"]) if metric == "w2_floor" else 0
        levels = [Level(value, "floor", style.FLOOR, draws) for value, draws in floors.items()]
        return replace(panel, levels=[*panel.levels, *levels])

    def legend(self, panels: Sequence[LinePanel], labels: Collection[Any]) -> Iterator[Artist]:
        """Yield an entry that says of how many draws, if a floor is within its panel."""
        levels = (level for panel in panels for level in panel.levels)
        draws = dict.fromkeys(str(level.draws) for level in levels if level.draws)
        if "_floor" in labels:
            of = f"{' or '.join(draws)} " if draws else ""
            yield style.entry(f"floor of {of}exact draws", **style.FLOOR)
