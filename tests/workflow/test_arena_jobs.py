"""The arena in the DAG: its parts, and what a task waits for."""

import shutil

import pytest
from smoke_project import ROOT

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

ARENA = "config/studies/arena"
TABLE = "results/smoke/arena/{}/metrics.csv"


@pytest.fixture
def arena(project):
    shutil.copytree(ROOT / ARENA, project.folder / ARENA)
    return project


def test_an_arena_is_scored_in_parts(arena):
    table = TABLE.format("growth")
    assert arena.jobs(table) == {"measure": 1, "part": 2}
    arena.make(table)
    text = (arena.folder / table).read_text()
    for agents in (4, 128):
        assert f"agents={agents}+entry=de_sgld" in text and f"agents={agents}+entry=dg_lmc" in text
    assert arena.jobs(table) == {}


def test_tasks_wait_for_their_certified_reference(arena):
    table = TABLE.format("sampled")
    jobs = arena.jobs(table)
    assert jobs["measure"] == jobs["fetch"] == 1 and jobs["part"] > 1
    draws = arena.folder / "resources" / "breast_cancer_posterior" / "draws.npy"
    draws.parent.mkdir(parents=True)
    draws.write_bytes(b"")
    assert "fetch" not in arena.jobs(table)
