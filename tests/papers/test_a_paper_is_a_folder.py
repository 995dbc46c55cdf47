"""A paper is its folder: copied into another project it makes the same of the same code."""

import shutil
from pathlib import Path

import pytest

import everything
from concord_studies import digests
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.digests import digest, digest_code

PAPERS = [study.name for study in everything.STUDIES if study.parent.name == "papers"]


def identities(folder: Path) -> dict[str, tuple[str, dict[str, object]]]:
    """Return the digests of parameters and code of one run of each experiment."""
    study = Study(folder, load_config())
    runs = {run.experiment: run for run in study.runs.values()}
    return {
        name: (digest(run.document), digest_code("concord_studies.experiment", *run.modules))
        for name, run in runs.items()
    }


@pytest.mark.parametrize("key", PAPERS)
def test_a_copy_in_another_project_has_the_same_runs_and_code(key, tmp_path, monkeypatch):
    folder = Path("config", "papers", key)  # as planning names it
    monkeypatch.chdir(everything.ROOT)
    here = identities(folder)
    shutil.copytree(folder, tmp_path / folder)
    (tmp_path / "config" / "config.yaml").write_text("{}")
    monkeypatch.chdir(tmp_path)
    digests.forget_files()
    assert identities(folder) == here
