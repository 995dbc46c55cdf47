"""`concord init` and `concord orphans`, without running anything."""

import pytest

import by_hand
from concord_cli.__main__ import main
from concord_studies import results
from concord_studies.claims import verdicts
from concord_studies.configuration.init import init
from concord_studies.configuration.project import orphans
from concord_studies.configuration.study import Study
from concord_studies.experiment import Experiment, measure


def test_a_new_study_passes_the_check(tmp_path, monkeypatch, capsys):
    files = init(tmp_path / "my-study")
    assert (tmp_path / "my-study" / "profiles" / "default" / "config.yaml").is_file()
    assert not any("KEY" in text or "NAME" in text for text in map(str, files))
    assert not any("KEY" in path.read_text() for path in files)
    study = tmp_path / "my-study" / "config" / "papers" / "mystudy"
    assert len((study / "study.yaml").read_text().splitlines()) <= 36
    monkeypatch.chdir(tmp_path / "my-study")
    assert main(["check", "config/papers/mystudy"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_its_claim_holds(tmp_path):
    """For each sampler and agent the ring is farther, not for the nearest and farthest of all."""
    init(tmp_path / "my-study")
    config = {"scale": "paper", "seed": 1}
    paper = Study(tmp_path / "my-study" / "config" / "papers" / "mystudy", config)
    runs = {run.name: run.vary(chains=2) for run in paper.claim_runs()}  # the law needs none
    stated = by_hand.write(Experiment(paper.path, runs), tmp_path / "networks")
    measure(stated, stated.with_name("metrics.csv"), tmp_path)
    (case,) = paper.cases.values()
    measured = results.read(stated.parent)
    found = verdicts.judge(case.check, case.reads, lambda run: measured[run.name])
    assert found.verdict == "holds"


@pytest.mark.parametrize("name", ["claims", "...", "a: b", "ledger", "x" * 61, "été"])
def test_names_that_no_study_can_have(name, tmp_path, capsys):
    assert main(["init", str(tmp_path / name)]) == 2
    assert "no study can be called" in capsys.readouterr().err
    assert not (tmp_path / name).exists()


def test_a_folder_that_is_there_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note").write_text("kept")
    assert main(["init", str(tmp_path / "mine")]) == 2
    assert "it is there already; name a new folder" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["note"]


def test_orphans_are_experiments_that_no_study_has(tmp_path):
    init(tmp_path / "my-study")
    config = {"scale": "paper", "seed": 1, "smoke": {"chains": 8, "iterations": 12}}
    paper = Study(tmp_path / "my-study" / "config" / "papers" / "mystudy", config)
    results, stated = tmp_path / "results", '{"study": "config/papers/mystudy",\n'
    for folder in ("mystudy/networks", "mystudy/other", "gone/a", "smoke/mystudy"):
        (results / folder).mkdir(parents=True)
        (results / folder / "runs.yaml").write_text(stated)
    (results / "mystudy" / "figures").mkdir(parents=True)
    figures = paper.outputs("figures")
    figures["runs"] = next(iter(figures.values()))  # its statement is called as an experiment's
    for name in (*figures, "old"):
        for suffix in ("yaml", "caption.md"):
            (results / "mystudy" / "figures" / f"{name}.{suffix}").write_text(stated)
    # What a user's own rule makes there is the user's.
    (results / "mystudy" / "figures" / "own.yaml").write_text("colors: [red]\n")
    (results / "mystudy" / "figures" / "old.xlsx").touch()
    found = [str(path.relative_to(results)) for path in orphans(results, [paper])]
    assert found == [
        *("gone/a", "mystudy/figures/old.caption.md", "mystudy/figures/old.yaml", "mystudy/other")
    ]
