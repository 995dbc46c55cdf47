from pathlib import Path

import pytest
from tiny_project import ALL, TinyProject

import once


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> TinyProject:
    """What an undisturbed run makes; leave it as it is."""
    folder = once.made(
        tmp_path_factory, "undisturbed", lambda folder: TinyProject(folder).make(*ALL)
    )
    return TinyProject(tmp_path_factory.mktemp("undisturbed") / "project", folder)


@pytest.fixture
def project(tmp_path: Path) -> TinyProject:
    """A project in which nothing has been made."""
    return TinyProject(tmp_path / "project")


@pytest.fixture
def copy(finished: TinyProject, tmp_path: Path) -> TinyProject:
    """A finished project to be damaged."""
    return TinyProject(tmp_path / "copy", finished.folder)
