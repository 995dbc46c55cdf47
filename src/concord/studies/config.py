"""The configuration: ``config/config.yaml`` and the papers' folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from concord.errors import ConcordError
from concord.io import load_yaml
from concord.studies.paper import Paper
from concord.studies.schema import schema_of, validate


def load_config(
    path: Path, changes: Mapping[str, Any] | None = None, checked: bool = False
) -> dict[str, Any]:
    """Read ``config/config.yaml``, apply changes (Snakemake's ``--config``), and check it.

    What neither sets has the schema's default.
    """
    config = load_yaml(path) or {}
    if not isinstance(config, dict):
        raise ConcordError(f"{path}: it is not a mapping of keys to values")
    config = {**config, **(changes or {})}
    if not checked:
        validate(config, "config", path)
    return _with_defaults(config, schema_of("config"))


def _with_defaults(config: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _with_defaults(config.get(key, {}), about)
        if "properties" in about
        else config.get(key, about["default"])
        for key, about in schema["properties"].items()
    }


def load_papers(
    folder: Path, changes: Mapping[str, Any] | None = None, checked: bool = False
) -> tuple[dict[str, Any], dict[str, Paper]]:
    """Load and check the whole configuration: ``config.yaml`` and every paper's folder.

    Parameters
    ----------
    folder, changes
        The folder of both; what Snakemake's ``--config`` sets.
    checked
        All of it has been checked before, so that reading it will do.

    Returns
    -------
    tuple
        The configuration, and the papers by key.
    """
    config = load_config(folder / "config.yaml", changes, checked)
    papers = {}
    for path in sorted((folder / "papers").glob("[!.]*")):
        if not path.is_dir() and path.suffix != ".yaml":  # a note of somebody's
            continue
        paper = papers[path.name] = Paper(path, config, checked)
        if not checked:
            paper.runs  # noqa: B018 (expands and so checks every run)
            paper.check_outputs()
    if not papers:
        raise ConcordError(f"{folder / 'papers'} holds no paper's folder; add one")
    return config, papers
