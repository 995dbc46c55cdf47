"""Gray groups of lines, ``{gray: {text: [values of lines]}}``."""

from dataclasses import replace
from typing import Annotated, Any

from concord.options import Some
from concord_studies import selection
from concord_studies.figures import style
from concord_studies.figures.layer import Layer
from concord_studies.figures.lines import Line


class Params(Layer):
    """Groups of lines without color, each with one entry of the legend."""

    groups: Annotated[dict[str, Some[Any]], "{text in the legend: [values of lines]}"]

    def show_line(self, line: Line) -> Line:
        """Return the line in the gray of its group, if it is in one."""
        for text, values in self.groups.items():
            if any(selection.is_same(line.value, muted) for muted in values):
                line = replace(line, look=style.Look(style.MUTED, ""), text=text)
        return line
