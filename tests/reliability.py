"""The record of what reliability tests tried and what came of it: results/reliability.md.

A test that injects faults, tries inputs or compares laws says so with the fixture ``reliability``.
What several runs of the test suite recorded stands side by side; a suite's own new rows replace its
old ones.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "results" / "reliability"
COLUMNS = ("what", "tried", "failed", "rule")
HEAD = """# Reliability

What was tried on Concord and what came of it, written by the tests that tried it (`make test`; with
larger numbers `make reliability`). *Failed* counts the cases in which the rule did not hold.

"""

Row = tuple[str, int, int, str]
Reliability = Callable[[str, str, int, int, str], None]


class Record:
    """Rows by suite, kept as one CSV file a suite."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.rows: dict[str, list[Row]] = {}

    def add(self, suite: str, what: str, tried: int, failed: int, rule: str) -> None:
        """Note that ``failed`` of the ``tried`` cases of ``what`` broke the rule."""
        self.rows.setdefault(suite, []).append((what, tried, failed, rule))

    def write(self) -> str:
        """Write the suites' files and the page of all of them; return the page."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for suite, rows in self.rows.items():
            with open(self.folder / f"{suite}.csv", "w", newline="") as file:
                csv.writer(file).writerows([COLUMNS, *sorted(rows)])
        sections = []
        for path in sorted(self.folder.glob("*.csv")):
            with open(path, newline="") as file:
                _, *lines = csv.reader(file)
            sections.append(f"## {path.stem}\n\n{table(COLUMNS, lines)}")
            text = path.with_suffix(".md")  # what a suite adds in words, such as what it leaves out
            if text.exists():
                sections[-1] += f"\n{text.read_text()}"
        page = HEAD + "\n".join(sections)
        self.folder.with_suffix(".md").write_text(page)
        return page


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
