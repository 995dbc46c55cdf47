"""What is read of measured runs."""

import pytest

import made_up_runs
from concord.errors import ConcordError
from concord_studies import results


@pytest.mark.parametrize(
    ("agent", "remedy"),
    [
        ("average", "choose one of those"),
        (5, "add it to record.agents of the experiment or choose one of those"),
        ("network", "record all agents of the experiment or choose one of those"),
    ],
)
def test_an_agent_without_numbers_is_refused_with_what_can_be_done(agent, remedy):
    measured = made_up_runs.w2(made_up_runs.run(), [0, 1])
    with pytest.raises(ConcordError, match=rf"for agents 0, 1, not for {agent!r}; {remedy}$"):
        results.series(measured, "w2", agent)
