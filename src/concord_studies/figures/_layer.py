"""What a layer of a panel of curves is: one object, and one file of the room ``layers``.

A panel has lines first, each the estimate of a metric. Then the layers that a figure names work in
the order in which it names them: ``show`` changes the lines or adds to them, limits are set that
hold what the lines have then, ``draw`` draws, and ``legend`` says what that means. A file defines
``Params``, a ``Layer`` whose fields are the options; a study's is in its ``plugins/layers``.
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

    from concord_studies.figures._lines import Line, LinePanel


class Layer(Options):
    """What a panel of curves shows beside its lines, or in their place.

    companion: a layer of a metric ``m`` shows ``m_<companion>`` of the runs that have it.
    """

    companion: ClassVar[str] = ""

    def reads(self, select: Mapping[str, Any], agents: Sequence[Any]) -> Sequence[Read | str]:
        """Return the metrics that the runs must have, beside the panel's own.

        select, agents: which runs the panel shows, and which agents of them.
        """
        return ()

    def show(self, panel: LinePanel) -> LinePanel:
        """Return a panel with what the layer shows in it; its limits hold all that the panel has.

        A ConcordError if a run lacks a metric that the layer needs.
        """
        return replace(panel, lines=[self.show_line(line) for line in panel.lines])

    def show_line(self, line: Line) -> Line:
        """Return a line with what the layer shows of its run."""
        return line

    def draw(self, panel: LinePanel, axes: Axes) -> None:
        """Draw what the lines and levels of the panel, which are drawn in any case, do not show."""

    def legend(self, panels: Sequence[LinePanel], labels: Collection[Any]) -> Iterator[Artist]:
        """Yield the legend's entries of the layer, for all panels that have it.

        labels: matplotlib's of the lines that are drawn, such as "_floor".
        """
        yield from ()


class ChosenLayer(Chosen):
    """A layer chosen by name, with its options: ``floor``, or ``{floor: w2_floor}``.

    The value is that of the layer's option, or a mapping where it has several.
    """

    room = "layers"

    @classmethod
    def parse(cls, value: Any, where: str) -> Self:
        """Return the layer that a name, or a name with its option, chooses.

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
