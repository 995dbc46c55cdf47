"""Texts of papers carry their numbers, or say where print has its sentence.

``CONCORD_PRINTS`` names a folder with the papers' texts (.txt), which the project does not have.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import asdict

import everything
from concord_studies.claims.texts import PLACEHOLDER
from concord_studies.configuration.study import Study

PAPERS = {key: study for key, study in everything.studies().items() if study.printed}
# Names that have a number in them: of what print numbers, of symbols, of data and networks, and of
# the one level of confidence that all intervals have.
NAMES = re.compile(
    r"\b(Fig|Table|Theorem|Lemma|Remark|Corollary|Proposition|section|equation|agent|reading)s? "
    r"[SA]?\d+(\.\d+)*[a-z]?((,| and| to) [SA]?\d+[a-z]?)*|\(\d+(\.\d+)*\)|\bW[12]\b|\w\^\d|\bc_\d"
    r"|\b1( - |/)[a-z]|\b95 %|\ba9a\b|\bLeNet-5\b",
    re.IGNORECASE,
)
NUMBERS = re.compile(
    r"\d[\d.,]*|\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty"
    r"|fifty|hundred|thousand|twice|half|double|thrice)\b",
    re.IGNORECASE,
)


def texts_of(study: Study) -> Iterator[tuple[str, str]]:
    """Yield the place and the text of whatever a study says of its results."""
    for section in ("figures", "tables"):
        for name, entry in study.outputs(section).items():
            for key in ("title", "caption", "ours"):
                yield f"{section}.{name}.{key}", getattr(entry, key)
    for name, claim in study.claims.items():
        for part, text in asdict(claim.because).items():
            yield f"claims.{name}.because.{part}", text


def typed_numbers(text: str) -> list[str]:
    """Return the numbers in a text that nothing fills in, and that are no part of a name."""
    return [found[0] for found in NUMBERS.finditer(NAMES.sub("", PLACEHOLDER.sub("", text)))]


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("The {agents} agents end at {end} (Figs 2 and 3, section 5.1, (4.10)), W2 x^2.", 0),
        ("1 - mu eta of agent 1, with 1/eta.", 0),
        ("Two agents end at 0.1 with 95 % intervals, half of 1,000 chains.", 4),
        ("Agent 1 ends 1.5 times nearer.", 1),
    ],
)
def test_a_typed_number_is_found(text, typed):
    assert len(typed_numbers(text)) == typed


@pytest.mark.parametrize("key", PAPERS)
def test_no_number_is_typed_into_a_text(key):
    typed = {place: typed_numbers(text) for place, text in texts_of(PAPERS[key])}
    typed = {place: numbers for place, numbers in typed.items() if numbers}
    assert typed == {}


@pytest.mark.parametrize("key", PAPERS)
def test_every_claim_says_where_print_has_its_sentence(key):
    without = [n for n, claim in PAPERS[key].claims.items() if not (claim.words or claim.ours)]
    assert without == []


def fold(text: str) -> str:
    """Return a text's letters and digits alone, since hyphens and line breaks differ."""
    return re.sub(r"[\W_]", "", re.sub(r"-\s*\n\s*", "", text)).lower()


@pytest.fixture(scope="module")
def prints() -> list[str]:
    folder = os.environ.get("CONCORD_PRINTS")
    if not folder:
        pytest.skip("CONCORD_PRINTS names no folder of papers' texts")
    paths = sorted(Path(folder).rglob("*.txt"))
    return [fold(path.read_text("utf-8", "replace")) for path in paths]


@pytest.mark.parametrize("key", PAPERS)
def test_the_words_of_every_claim_are_in_print(key, prints):
    study = PAPERS[key]
    title = fold(study.about.title)
    of_paper = [text for text in prints if title in text[:3000]]
    if not of_paper:
        pytest.skip(f"no text begins with the title of {key}")
    missing = {}
    for name, claim in study.claims.items():
        words = [claim.words] if isinstance(claim.words, str) else claim.words or ()
        lost = [text for text in words if not any(fold(text) in print for print in of_paper)]
        missing |= {name: lost} if lost else {}
    assert missing == {}
