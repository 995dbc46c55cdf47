"""The record of reliability tests: it shows what failed, whichever way a test fails."""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import concord
from reliability import Record, Reliability

HERE = Path(__file__).parent
# Failing tests, run apart; what they have recorded is below.
MADE_UP = """
import pytest
from hypothesis import strategies as st

def test_inputs_one_of_which_fails(tries):
    seen = []

    def check(number):
        seen.append(number)
        assert len(set(seen)) <= 20

    tries("numbers", "not the 21st", 200, check, st.integers())

def test_inputs_that_hold(tries):
    assert tries("digits", "any", 200, lambda digit: None, st.integers(0, 9)) == 10

@pytest.mark.parametrize("number", range(5))
def test_cases(number, reliability):
    with reliability.trial("faults", "cases", "not the third"):
        assert number != 2

def test_that_says_so_itself(reliability):
    reliability("faults", "at once", 10, 4, "none")
    assert False

def test_that_breaks_before_it_counts(reliability):
    raise RuntimeError

def test_that_breaks_after_it_counted(tries):
    tries("letters", "any", 3, lambda letter: None, st.sampled_from("abc"))
    raise RuntimeError

@pytest.fixture
def broken(reliability):
    raise RuntimeError

def test_that_cannot_be_set_up(broken):
    pass

def test_that_is_skipped(reliability):
    pytest.skip("no reason")
"""
ENDS_WELL = "the test ends well"
RECORDED = {
    "faults": [
        ["at once", "10", "4", "none"],
        ["cases", "5", "1", "not the third"],
    ],
    "inputs": [
        ["digits", "10", "0", "any"],
        ["letters", "3", "0", "any"],
        ["numbers", "21", "1", "not the 21st"],
        ["test_that_breaks_after_it_counted", "1", "1", ENDS_WELL],
        ["test_that_breaks_before_it_counts", "1", "1", ENDS_WELL],
        ["test_that_cannot_be_set_up", "1", "1", ENDS_WELL],
    ],
}


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_fails_is_recorded_as_failed(processes, tmp_path):
    fuzz = tmp_path / "tests" / "fuzz"
    fuzz.mkdir(parents=True)
    for name in (
        "conftest.py",
        "everything.py",
        "reliability.py",
        "fuzz/conftest.py",
        "fuzz/harness.py",
    ):
        shutil.copy(HERE / name, tmp_path / "tests" / name)
    (fuzz / "test_made_up.py").write_text(MADE_UP)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", processes]
    path = os.pathsep.join([str(tmp_path / "tests"), str(Path(concord.__file__).parents[1])])
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(fuzz)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "5 failed" in done.stdout and "1 error" in done.stdout, done.stdout + done.stderr
    found = {}
    for file in (tmp_path / "results" / "reliability").glob("*.csv"):
        with open(file, newline="") as rows:
            found[file.stem] = list(csv.reader(rows))[1:]
    assert found == RECORDED
    page = (tmp_path / "results" / "reliability.md").read_text()
    assert "| numbers | 21 | 1 | not the 21st |" in page


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
