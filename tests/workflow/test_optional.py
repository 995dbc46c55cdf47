"""What is optional: PyTorch for the LeNet problem, and SVHN's file among its test sets."""

import pytest
from smoke_project import Project

import everything

lenet = everything.kind("problems", "lenet")
pytestmark = [pytest.mark.workflow, pytest.mark.thorough]
PAPER = """
paper: { title: Tiny, authors: A, year: 2020 }
problems: { mnist: { kind: lenet, training_images: 100 } }
experiments:
  tiny:
    problem: mnist
    agents: 1
    topology: ring
    initial: { kind: problem }
    chains: 1
    iterations: 2
    sampler: { kind: sgd, step_size: 1.0e-4, batch_size: 50 }
    record: { at: [2], draws: false, average: false, averages: [predictive] }
    metrics: [predictions]
figures:
  map:
    kind: label_maps
    title: Map
    runs: [tiny]
    options: { panels: [{ title: SGD, metric: confusion_mnist }] }
"""
MAP = "results/smoke/tiny/figures/map.pdf"


@pytest.fixture
def tiny(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv("CONCORD_DATA_MIRROR", raising=False)
    (project.paper.parent / "tiny").mkdir()
    (project.paper.parent / "tiny" / "study.yaml").write_text(PAPER)
    everything.copy("parayil2020", project.paper.parent / "tiny")
    return project


def test_without_torch_its_targets_are_left_out_unless_asked_for(tiny):
    with tiny.edited(
        "config/papers/tiny/plugins/problems/lenet.py", 'find_spec("torch")', 'find_spec("absent")'
    ):
        output = tiny.make("tiny", "--dry-run")
        assert "left out tiny/map: LeNet needs PyTorch" in output
        assert "pip install -e '.[lenet]'" in output
        assert tiny.jobs("tiny") == {"tiny": 1}
        assert "left out" not in tiny.make(MAP, "--dry-run")
        assert tiny.jobs(MAP)["measure"] == 1
