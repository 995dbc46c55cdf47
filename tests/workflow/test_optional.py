"""What is optional: PyTorch for a study's network."""

import shutil
from pathlib import Path

import pytest
from smoke_project import Project

import everything

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]
PAPER = Path(__file__).with_name("tiny_lenet.yaml")
MAP = "results/smoke/tiny/figures/map.pdf"


@pytest.fixture
def tiny(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("CONCORD_DATA_MIRROR", raising=False)
    (project.paper.parent / "tiny").mkdir()
    shutil.copy(PAPER, project.paper.parent / "tiny" / "study.yaml")
    everything.copy("parayil2020", project.paper.parent / "tiny")
    shutil.copy(
        everything.ROOT / "config/papers/parayil2020/lenet.py", project.paper.parent / "tiny"
    )
    return project


def test_without_torch_its_targets_are_left_out_unless_asked_for(tiny):
    with tiny.edited("src/concord/models/model.py", '("torch",)', '("absent",)'):
        output = tiny.make("tiny", "--dry-run")
        assert "left out tiny/map: it needs PyTorch" in output
        assert "pip install -e '.[absent]'" in output
        assert tiny.jobs("tiny") == {"tiny": 1}
        assert "left out" not in tiny.make(MAP, "--dry-run")
        assert tiny.jobs(MAP)["measure"] == 1
