from pathlib import Path

import pytest
from smoke_project import FIGURES, Project

import shared_folders


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose Figures 3 and 4 have been made on two cores; leave it as it is."""
    folder = shared_folders.made(
        tmp_path_factory, "finished", lambda folder: Project(folder).make(*FIGURES)
    )
    return Project(tmp_path_factory.mktemp("finished") / "project", folder)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project in which nothing has been made."""
    return Project(tmp_path / "project")
