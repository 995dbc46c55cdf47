"""A project: its configuration, its papers, and its studies beside them."""

import gc
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from concord import kinds
from concord.errors import ConcordError, require_known
from concord_studies.configuration.checks import check_study
from concord_studies.configuration.config import load_config
from concord_studies.configuration.study import Study
from concord_studies.configuration.study_files import FOLDERS, RESERVED


def orphans(results: Path, studies: Iterable[Study]) -> list[Path]:
    """Return the results, below ``results``, of experiments and figures that no study has.

    An experiment is its folder; a figure or table is each of its files.
    """
    asked: set[Path] = set()
    for study in studies:
        asked |= {results / study.key / name for name in study.experiments}
        for section in ("figures", "tables"):
            asked |= {results / study.key / section / f"{n}.yaml" for n in study.outputs(section)}
    results_there = {path.parent for path in results.glob("*/*/runs.yaml")}
    results_there = {path for path in results_there if path.name not in FOLDERS}
    results_there |= {*results.glob("*/figures/*.yaml"), *results.glob("*/tables/*.yaml")}
    results_there = {path for path in results_there if _is_ours(path)}
    left = [f for f in results_there - asked if f.relative_to(results).parts[0] not in RESERVED]
    beside = ("pdf", "svg", "png", "csv", "md", "tex", "json", "yaml", "caption.md", "caption.rst")
    entries = [path.with_suffix(f".{end}") for path in left if path.suffix for end in beside]
    folders = [path for path in left if not path.suffix]
    return sorted([*folders, *(path for path in entries if path.exists())])


def _is_ours(path: Path) -> bool:
    """Return whether a folder of an experiment, or a figure's or table's .yaml, is Concord's."""
    stated = path if path.suffix else path / "runs.yaml"
    return stated.read_bytes().startswith(b'{"study": ')


def load_studies(
    folder: Path,
    changes: Mapping[str, Any] | None = None,
    checked: bool = False,
    contents: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], dict[str, Study]]:
    """Load and check the configuration, the papers and the studies.

    folder: where config.yaml and the folders papers and studies are.
    changes: what Snakemake's ``--config`` sets.
    checked: skip the checks, which all of it has passed before.
    contents: the contents of the files of each study (``Study.contents``), by its path, if they
    were read before.
    Returned are the configuration, and by key the papers, then the studies that are no papers
    (``Study.printed``).
    """
    # All that is read is kept: to look for garbage in it takes a fifth of the time,
    # and time again while jobs are planned.
    gc.disable()
    config = load_config(folder / "config.yaml", changes)
    studies: dict[str, Study] = {}
    try:
        for path in (p for f in ("papers", "studies") for p in sorted((folder / f).glob("[!.]*"))):
            if not path.is_dir() and path.suffix != ".yaml":  # a note of somebody's
                continue
            if path.name in studies:
                other = studies[path.name].path
                raise ConcordError(f"{path}: {other} has this key too; rename one")
            study = studies[path.name] = Study(
                path, config, checked, (contents or {}).get(str(path))
            )
            if not checked:
                check_study(study)
    finally:
        gc.enable()
        gc.freeze()
    kinds.use(*(study.path for study in studies.values()))  # each was checked with its own
    if not studies:
        raise ConcordError(f"{folder / 'papers'} holds no paper's folder; add one")
    experiments = [f"{key}/{name}" for key, study in studies.items() for name in study.experiments]
    for name in [] if checked else config["not_varied"]:
        if name.partition("/")[0] in studies:
            require_known("experiment", name, experiments, f"{folder / 'config.yaml'}: not_varied")
    return config, studies
