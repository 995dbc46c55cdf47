"""Anybody's numbers, judged by the rules of the ledger."""

import csv
import json
from pathlib import Path

import pytest

from concord.errors import ConcordError
from concord_studies.claims import judge, write
from page_blocks import ROOT, run_blocks


def numbers(method, *ends, trials=20):
    return [
        {
            "method": method,
            "data": name,
            "value": (lo + hi) / 2,
            "lo": lo,
            "hi": hi,
            "trials": trials,
        }
        for name, (lo, hi) in zip("ab", ends, strict=True)
    ]


@pytest.mark.parametrize(
    ("theirs", "verdict"),
    [
        (((0.3, 0.34), (0.5, 0.54)), "holds"),
        (((0.3, 0.34), (0.05, 0.06)), "does not hold"),
        (((0.3, 0.34), (0.21, 0.23)), "inconclusive: too few chains"),
        (((0.3, 0.34), (0.19, 0.23)), "inconclusive: a tie"),  # 0.21 on either side
    ],
)
def test_numbers_are_paired_by_what_varies_on_both_sides(theirs, verdict):
    ours = numbers("ours", (0.1, 0.12), (0.2, 0.22))
    found = judge("nearer", what="error", says="Ours.", lower=ours, higher=numbers("x", *theirs))
    assert found.verdict == verdict
    assert found.reason.startswith("error: 0.") and "(ours, " in found.reason
    assert found.number.startswith("error, ratio: ") and "(rule: at most 1)" in found.number
    failing = "; not met in 1 of 2" if verdict == "does not hold" else ""
    assert found.number.endswith(failing or "(rule: at most 1)")


def test_intervals_are_widened_for_as_many_numbers_as_are_judged():
    """Alone it holds; of twenty such numbers one interval in twenty would miss."""
    one = {"value": 1.0, "lo": 0.91, "hi": 1.09, "trials": 100}
    assert judge("value", quantity=[one], printed=1.0, tolerance=0.1).verdict == "holds"
    many = [one | {"data": str(n)} for n in range(20)]
    found = judge("value", quantity=many, printed=1.0, tolerance=0.1)
    assert found.verdict == "inconclusive: too few chains"


def test_exact_numbers_need_no_interval_and_others_do():
    exact, unknown = {"value": "1.05", "trials": "0"}, {"value": 1.05, "lo": "", "hi": ""}
    found = judge("converges", quantity=[exact])
    assert (found.verdict, found.asks[:9]) == ("holds", "the trace")
    assert judge("value", quantity=[unknown], printed=1, tolerance=1).verdict == "not run"


def test_curves_are_judged_by_the_iteration_at_which_they_arrive():
    fast, slow = (
        [{"who": who, "iteration": k, "value": scale / (k + 1), "trials": 0} for k in range(9)]
        for who, scale in (("fast", 2), ("slow", 4))
    )
    assert judge("sooner", first=fast, later=slow, threshold=0.5).reason.endswith(
        "within 0.5 at iteration: fast at 3, slow at 7"
    )


def test_verdicts_are_written_as_a_table_and_as_json(tmp_path):
    found = [
        judge("value", says="=1", quantity=[{"value": 1, "trials": 0}], printed=1, tolerance=0)
    ]
    for name in ("verdicts.json", "verdicts.csv"):
        write(found, tmp_path / name)
    (row,) = json.loads((tmp_path / "verdicts.json").read_text())
    assert (row["says"], row["verdict"], row["rule"]) == ("=1", "holds", "value")
    (cells,) = csv.DictReader((tmp_path / "verdicts.csv").open())
    assert cells["verdict"] == "holds" and cells["says"] == "'=1"  # no formula for a spreadsheet
    with pytest.raises(ConcordError, match=r"\.csv or \.json"):
        write(found, tmp_path / "verdicts.txt")


@pytest.mark.parametrize(
    ("rule", "terms", "message"),
    [
        ("nearest", {}, "no rule 'nearest'; did you mean 'nearer'"),
        ("nearer", {"lower": [{"value": 1}]}, "the key 'higher' is missing"),
        ("value", {"quantity": [{"value": "x"}], "printed": 1, "tolerance": 1}, "value is 'x'"),
        (
            "converges",
            {"quantity": [{"value": 1}], "printed": 2.0},
            "the rule converges sets it to 1",
        ),
    ],
)
def test_mistakes_are_named(rule, terms, message):
    with pytest.raises(ConcordError, match=message):
        judge(rule, **terms)


def test_the_example_of_the_document(tmp_path, monkeypatch):
    """docs/ledger.md says what its example finds."""
    monkeypatch.chdir(tmp_path)
    verdicts = [found.verdict for found in run_blocks("docs/ledger.md")["found"]]
    assert verdicts == ["holds", "inconclusive: too few chains"]
    page = (ROOT / "docs/ledger.md").read_text()
    assert all(f"`{verdict}`" in page for verdict in verdicts)
    assert json.loads(Path("verdicts.json").read_text())[0]["verdict"] == "holds"
