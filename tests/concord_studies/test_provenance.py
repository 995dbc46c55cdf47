"""What is written beside results, and what is refused because of it."""

import json
import time
from pathlib import Path

import pytest

import concord
from concord.errors import ConcordError
from concord_studies import provenance


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """A table and a page that were made together."""
    provenance.write({tmp_path / "a.csv": "1,2\n", tmp_path / "a.md": "page\n"}, seed=7)
    return tmp_path / "a.csv"


def test_provenance_says_where_results_come_from(result):
    found = provenance.read_provenance(result)
    assert found["concord"] == concord.__version__ and found["seed"] == 7
    assert found["commit"] is None or len(found["commit"].removesuffix("-dirty")) == 40
    assert len(found["lock"]) == 64 and found["time"].endswith("+00:00")
    assert list(found["sha256"]) == ["a.csv", "a.md"]


def test_a_job_says_its_cpu_seconds_and_those_of_its_parts(tmp_path):
    before = time.process_time()
    (tmp_path / "a.csv").write_text("1")
    provenance.write_provenance([tmp_path / "a.csv"], parts_seconds=1000.0)
    seconds = provenance.read_provenance(tmp_path / "a.csv")["job_seconds"] - 1000
    assert before - 0.01 <= seconds <= time.process_time() + 0.01  # it is rounded


@pytest.mark.parametrize("name", ["a.csv", "a.md"])
@pytest.mark.parametrize("text", ["1,3\n", "1", None])
def test_what_was_edited_cut_or_deleted_is_refused(name, text, result):
    path = result.with_name(name)
    path.unlink() if text is None else path.write_text(text)
    remedy = "the file" if name == "a.csv" else str(result)  # for which Snakemake is asked
    with pytest.raises(ConcordError, match=rf"{name}: it is not as it was .*; delete {remedy} to"):
        provenance.read_provenance(result)


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"sha256": 1}'])
def test_a_result_without_provenance_is_refused(text, result):
    path = result.with_suffix(".json")
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(ConcordError, match=r"a\.json: it is missing or damaged; delete the file"):
        provenance.read_provenance(result)


def test_source_in_somebody_elses_repository_has_no_commit(monkeypatch, tmp_path):
    provenance.commit.cache_clear()
    monkeypatch.setattr(provenance, "SOURCE", tmp_path)
    try:
        assert provenance.commit() is None
    finally:
        provenance.commit.cache_clear()


def test_pictures_in_folders_are_among_what_is_checked(result):
    picture = result.parent / "figures" / "one.svg"
    picture.parent.mkdir()
    picture.write_text("<svg/>")
    provenance.write({result: "1\n"}, [picture])
    assert "figures/one.svg" in json.loads(result.with_suffix(".json").read_text())["sha256"]
    picture.write_text("<svg>")
    with pytest.raises(ConcordError, match=r"one\.svg: it is not as it was written"):
        provenance.read_provenance(result)
