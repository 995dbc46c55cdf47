"""Mutated configuration files are accepted, or refused in one sentence that names file and key."""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from mutations import dumped, encoded, garbled, mutated, transplanted
from pieces import CONFIG, others, small_papers

from concord.errors import ConcordError, short
from concord_studies.claims.ledger import expected_rows
from concord_studies.configuration.checks import check_study
from concord_studies.configuration.config import load_config
from concord_studies.configuration.project import load_studies
from concord_studies.configuration.study import Study
from concord_studies.datasets.registry import load_registry
from concord_studies.io import load_yaml
from concord_studies.pages import captions

pytestmark = pytest.mark.thorough

RULE = "accepted, or refused in one sentence with file and key (or line)"
LONGEST = 1500  # characters of a sentence
# What is wrong with the file as a whole has no key.
WHOLE = r"it is empty|.{1,60} is not a mapping|the key '\w+' is missing|cannot be read \("


def outcome(load: Callable[[], Any], path: Path) -> str:
    """Return whether a file is accepted; what refuses it must be one sentence."""
    try:
        load()
    except ConcordError as error:
        assert_sentence(str(error), path)
        return "refused"
    return "accepted"


def assert_sentence(text: str, path: Path) -> None:
    """One line, not too long, that starts with the file, then the line or the key.

    Of a folder, with one of its files, or with the folder itself.
    """
    files = [path, *path.glob("*.yaml")] if path.is_dir() else [path]
    path = next((file for file in files if text.startswith(f"{file}: ")), path)
    assert text.isprintable(), text
    assert len(text) < LONGEST, text[:300]
    assert text.startswith(f"{path}: "), text
    rest = text.removeprefix(f"{path}: ")
    if not re.match(rf"line \d+ |{WHOLE}", rest):
        keys = load_yaml(path)  # its syntax is right, so a key is wrong
        shown = [re.escape(text) for key in keys for text in (key, short(key))]
        assert re.match(rf"({'|'.join(shown)})[.\[: ]", rest), text


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    return load_config(CONFIG / "config.yaml", {"scale": "smoke"})


def load_paper(path: Path, config: dict[str, Any]) -> None:
    """Load a paper's folder and look at everything that Snakemake asks of it when it starts."""
    paper = Study(path, config)
    check_study(paper)
    paper.claim_runs()
    for section in ("figures", "tables"):
        for name in paper.outputs(section):
            captions.of(paper, section, name)


def test_small_papers_themselves_are_accepted(tmp_path, config):
    for piece in small_papers().values():
        path = folder_of_one(tmp_path)
        path.write_text(dumped(piece))
        load_paper(path.parent, config)


def folder_of_one(tmp_path: Path) -> Path:
    """Return the path of the one file of a paper."""
    (tmp_path / "x").mkdir(exist_ok=True)
    return tmp_path / "x" / "study.yaml"


@pytest.mark.parametrize(("how", "count"), [(mutated, 700), (transplanted, 350)])
def test_small_papers(how, count, tmp_path, config, tries):
    path, seen = folder_of_one(tmp_path), Counter()

    def check(document):
        path.write_bytes(encoded(document))
        seen[outcome(lambda: load_paper(path.parent, config), path.parent)] += 1

    tried = tries(f"small papers, {how.__name__}", RULE, count, check, how(small_papers))
    assert min(seen["accepted"], seen["refused"]) > tried / 20


def test_papers_with_garbled_text(tmp_path, config, tries):
    path, seen = folder_of_one(tmp_path), Counter()

    def check(text):
        path.write_bytes(text)
        seen[outcome(lambda: load_paper(path.parent, config), path.parent)] += 1

    texts = {name: dumped_in_lines(piece) for name, piece in small_papers().items()}
    tried = tries("small papers, text garbled", RULE, 500, check, garbled(lambda: texts))
    assert min(seen["accepted"], seen["refused"]) > tried / 20


def dumped_in_lines(document: Any) -> bytes:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()


OTHERS: dict[str, Callable[[Path], Any]] = {
    "config": load_config,
    "datasets": load_registry,
    "expected_verdicts": expected_rows,
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_files(name, tmp_path, tries):
    path, seen = tmp_path / f"{name}.yaml", Counter()

    def check(text):
        path.write_bytes(text)
        seen[outcome(lambda: OTHERS[name](path), path)] += 1

    structure = mutated(lambda: {name: others()[name]}).map(encoded)
    text = garbled(lambda: {name: (CONFIG / f"{name}.yaml").read_bytes()})
    tried = tries(f"{name}.yaml, mutated or garbled", RULE, 250, check, structure | text)
    assert min(seen["accepted"], seen["refused"]) > tried / 20


FILES = [path.relative_to(CONFIG) for path in sorted(CONFIG.glob("papers/*/*.yaml"))]


@pytest.mark.parametrize("file", FILES, ids=str)
def test_real_papers(file, tmp_path, tries):
    """The configuration as Snakemake loads it, of one paper, with one of its files changed."""
    folder, paper = tmp_path / "config", file.parent.name
    rest = {path.name for path in CONFIG.glob("[ps]*s/*")} - {paper}  # they take the most time
    shutil.copytree(CONFIG, folder, ignore=shutil.ignore_patterns(*rest))
    path, original = folder / file, (CONFIG / file).read_bytes()

    def check(text):
        path.write_bytes(text)
        outcome(lambda: load_studies(folder, {"scale": "smoke"}), path.parent)

    structure = mutated(lambda: {file.stem: load_yaml(CONFIG / file)}).map(encoded)
    text = garbled(lambda: {file.stem: original})
    what = f"{paper}, one of its files mutated or garbled"
    tries(what, RULE, 4, check, structure | text)
