"""Layers of a panel of curves: things shown beside its lines, such as floors, one file each.

A panel begins with lines, each the estimate of a metric. The layers that a figure names then act in
their order: ``show`` changes or adds lines, limits are set that hold them, ``draw`` draws the rest,
and ``legend`` explains it. A file of the room ``layers`` defines ``Params``, a ``Layer`` whose
fields are the options; a study's is in its ``plugins/layers``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec

from concord.kinds import find, options_of
from concord.options import Chosen, Options, plain
from concord_studies.contracts import Read

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from concord_studies.figures._axes import End
    from concord_studies.figures.lines import Line, LinePanel


class Layer(Options):
    """A layer of a panel of curves, shown beside its lines or in their place.

    companion: the ending of the metric it shows, ``m_<companion>`` for a panel of the metric ``m``.
    """

    companion: ClassVar[str] = ""

    def reads(self, select: Mapping[str, Any], agents: Sequence[Any]) -> Sequence[Read | str]:
        """Return the metrics that the runs must have, besides the panel's own.

        select, agents: the runs, by label or parameter, and the agents that the panel shows.
        """
        return ()

    def show(self, panel: LinePanel) -> LinePanel:
        """Return a panel with the layer's lines and levels added, which its limits have to hold.

        A ConcordError if a run lacks a metric that the layer needs.
        """
        return replace(panel, lines=[self.show_line(line) for line in panel.lines])

    def show_line(self, line: Line) -> Line:
        """Return a line with the layer's changes, such as a further series of its run."""
        return line

    def draw(self, panel: LinePanel, axes: Axes) -> None:
        """Draw the layer's marks, besides the panel's lines and levels, which are drawn anyway."""

    def list_ends(self, panel: LinePanel) -> Iterator[End]:
        """Yield what is to be written at the ends of the layer's marks, beside those of lines."""
        yield from ()

    def legend(self, panels: Sequence[LinePanel], labels: Collection[Any]) -> Iterator[Artist]:
        """Yield the legend's entries of the layer, for all panels that have it.

        labels: matplotlib's labels of the lines that are drawn, such as "_floor".
        """
        yield from ()


class ChosenLayer(Chosen):
    """A layer chosen by name, with its options: ``floor``, or ``{floor: w2_floor}``.

    The value is that of the layer's option, or a mapping where it has several.
    """

    room = "layers"

    @classmethod
    def parse(cls, value: Any, where: str) -> Self:
        """Build the layer that a name, or a name with its option, chooses.

        A ConcordError if there is no such layer, or its option does not fit.
        """
        if isinstance(value, cls):
            return value
        options: Any = {}
        if isinstance(value, dict) and len(value) == 1:
            ((value, options),) = value.items()
            fields = msgspec.structs.fields(options_of(find(cls.room, value, where)))
            if len(fields) < 2 and options is not None:
                options = {fields[0].name if fields else value: options}
        choice = cls.__new__(cls)
        choice._choose(value, options, where)
        return choice

    def plain(self) -> Any:
        """Return the name, or the mapping from it, that ``parse`` reads."""
        options = plain(self.params)
        if len(options) == 1:
            (options,) = options.values()
        return {self.kind: options} if options != {} else self.kind
