"""What is no regular file where a result should be, and what planning cannot read.

It is replaced or named in one sentence; nothing hangs, and nothing is written through a link.
"""

import os
from itertools import cycle, islice
from pathlib import Path

import pytest
from smoke_project import FIGURES, PAPER, RESULTS, Project, timeless

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

FIGURE = FIGURES[1]
STEM = FIGURE.removesuffix(".pdf")
SPECIAL = {
    "link": lambda path: path.symlink_to(Path.cwd() / "mine"),
    "nowhere": lambda path: path.symlink_to("nowhere"),
    "loop": lambda path: path.symlink_to(path.name),
    "pipe": os.mkfifo,
}


@pytest.fixture
def copy(finished, tmp_path, monkeypatch) -> Project:
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("mine")
    return Project(tmp_path / "project", finished.folder)


@pytest.mark.parametrize("first", [0, 2])
def test_what_is_no_regular_file_is_replaced(first, finished, copy):
    """Each output of four is something else; all of them are written in the same way."""
    outputs = (FIGURE, f"{STEM}.svg", f"{STEM}.json", f"{RESULTS}/linear_step/batch_0.made.json")
    for make, file in zip(islice(cycle(SPECIAL.values()), first, None), outputs, strict=False):
        (copy.folder / file).unlink()
        make(copy.folder / file)
    copy.make(FIGURE)
    for file in outputs:
        made, expected = ((p.folder / file).read_bytes() for p in (copy, finished))
        assert timeless(made) == timeless(expected)
        assert not (copy.folder / file).is_symlink()
    assert Path("mine").read_text() == "mine" and not (copy.folder / STEM / "nowhere").exists()


LINK, PIPE = SPECIAL["link"], SPECIAL["pipe"]


# What else each of them may be: tests/concord_studies/test_files.py
@pytest.mark.parametrize(
    ("make", "file"),
    [
        *(
            (make, f"{RESULTS}/linear_step/step_size=0.001/metrics.csv")
            for make in (LINK, PIPE, Path.mkdir)
        ),
        (LINK, f"results/smoke/benchmarks/{PAPER}/figures/fig4.tsv"),
        (PIPE, f"results/smoke/logs/{PAPER}/figures/fig4.log"),
        (LINK, "results/.running"),
        (Path.mkdir, ".snakemake/.running"),
    ],
)
def test_what_is_not_replaced_is_named(make, file, copy):
    path = copy.folder / file
    path.unlink()
    make(path)
    done = copy.snakemake(FIGURE, "--forcerun", "figure")
    assert done.returncode != 0 and "Traceback" not in done.stdout
    told = [line for line in done.stdout.splitlines() if line.startswith("concord: ")]
    assert len(told) == 1 and f"{file}: " in told[0] and "remove it" in told[0], done.stdout
    assert Path("mine").read_text() == "mine"


@pytest.mark.parametrize("target", [FIGURE, "ledger", f"multiverse_{PAPER}", "site"])
def test_code_that_changes_while_snakemake_plans(target, finished):
    file = "src/concord_studies/provenance.py"
    check = "    files = module_files(*names)\n"
    with finished.edited(file, check, f'{check}    raise ConcordError("de_sgld.py: it changed")\n'):
        done = finished.snakemake(target, "--dry-run")
    assert done.returncode != 0 and "Traceback" not in done.stdout
    assert done.stdout.endswith("concord: de_sgld.py: it changed\n")


@pytest.mark.parametrize(
    "options",
    [
        ("--rerun-triggers", "mtime", "--cores", "1"),
        ("--rerun-triggers", "code", "--cores", "1"),
        ("--forcerun", "figure"),
        ("--touch",),
    ],
)
def test_no_option_hides_what_is_stale(options, copy):
    """An edited figure, and a batch whose file is missing."""
    before = (copy.folder / FIGURE).read_bytes()
    (copy.folder / f"{STEM}.svg").write_text("other")
    (copy.folder / f"{RESULTS}/linear_batch/batch_0.made.json").unlink()
    copy.make(FIGURE, *options)
    jobs = copy.jobs(FIGURE)
    if options == ("--touch",):
        assert jobs.get("figure") == 1
        copy.make(FIGURE)
    else:
        assert jobs == {}
    assert "other" not in (copy.folder / f"{STEM}.svg").read_text()
    assert (copy.folder / f"{RESULTS}/linear_batch/batch_0.made.json").exists()
    assert (copy.folder / FIGURE).read_bytes() == before
