"""What readers see of claims: names of cases, readings, where a sentence stands."""

import pytest

from concord.claims import ledger
from concord.pages.claims import case_name, where

ROW = {"paper": "p", "claim": "c", "verdict": "holds", "source": "print", "reading": "published"}


@pytest.mark.parametrize(
    ("case", "told"),
    [
        (
            "agents=5+topology=no_edges+sampler=d_admms+agent=0",
            "agents 5, no edges, D-ADMMS, agent 1",
        ),
        ("points=50+who=average", "points 50, average"),
        ("level=1", "level 1"),
        ("n_20", "n_20"),
    ],
)
def test_cases_are_called_by_names(case, told):
    assert case_name({"case": case}) == told


def read(row):
    (entry,) = ledger.entries([row])
    return entry.reading


def test_a_reading_is_told_of_papers_alone():
    ours = {**ROW, "source": ledger.OURS}
    assert read(ROW) == "published"
    assert read({**ROW, "reading": "published_57"}) == "published (57)"
    assert read(ours) == ""
    assert read({**ours, "reading": "released"}) == "released"
    _, cells = ledger.scores([ROW, {**ours, "paper": "arena"}])
    assert [row[:2] for row in cells] == [["arena", ""], ["p", "published"]]


def test_a_source_is_told_once():
    row = {**ROW, "where": "Abstract"}
    assert where({**row, "source": "print"}) == where({**row, "source": "abstract"}) == "Abstract"
    assert where({**row, "source": "recorded"}) == "Abstract (recorded)"
