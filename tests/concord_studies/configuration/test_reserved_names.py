"""No paper can have a name that the workflow uses, for a rule or for a folder of the results."""

import re
from pathlib import Path

import pytest

from concord.errors import ConcordError
from concord_studies.configuration.study import Study
from concord_studies.configuration.study_files import RESERVED
from concord_studies.runs.keys import STUDY

ROOT = Path(__file__).parents[3]
WORKFLOW = [
    ROOT / "Snakefile",
    ROOT / "workflow" / "Snakefile",
    *sorted(ROOT.glob("workflow/rules/*.smk")),
]


def words():
    """Names of rules, and of what stands in the results' folder."""
    for file in WORKFLOW:
        text = file.read_text()
        rule = r"^ *(?:rule|checkpoint|use rule \w+ as) (\w+)(?: with)?:"
        yield from re.findall(rule, text, re.MULTILINE)
        yield from re.findall(r"\{RESULTS\}/([A-Za-z0-9]+)\b", text)
        yield from re.findall(r"results/([A-Za-z0-9]+)/", text)
    yield from re.findall(r"results/([A-Za-z0-9]+)/", (ROOT / "Makefile").read_text())


def test_all_words_of_the_workflow_are_reserved():
    found = {word for word in words() if STUDY.fullmatch(word)}
    assert {"part", "reproduce", "logs", "claims"} <= found  # they are found
    assert found <= RESERVED


@pytest.mark.parametrize("key", [*sorted(RESERVED), "Smoke"])
def test_a_reserved_name_is_refused(tmp_path, key):
    with pytest.raises(ConcordError, match=rf"{key}: '{key}' is a word of the workflow's own"):
        Study(tmp_path / key, {}, checked=True)


def test_no_paper_has_one():
    assert RESERVED.isdisjoint(path.name for path in ROOT.glob("config/*/*/"))
