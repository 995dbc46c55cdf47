"""The record of reliability tests."""

from __future__ import annotations

from pathlib import Path

from reliability import Record


def test_page_joins_the_suites_and_renews_only_those_that_ran(tmp_path: Path) -> None:
    folder = tmp_path / "reliability"
    first = Record(folder)
    first.add("faults", "killed jobs", 20, 0, "same bytes after resuming")
    first.add("inputs", "mutated papers", 1000, 1, "file and key are named")
    first.write()
    second = Record(folder)
    second.add("faults", "killed jobs", 30, 0, "same bytes after resuming")
    page = second.write()
    assert page == (tmp_path / "reliability.md").read_text()
    assert "| killed jobs | 30 | 0 | same bytes after resuming |" in page
    assert "| killed jobs | 20 |" not in page
    assert "| mutated papers | 1000 | 1 | file and key are named |" in page
