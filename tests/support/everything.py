"""The kinds of Concord and of all its studies: what tests over all kinds are about."""

import shutil
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import concord_studies  # noqa: F401 (its rooms)
from concord import kinds

ROOT = Path(__file__).parents[2]
STUDIES = sorted(path.parent for path in (ROOT / "config").glob("*/*/study.yaml"))


def use() -> None:
    """Use the plug-ins of all studies, as planning does."""
    kinds.use(*STUDIES)


def kind(room: str, name: str) -> Any:
    """Return a kind of Concord's, or of a study."""
    return kinds.find(room, name, "tests")


def shared(study: str, name: str) -> Any:
    """Return a module that the kinds of a study share."""
    (folder,) = (folder for folder in STUDIES if folder.name == study)
    return import_module(kinds.register_module(folder / "plugins" / f"{name}.py"))


@cache
def studies() -> dict[str, Any]:
    """Return the papers and studies by key, at paper scale, as planning loads them."""
    from concord_studies.configuration.project import load_studies

    return load_studies(ROOT / "config", checked=True)[1]


def copy(study: str, folder: Path) -> None:
    """Copy the plug-ins of a study into the folder of another one."""
    (own,) = (folder for folder in STUDIES if folder.name == study)
    shutil.copytree(own / "plugins", folder / "plugins")
