"""One standard deviation over chains to either side of the mean, as a band or bars."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from concord_studies import results
from concord_studies.contracts import Read
from concord_studies.figures.lines import Line
from concord_studies.layers import intervals


class Params(intervals.Params):
    """One standard deviation over chains, in place of intervals."""

    metric: Annotated[str, "metric of a standard deviation over chains"]

    says: ClassVar[str] = "± 1 sd over chains"

    def reads(self, select: Mapping[str, Any], agents: Sequence[Any]) -> Sequence[Read]:
        """Return the metric of the standard deviation."""
        return [Read(self.metric, select, agents)]

    def show_line(self, line: Line) -> Line:
        """Return the line with an interval of one standard deviation to either side."""
        if line.params.x.over:
            return line
        mean = results.series(line.run, line.params.metric, line.agent)
        sd = results.series(line.run, self.metric, line.agent).value
        around = replace(mean, lo=mean.value - sd, hi=mean.value + sd)
        return replace(line, estimate=line.convert(around), has_interval=True)
