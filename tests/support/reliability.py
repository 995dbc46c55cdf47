"""The record of what reliability tests tried and what came of it: results/reliability.md.

A test that injects faults or compares laws says so with the fixture ``reliability``, before it
fails; what fails without having said so is a row as well. What several runs of the test suite
recorded stands side by side; a suite's own new rows replace its old ones.
"""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "results" / "reliability"
COLUMNS = ("what", "tried", "failed", "rule")
HEAD = """# Reliability

What was tried on Concord and what came of it, written by the tests that tried it (`make test-all`;
with larger numbers `make reliability`). *Failed* counts the cases in which the rule did not hold.

"""


class Reliability:
    """What one test says it tried; ``note`` passes on suite, what, tried, failed and rule."""

    def __init__(self, note: Callable[..., Any]) -> None:
        self._note = note
        self.failed = 0

    def __call__(self, suite: str, what: str, tried: int, failed: int, rule: str) -> None:
        """Note that ``failed`` of the ``tried`` cases of ``what`` broke the rule."""
        self.failed += failed
        self._note(suite, what, tried, failed, rule)


class Record:
    """Cases tried and failed, by suite, what and rule; kept as one CSV file a suite."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.rows: dict[str, dict[tuple[str, str], list[int]]] = {}

    def add(self, suite: str, what: str, tried: int, failed: int, rule: str) -> None:
        """Add cases to those already noted of the same thing."""
        counts = self.rows.setdefault(suite, {}).setdefault((what, rule), [0, 0])
        counts[0] += tried
        counts[1] += failed

    def write(self) -> str:
        """Write the suites' files and the page of all of them; return the page."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for suite, rows in self.rows.items():
            with open(self.folder / f"{suite}.csv", "w", newline="") as file:
                lines = sorted((what, *counts, rule) for (what, rule), counts in rows.items())
                csv.writer(file).writerows([COLUMNS, *lines])
        sections = []
        for path in sorted(self.folder.glob("*.csv")):
            with open(path, newline="") as file:
                _, *rows = csv.reader(file)
            sections.append(f"## {path.stem}\n\n{table(COLUMNS, rows)}")
        page = HEAD + "\n".join(sections)
        self.folder.with_suffix(".md").write_text(page)
        return page


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
