"""Timelines of agents: bars where they compute and wait, lines where vectors are on their way."""

import numpy as np
import pandas
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

import everything
from concord.errors import ConcordError
from concord.options import build
from concord_studies.results import Measured
from made_up_runs import COLUMNS, run

timeline = everything.kind("figures", "timeline")
ENDED = {0: [0.0, 1.0, 2.0, 3.0], 1: [0.0, 0.0, 2.5, 2.5], 3: [0.0, 1.0, 2.0, 2.5]}
WAITED = {0: [0.0, 0.4, 0.4, 0.9], 1: [0.0] * 4, 3: [0.0] * 4}


def measured(every: int = 1, sending: float = 0.25, **labels: str) -> Measured:
    rows = [(3, "network", "sending", sending, np.nan, np.nan)]
    for metric, values in (("ended", ENDED), ("waited", WAITED)):
        for agent, own in values.items():
            rows += [(every * k, str(agent), metric, v, np.nan, np.nan) for k, v in enumerate(own)]
    return Measured(run(agents=6, **labels), pandas.DataFrame(rows, columns=COLUMNS))


def drawn(runs: list[Measured], **options: object) -> Figure:
    return timeline.draw(build(timeline.Params, {"agents": [0, 1, 3], **options}, "x"), runs)


def bars(axes, row: int) -> list[tuple[float, float, str]]:
    """Return begin, end and kind of the bars of one row, in their order."""
    found = []
    for kind, collection in zip(
        ["wait", "compute"] * 3,
        [c for c in axes.collections if isinstance(c, PolyCollection)],
        strict=True,
    ):
        for path in collection.get_paths():
            box = path.get_extents()
            if row - 0.5 < box.y0 < row + 0.5:
                found.append((round(box.x0, 9), round(box.x1, 9), kind))
    return sorted(found)


def test_bars_are_what_agents_do():
    (axes,) = drawn([measured()]).axes
    assert bars(axes, 0) == [
        (0.0, 0.4, "wait"),
        (0.4, 1.0, "compute"),
        (1.0, 2.0, "compute"),
        (2.0, 2.5, "wait"),
        (2.5, 3.0, "compute"),
    ]
    assert bars(axes, 1) == [(0.0, 2.5, "compute")]  # a step of three iterations
    assert [text.get_text() for text in axes.get_yticklabels()] == ["agent 1", "agent 2", "agent 4"]
    assert axes.get_xlim() == (0.0, 3.0)


def test_vectors_go_to_neighbors_that_are_shown():
    """On a ring of six agents 0 and 1 are neighbors, agent 3 is nobody's that is shown."""
    (axes,) = drawn([measured()]).axes
    sent = next(c for c in axes.collections if isinstance(c, LineCollection)).get_segments()
    assert sorted((round(s[0][0], 9), round(s[1][0] - s[0][0], 9)) for s in sent) == [
        (t, 0.25) for t in (0.0, 0.0, 1.0, 2.0, 2.5, 3.0)
    ]


def test_every_iteration_is_needed():
    with pytest.raises(ConcordError, match="does not record every iteration; set record"):
        drawn([measured(every=2)])


def test_two_runs_need_two_panels():
    runs = [measured(barrier="waiting"), measured(barrier="none")]
    with pytest.raises(ConcordError, match="would both be"):
        drawn(runs)
    assert len(drawn(runs, rows="barrier").axes) == 2
    with pytest.raises(ConcordError, match=r"has 'ended' for agents 0, 1, 3, not for 5"):
        drawn(runs, rows="barrier", agents=[5])
