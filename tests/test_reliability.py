"""The record of reliability tests: it shows what failed, whichever way a test fails."""

from pathlib import Path

import pytest

from reliability import Record, Reliability

# Failing tests, run apart; what they have recorded is below.


def test_a_trial_fails_if_it_raises():
    noted = []
    reliability = Reliability(lambda *row: noted.append(row))
    with reliability.trial("faults", "cases", "rule"):
        pass
    with pytest.raises(KeyboardInterrupt), reliability.trial("faults", "cases", "rule"):
        raise KeyboardInterrupt
    assert noted == [("faults", "cases", 1, 0, "rule"), ("faults", "cases", 1, 1, "rule")]
    assert reliability.failed == 1


def test_page_joins_the_suites_and_renews_only_those_that_ran(tmp_path: Path) -> None:
    folder = tmp_path / "reliability"
    first = Record(folder)
    first.add("faults", "killed jobs", 20, 0, "same bytes after resuming")
    first.add("inputs", "mutated papers", 400, 0, "file and key are named")
    first.add("inputs", "mutated papers", 600, 1, "file and key are named")
    first.write()
    second = Record(folder)
    second.add("faults", "killed jobs", 30, 0, "same bytes after resuming")
    page = second.write()
    assert page == (tmp_path / "reliability.md").read_text()
    assert "| killed jobs | 30 | 0 | same bytes after resuming |" in page
    assert "| killed jobs | 20 |" not in page
    assert "| mutated papers | 1000 | 1 | file and key are named |" in page
