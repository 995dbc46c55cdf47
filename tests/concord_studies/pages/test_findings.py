"""A paper's findings: what fails before what is open and what holds, each with its reason."""

import re
from pathlib import Path

import everything
from concord_studies.claims import ledger
from concord_studies.claims.verdicts import FAILS
from concord_studies.pages import findings

ROOT = Path(__file__).parents[3]


def row(claim, verdict, **more):
    blank = dict.fromkeys(ledger.COLUMNS, "")
    about = {"paper": "p", "claim": claim, "says": f"{claim} is so.", "source": "print"}
    return blank | about | {"reading": "published", "verdict": verdict} | more


def half_page(*rows):
    return "\n".join(findings.half_page(rows))


def test_what_fails_comes_before_what_is_open_and_what_holds():
    rows = [row("a", "holds"), row("b", "inconclusive: a tie"), row("c", "does not hold")]
    text = half_page(*rows, row("d", "measured"), row("e", "outside the conditions"))
    order = ["What fails", "c is so.", "What is open", "b is so.", "What holds", "a is so."]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "(1 of 5 sentences)" in text
    assert "1 outside the conditions of a theorem, 1 measured only" in text


def test_a_line_has_the_number_of_cases_that_fail_one_number_and_the_reason():
    cases = [row("a", "holds", case=f"agents={n}", because="It is so.") for n in (5, 20, 100)]
    cases[1] |= {"verdict": "does not hold", "number": "exact W2: 3 (rule: at most 1)"}
    text = half_page(*cases)
    assert (
        "Fails in 1 of 3 cases: 20 agents. Exact W2: 3 (rule: at most 1). *Why:* It is so." in text
    )
    smoke = [one | {"scale": "smoke"} for one in cases]
    assert "It is so." not in half_page(*smoke)  # verdicts at smoke scale mean nothing
    known = [one | {"ours": ledger.COMMITTED, "number": ""} for one in cases]
    assert ledger.COMMITTED not in half_page(*known)


def test_what_fails_most_comes_first_and_many_lines_are_folded():
    some = [
        row("a", verdict, case=f"n={n}") for n, verdict in enumerate(("holds", "does not hold"))
    ]
    many = [row(f"b{n}", "does not hold") for n in range(9)]
    text = half_page(*some, *many)
    assert text.index("b8 is so.") < text.index("a is so.")
    assert "<summary>4 more</summary>" in text and text.count("\n- ") == 10


def test_sentences_are_counted_once_and_shown_with_their_number():
    number = "exact W2: 3 (rule: at most 1); not met in 1 of 2"
    rows = [row("a", "does not hold", number=number), row("a", "holds", reading="released")]
    rows += [row("b", "does not hold"), row("e", "does not hold"), row("c", "not run")]
    sentences = findings.group_by_sentence(rows)
    counts = findings.count_parts(sentences)
    assert [counts[part] for part in findings.COUNTED] == [2, 1, 0, 1, 0, 0]
    assert findings.format_shortly(sentences[0]) == (
        "a is so. **does not hold (published); holds (released).** Exact W2: 3 (rule: at most 1)."
    )


def test_a_verdict_says_if_only_some_cases_fail():
    cases = [row("a", verdict, case=f"n={n}") for n, verdict in enumerate((FAILS, "holds"))]
    (one,) = findings.group_by_sentence([*cases, row("a", "holds", reading="released")])
    assert one.label == "does not hold, in part (published); holds (released)"
    assert f"**{one.label}.** Fails in 1 of 2 cases." in findings.format_shortly(one)
    assert f"**{one.label}.** Fails in 1 of 2 cases: " in half_page(*one.rows)


def test_sentences_that_the_paper_does_not_make_come_last():
    own = row("b", "does not hold", source=ledger.OUR_SENTENCE)
    text = half_page(own, row("a", "holds"))
    assert text.startswith("Sentences: 0 failing, 0 open, 1 holding.") and "What fails" not in text
    assert text.index("a is so.") < text.index("What we say") < text.index("b is so.")


def test_failing_and_open_claims_of_papers_say_why():
    committed = ledger.expected_rows(ROOT / "config" / "expected_verdicts.yaml")
    studies = everything.studies()
    sentences = findings.group_by_sentence(committed)
    judged = [(one, studies[one.first_row["paper"]]) for one in sentences]
    silent = [
        f"{study.key}.{one.first_row['claim']}"
        for one, study in judged
        if one.part in ("fails", "open") and study.printed
        if not getattr(study.claims[one.first_row["claim"]].because, one.part)
    ]
    assert silent == []


def test_documents_state_a_sentence_with_its_place_and_number():
    number = "exact W2: 3 (rule: at most 1); not met in 1 of 2"
    about = {"where": "section 5.1, Fig 2", "because": "It is so.", "number": number}
    cases = [row("a", verdict, case=f"n={verdict}", **about) for verdict in ("holds", FAILS)]
    ours = {"source": ledger.OUR_SENTENCE}
    rows = [*cases, row("b", "holds", **about), row("c", "holds", **ours)]
    rows += [row("d", FAILS, **about), row("d", "holds", reading="released", **about)]
    text = "\n".join(findings.list_briefly([*rows, row("e", FAILS, **about | ours)]))
    assert "- a is so (§5.1, Fig 2). Fails in 1 of 2 cases. Exact W2: 3 (≤ 1).\n" in text
    assert "- d is so (§5.1, Fig 2). **does not hold (published); holds (released).** Exact" in text
    assert "**What holds**\n\n- b is so (§5.1, Fig 2).\n" in text
    assert "**Our sentences that fail**\n\n- e is so.\n" in text
    assert "c is so" not in text and text.endswith("\nOur other sentences: 1 holding.\n")


def test_documents_list_the_places_of_much_that_holds():
    where = [*["section 5, Fig 2"] * 6, "theorem 1"]
    rows = [row(f"a{n}", "holds", where=place) for n, place in enumerate(where)]
    assert findings.list_briefly(rows)[0] == "**What holds** (7): §5 (6), Theorem 1."


def test_sentences_of_a_study_are_counted_apart_if_they_are_ours():
    ours = [row(name, FAILS, source=ledger.OUR_SENTENCE) for name in "bd"]
    rows = [row("a", FAILS), *ours, row("c", "holds")]
    assert findings.count_sentences(rows)[2:] == ["| `p` | 1 + 2 | 0 | 0 | 1 | 0 |"]


def test_the_page_of_papers_shows_the_committed_verdicts():
    """Written by ``concord expect results/claims.csv``: each sentence that fails or is open."""
    text = (ROOT / "docs" / "papers.md").read_text()
    committed = ledger.expected_rows(ROOT / "config" / "expected_verdicts.yaml")
    for one in findings.group_by_sentence(committed):
        paper, name = one.first_row["paper"], one.first_row["claim"]
        claim = everything.studies()[paper].claims[name]
        stated = one.part == "fails" or (one.part == "open" and not claim.ours)
        if f"<!-- findings of {paper} -->" in text and stated:
            assert findings.markdown(claim.says.strip().rstrip(".")) in text, (paper, name)
            if len({entry.verdict for entry in one.entries}) > 1:
                assert f"**{findings.markdown(one.verdict)}.**" in text, (paper, name)


def test_mistakes_of_the_field_say_who_says_so_and_which_claim_measures_them():
    """A row without a mistake of its own is the one above it in another paper."""
    part = (ROOT / "docs" / "papers.md").read_text().partition("## What the field keeps")[2]
    rows = [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
    for row in rows[2:]:
        cells = [cell.strip() for cell in row]
        paper = next(cell.strip("`") for cell in cells if cell.startswith("`"))
        source = cells[cells.index(f"`{paper}`") + 1]
        assert re.match(r"print|abstract|(scripts?|notebook) (in )?`", source), cells
        claim = cells[-1].strip("`")
        assert cells[-1] == source or claim in everything.studies()[paper].claims, cells
