"""After a batch has failed, what was made before is not taken for what is wanted now."""

import pytest
from smoke_project import FIGURES, STUDY, Project

pytestmark = [pytest.mark.workflow, pytest.mark.thorough]

SAMPLER = "src/concord/samplers/de_sghmc.py"


def test_a_change_after_a_failed_batch_is_made(finished, tmp_path):
    """Snakemake deletes the file of the batch that fails, and its figure stands, of old runs."""
    project, figure = Project(tmp_path / "project", finished.folder), FIGURES[0]
    before = (project.folder / figure).read_bytes()
    with (
        project.edited(STUDY, "friction: 15.0", "friction: 14.0"),
        project.edited(SAMPLER, "        force =", "        raise RuntimeError\n        force ="),
    ):
        assert project.snakemake(figure).returncode != 0
    assert (project.folder / figure).read_bytes() == before
    with project.edited(SAMPLER, "sqrt(2 * self.friction", "sqrt(3 * self.friction"):
        assert project.jobs(figure) == {"measure": 1, "figure": 1}
        project.make(figure)
        assert project.jobs(figure) == {}
        assert (project.folder / figure).read_bytes() != before
