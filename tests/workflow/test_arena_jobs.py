"""The arena in the DAG: what a sampler of one's own computes, and what a task waits for."""

import shutil

import pytest
from smoke_project import ROOT

from concord_studies.configuration.init import TEMPLATE

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

ARENA = "config/studies/arena"
CELL = "results/smoke/arena/{}/{}+entry={}/metrics.csv"


@pytest.fixture
def arena(project):
    shutil.copytree(ROOT / ARENA, project.folder / ARENA)
    return project


def test_one_file_and_one_line_compute_the_cells_of_that_sampler_alone(arena):
    here = [CELL.format("links", "link=lan", entry) for entry in ("de_sgld", "local_sgld")]
    arena.make(*here)
    stamps = {cell: (arena.folder / cell).stat().st_mtime_ns for cell in here}
    plugins = arena.folder / ARENA / "plugins" / "samplers"
    plugins.mkdir(parents=True)
    mine = TEMPLATE / "config" / "papers" / "KEY" / "plugins" / "samplers" / "mine.py"
    (plugins / "mine.py").write_text(mine.read_text().replace("NAME", "it"))
    line = "mine: { sampler: { kind: mine, step_size: 0.01 }, arena: { tune: step_size } }"
    first = "          de_sgld: &de_sgld"
    with arena.edited(f"{ARENA}/study.yaml", first, f"          {line}\n{first}"):
        own = [*here, CELL.format("links", "link=lan", "mine")]
        assert arena.jobs(*own)["measure"] == 1
        assert arena.batches(*own) == {"arena/links/batch_0"}
        arena.make(*own)
        assert arena.jobs(*own) == {}
        assert "arena/tasks/batch_0" in arena.batches("results/smoke/arena/scores.csv")
    text = (arena.folder / own[-1]).read_text()
    assert "b2_by_seconds" in text
    assert {cell: (arena.folder / cell).stat().st_mtime_ns for cell in here} == stamps


def test_a_task_waits_for_its_certified_reference(arena):
    cell = CELL.format("sampled", "problem=cancer", "de_sgld")
    assert arena.jobs(cell) == {"measure": 1, "run": 1, "fetch": 1}
    (batch,) = arena.batches(cell)
    assert batch.startswith("arena/sampled/")
    draws = arena.folder / "resources" / "breast_cancer_posterior" / "draws.npy"
    draws.parent.mkdir(parents=True)
    draws.write_bytes(b"")
    assert arena.jobs(cell) == {"measure": 1, "run": 1}
