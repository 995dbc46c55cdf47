"""A job ends without a result if its code or data is not what it was planned with."""

import json
import shutil
import sys
import time
from pathlib import Path

import pytest

import by_hand
from concord.errors import ConcordError
from concord_cli.__main__ import main
from concord_studies import digests, statements
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.guard import Guard
from concord_studies.provenance import read_planned
from concord_studies.statements import FOLDER, Statement

OUTPUT = Path("results/x/metrics.csv")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch) -> Path:
    """A folder with a kind and its helper, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    digests._find_folder.cache_clear()
    Path("kind_of_mine.py").write_text("import helper_of_mine\n")
    Path("helper_of_mine.py").write_text("ODD = 1\n")
    Path("rows.csv").write_text("x,y\n1,2\n")
    return tmp_path


def plan(**changes: object) -> Path:
    """Write the statement of a job of the kind; return its file."""
    digests.forget_files()
    stated = {**digests.digest_code(Path("kind_of_mine.py").absolute()), **changes}
    statement = Statement(OUTPUT, json.dumps(stated))
    statement.write()
    return statement.path


def guard(path: Path) -> Guard:
    """Return the guard of the job, in another process than planned it."""
    digests.forget_files()
    return Guard(path, OUTPUT, [Path("kind_of_mine.py").absolute()], files=[Path("rows.csv")])


def rewrite(name: str, text: str) -> str:
    """Replace the text of a file; return the one before."""
    before = Path(name).read_text()
    Path(name).unlink()  # which no clock is too coarse for
    Path(name).write_text(text)
    return before


def test_code_that_was_changed_while_the_job_waited_is_refused():
    path = plan()
    rewrite("helper_of_mine.py", "ODD = 3\n")
    with pytest.raises(ConcordError, match=rf"{OUTPUT}: its code changed after it was planned; "):
        guard(path)


def test_code_that_is_changed_while_the_job_runs_is_refused():
    job = guard(plan())
    rewrite("helper_of_mine.py", "ODD = 3\n")
    with pytest.raises(ConcordError, match="its code changed after it was planned; type the same"):
        job.check_again()


def test_what_is_no_change_of_the_code_is_none():
    path = plan()
    rewrite("helper_of_mine.py", "ODD = 1  # odd\n")
    job = guard(path)
    rewrite("helper_of_mine.py", '"""Odd."""\n\nODD = 1\n')
    job.check_again()


@pytest.mark.parametrize("imports", [True, False])
def test_code_that_was_changed_and_put_back_while_the_job_ran_is_refused_if_read(imports):
    job = guard(plan())
    before = rewrite("helper_of_mine.py", "ODD = 3\n")
    try:
        if imports:
            import helper_of_mine  # noqa: F401
        rewrite("helper_of_mine.py", before)
        if imports:
            with pytest.raises(ConcordError, match=r"helper_of_mine\.py: it was changed while"):
                job.check_again()
        else:
            job.check_again()
    finally:
        sys.modules.pop("helper_of_mine", None)


def test_data_that_was_changed_and_put_back_while_the_job_ran_is_refused():
    job = guard(plan())
    rewrite("rows.csv", rewrite("rows.csv", "x,y\n1,3\n"))
    with pytest.raises(ConcordError, match=r"rows\.csv: it was changed while results/x/metrics"):
        job.check_again()


def test_syntax_trees_of_another_python_are_not_compared():
    guard(plan(code="0", libraries={"python": "2.7"})).check_again()


def test_a_statement_that_was_damaged_is_refused_and_written_again():
    path = plan()
    rewrite(str(path), "{}")
    with pytest.raises(ConcordError, match="it is not as it was planned; type the same command"):
        guard(path)
    guard(plan()).check_again()


def test_a_statement_of_ones_own_is_not_compared():
    shutil.copy(plan(code="0"), "mine.yaml")
    guard(Path("mine.yaml")).check_again()


def test_statements_that_nobody_plans_are_removed_after_a_while(monkeypatch):
    old, now = plan(seed=1), time.time()
    for later in (statements.LIFETIME - 60, statements.LIFETIME + 60):
        monkeypatch.setattr(statements.time, "time", lambda of=later: now + of)
        statements._remove_old.cache_clear()
        assert plan(seed=2).exists() and old.exists() == (later < statements.LIFETIME)


OWN = Path(__file__).with_name("own_rows.yaml")
ROWS = "x,y\n" + "".join(f"{k},{k % 3}\n" for k in range(8))


def test_a_table_of_ones_own_that_was_changed_while_the_job_waited_is_refused(capsys):
    folder = Path("config/papers/mine")
    folder.mkdir(parents=True)
    shutil.copy(OWN, folder / "study.yaml")
    (folder / "rows.csv").write_text(ROWS)
    study = Study(folder, load_config())
    (experiment,) = by_hand.experiments(study).values()
    statement = Statement(OUTPUT, experiment.text())
    statement.write()
    command = ["measure", str(statement.path), "-o", str(OUTPUT)]
    before = rewrite(f"{folder}/rows.csv", ROWS.replace("7,1", "7,2"))
    assert main(command) == 2
    said = capsys.readouterr().err
    assert said == (
        f"concord: {OUTPUT}: its data changed after it was planned; type the same command again\n"
    )
    assert not OUTPUT.exists()
    rewrite(f"{folder}/rows.csv", before)
    assert main(command) == 0
    assert OUTPUT.with_name("runs.yaml").read_text() == experiment.text()
    assert read_planned(OUTPUT) == statement.digest and statement.has_result
    assert FOLDER in statement.path.parents


@pytest.mark.parametrize("began", ["0", "1,5", f"{2**40}", ""])
def test_code_that_was_changed_since_the_shell_began_is_refused(began, monkeypatch):
    """It may have been put back after it was imported. Without a time nothing is compared."""
    monkeypatch.setenv("CONCORD_STARTED", began)
    if began in ("0", "1,5"):
        with pytest.raises(ConcordError, match=r"it was changed while .* was made; type the same"):
            guard(plan())
    else:
        guard(plan()).check_again()
