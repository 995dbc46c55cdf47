"""What readers see of claims: names of cases, readings, where a sentence stands."""

import everything
from concord_studies.claims import ledger
from concord_studies.pages import claims
from concord_studies.pages.claims import claims_page

ROW = {"paper": "p", "claim": "c", "verdict": "holds", "source": "print", "reading": "published"}


def read(row):
    (entry,) = ledger.group_by_reading([row])
    return entry.reading


def test_a_reading_is_told_of_papers_alone():
    ours = {**ROW, "source": ledger.OURS}
    assert read(ROW) == "published"
    assert read({**ROW, "reading": "published_57"}) == "published (57)"
    assert read(ours) == ""
    assert read({**ours, "reading": "released"}) == "released"
    _, cells = ledger.scores([ROW, {**ours, "paper": "arena"}])
    assert [row[:2] for row in cells] == [["arena", ""], ["p", "published"]]


def test_a_claim_that_fails_in_one_case_says_in_which():
    labels = ("agents=100+who=average", "agents=5+who=0", "agents=20+who=0")
    rows = [
        dict.fromkeys(ledger.COLUMNS, "") | {**ROW, "case": case, "ours": f"ours {number}"}
        for number, case in enumerate(labels)
    ]
    rows[0]["verdict"] = "does not hold"
    (entry,) = ledger.group_by_reading(rows)
    assert entry.count_cases() == "fails in 1 of 3 cases: 100 agents, average"
    text = claims.ledger_page(rows)
    assert "Fails in 1 of 3 cases: 100 agents, average. Ours 0." in text
    assert ledger.WORDS in text and "Seeds were not varied." not in text
    assert "Seeds were not varied." in claims.ledger_page(rows, "Seeds were not varied.")
    assert "<q>" not in text and text.count(ledger.WORDS) == 1


def test_every_papers_page_says_once_what_could_not_be_seen():
    for key, study in everything.studies().items():
        if study.printed:
            page = claims_page(study, [])
            assert ("What was read:" in page) + page.count("no image of them was seen") == 1, key
